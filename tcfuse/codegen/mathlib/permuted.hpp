// Floats by tables in registers, for AVX-512: a permutation of 16 or 32 entries costs as much as a
// product, on units that products leave alone.  So a function takes fewer products, and no quotient.
#if TCF_LEVEL >= 4 && defined(__x86_64__) && !defined(TCF_DEVICE)
#define TCF_PERMUTED 1
#else
#define TCF_PERMUTED 0
#endif
#if TCF_PERMUTED
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

// Entries at the low four or five bits of an index.
TCF_INLINE vec<float, 16> permuted(const float (&table)[16], vec<int32_t, 16> index) {
  const auto all = load<float, 16>(table);
#ifdef __clang__
  return __builtin_ia32_permvarsf512(all, index);
#else
  return __builtin_ia32_permvarsf512_mask(all, index, all, -1);
#endif
}
TCF_INLINE vec<float, 16> permuted(const float (&table)[32], vec<int32_t, 16> index) {
  const auto first = load<float, 16>(table), second = load<float, 16>(table + 16);
#ifdef __clang__
  return __builtin_ia32_vpermi2varps512(first, index, second);
#else
  return __builtin_ia32_vpermt2varps512_mask(index, first, second, -1);
#endif
}
template <int N, class I>
TCF_INLINE with_elem<I, float> entries(const float (&table)[N], I index) {
  if constexpr (is_scalar<I>) {
    return table[index & (N - 1)];
  } else if constexpr (lanes<I> < 16) {
    return low(entries(table, join(index, index)));
  } else if constexpr (lanes<I> == 16) {
    return permuted(table, index);
  } else {
    return join(entries(table, low(index)), entries(table, high(index)));
  }
}
// The polynomial of a part, highest degree last in the table.
template <int Terms, int N, class V>
TCF_INLINE V poly_of_part(const float (&table)[Terms][N], ints<V> part, V x) {
  V r = entries(table[Terms - 1], part);
  TCF_UNROLL
  for (int i = Terms - 2; i >= 0; i--) r = mad(r, x, V(entries(table[i], part)));
  return r;
}

// 1 / x to 14 bits.
TCF_INLINE float guessed_inverse(float x) {
  const vec<float, 4> v = {x};
  return __builtin_ia32_rcp14ss_mask(v, v, v, -1)[0];
}
template <class V>
TCF_INLINE V guessed_inverse(V x) {
  if constexpr (lanes<V> < 16) {
    return low(guessed_inverse(join(x, x)));
  } else if constexpr (lanes<V> == 16) {
    return __builtin_ia32_rcp14ps512_mask(x, x, -1);
  } else {
    return join(guessed_inverse(low(x)), guessed_inverse(high(x)));
  }
}
// 1 / (1 + e), e up to 2^125; the sum's rounding does not come in, but for that of the guess.
template <class V>
TCF_INLINE V inverse_of_one_and(V e) {
  const V one = cst<V>(1);
  V g = guessed_inverse(V(one + e));
  return mad(g, V(mad(-g, e, one) - g), g);
}

// e^x = 2^(m / 16) e^r with r in [-ln 2 / 32, ln 2 / 32]; e^r - 1 of degree 3 (2^-29.2).
struct sixteenths {
  static constexpr float shifter = 0x1.8p23f, inverse = 23.0831206542234140f;
  static constexpr float ln2_high = 0x1.62e4p-5f, ln2_low = 0x1.7f7d1cp-24f;
};
// e^r - 1 of Sign x; the last bits of t are m.
template <int Sign, class V>
TCF_INLINE V expm1_of_sixteenths(V x, V& t) {
  typedef sixteenths S;
  t = mad(x, cst<V>(Sign * S::inverse), cst<V>(S::shifter));
  V n = exactly(t - cst<V>(S::shifter));
  V r = mad(n, cst<V>(-Sign * S::ln2_high), x);
  r = Sign > 0 ? mad(n, cst<V>(-S::ln2_low), r) : mad(n, cst<V>(-S::ln2_low), -r);
  return mad(mad(cst<V>(0.1666700878), r, cst<V>(0.5000162916)), r * r, r);
}
// The bits of 2^(j / 16) less j 2^19: with m 2^19 they are the bits of 2^(m / 16), while that is a
// normal number.
alignas(64) static constexpr float shifted_roots[16] = {
    0x1p0f, 0x1.fb5586p-1f, 0x1.f72b84p-1f, 0x1.f387a6p-1f, 0x1.f06fep-1f, 0x1.edea64p-1f,
    0x1.ebfdaep-1f, 0x1.eab07ep-1f, 0x1.ea09e6p-1f, 0x1.ea1148p-1f, 0x1.eace54p-1f, 0x1.ec4918p-1f,
    0x1.ee89fap-1f, 0x1.f199bep-1f, 0x1.f5818ep-1f, 0x1.fa4afap-1f};
// What they leave of 2^(j / 16), as a part of them.
alignas(64) static constexpr float roots_rest[16] = {
    0, 4.628547e-08f, -1.19921575e-08f, 4.7297824e-08f, 3.193418e-08f, 3.6210572e-08f,
    -3.099072e-08f, -7.475213e-09f, 1.7114271e-08f, -3.0476834e-08f, 5.233334e-09f,
    6.1075918e-09f, -1.4719605e-08f, -5.258795e-09f, -6.1282597e-09f, 5.1406093e-09f};
// e^(Sign x) where that is between the least normal number and 2^127; anything elsewhere.  The
// rest of the root halves the error.
template <int Sign = 1, bool Rest = false, class V>
TCF_INLINE V exp_of_sixteenths(V x) {
  typedef uints<V> U;
  V t, e = expm1_of_sixteenths<Sign>(x, t);
  if (Rest) e = e + entries(roots_rest, bits<ints<V>>(t));
  U root = bits<U>(V(entries(shifted_roots, bits<ints<V>>(t))));
  V s = bits<V>(U(root + (bits<U>(t) << 19)));
  return mad(s, e, s);
}
// The same up to the largest number: the whole part of m / 16 comes last.
template <class V>
TCF_INLINE V exp_of_sixteenths_to_end(V x) {
  typedef uints<V> U;
  V t, e = expm1_of_sixteenths<1>(x, t);
  U moved = bits<U>(t) << 19;
  U root = bits<U>(V(entries(shifted_roots, bits<ints<V>>(t))));
  V s = bits<V>(U(root + (moved & cst<U>(0x7fffffu))));
  return bits<V>(U(bits<U>(mad(s, e, s)) + (moved & cst<U>(0xff800000u))));
}

// erf around multiples of 1/4, of degree 5 (2^-24.5 with the rounding of the coefficients); the last
// part ends where it rounds to 1, just before 3.875.
alignas(64) static constexpr float erf_parts[6][16] = {
    {0, 0.2763264f, 0.5204999f, 0.71115565f, 0.8427008f, 0.92290014f, 0.96610516f, 0.9866717f,
     0.9953223f, 0.9985373f, 0.999593f, 0.9998994f, 0.9999779f, 0.9999957f, 0.9999993f,
     0.9999999f},
    {1.1283792f, 1.0600141f, 0.8787826f, 0.6429311f, 0.41510752f, 0.23652112f, 0.11893029f,
     0.05277499f, 0.020666985f, 0.007142319f, 0.0021782843f, 0.0005862775f, 0.00013925321f,
     2.9189097e-05f, 5.3994513e-06f, 9.366646e-07f},
    {-6.099162e-06f, -0.2649987f, -0.43938783f, -0.48220038f, -0.4151045f, -0.29565674f,
     -0.17840175f, -0.09236103f, -0.041339673f, -0.016074672f, -0.005438117f, -0.0016144613f,
     -0.0004118365f, -9.7714714e-05f, -2.6017318e-05f, -7.9537244e-07f},
    {-0.37595737f, -0.30916858f, -0.1464627f, 0.026779376f, 0.13836293f, 0.16753484f,
     0.13875292f, 0.090158895f, 0.048223503f, 0.021724671f, 0.008349999f, 0.0027602515f,
     0.00078901736f, 0.00019577309f, 4.228298e-05f, 1.1500544e-05f},
    {-0.0016855575f, 0.12607117f, 0.18208401f, 0.15035316f, 0.06910576f, -0.005538164f,
     -0.04395871f, -0.04770966f, -0.03414505f, -0.018902712f, -0.0090570245f, -0.0031727445f,
     -0.0013597811f, -0.0001449742f, 0.0002955073f, -0.00010167275f},
    {0.117998675f, 0.07966856f, 0.0073687076f, -0.052489243f, -0.06863372f, -0.04707367f,
     -0.014991032f, 0.0064445566f, 0.013005158f, 0.010640397f, 0.0061309463f, 0.0027734127f,
     0.0010272227f, 0.00031846733f, 8.371637e-05f, 1.8819204e-05f},
};
template <class V>
TCF_INLINE V erf_of_parts(V x) {
  const V most = cst<V>(0x1.effffep1), shift = cst<V>(0x1.8p21);
  V a = fabs(x);
  a = blend<V>(most < a, most, a);
  V t = a + shift;  // rounded to a multiple of 1/4, which its last bits count
  V r = a - exactly(t - shift);
  return copysign(poly_of_part(erf_parts, bits<ints<V>>(t), r), x);
}

// tanh from points whose sum with 3/4 has three bits after the first, of degree 4 (2^-24.6 with the
// rounding of the coefficients); the last bits of that sum's exponent and those three are the index.
alignas(64) static constexpr float tanh_parts[5][32] = {
    {0.84828365f, 0.90514827f, 0.94137555f, 0.9640276f, 0.9780261f, 0.9866143f, 0.99185973f,
     0.9950548f, 0.99699765f, 0.99889445f, 0.99959314f, 0.99985033f, 0.9999449f, 0.99997973f,
     0.99999255f, 0.99999726f, 0.999999f, 0.9999999f, 0, 0, 0, 0.062418748f, 0.124353f,
     0.1853332f, 0.24491866f, 0.3583574f, 0.46211717f, 0.5545997f, 0.63514894f, 0.7039056f,
     0.7615942f, 0.8093011f},
    {0.28041738f, 0.18070562f, 0.113810025f, 0.07064937f, 0.043465152f, 0.026592152f,
     0.016213339f, 0.009864277f, 0.005992931f, 0.0022087614f, 0.0008134212f, 0.00029857372f,
     0.0001101849f, 4.0652958e-05f, 1.4828722e-05f, 5.478988e-06f, 2.0700347e-06f,
     4.1173426e-08f, 0, 0, 1, 0.9961036f, 0.9845368f, 0.96564996f, 0.9400143f, 0.8715799f,
     0.7864476f, 0.69242233f, 0.59658796f, 0.5045201f, 0.41997287f, 0.34503138f},
    {-0.23798425f, -0.1635473f, -0.10708013f, -0.06805776f, -0.0424894f, -0.026218707f,
     -0.016057845f, -0.009785051f, -0.0059291343f, -0.0021885806f, -0.00080836174f,
     -0.00029217108f, -0.00010991845f, -4.1280367e-05f, -1.42732015e-05f, -5.422085e-06f,
     -2.151273e-06f, 5.6916844e-07f, 0, 0, 6.076828e-06f, -0.062144853f, -0.12244786f,
     -0.17886394f, -0.23016807f, -0.31233525f, -0.3634603f, -0.3841577f, -0.3790356f,
     -0.3552704f, -0.3198416f, -0.2792457f},
    {0.109817155f, 0.08770321f, 0.06228992f, 0.041503757f, 0.026719319f, 0.01674673f,
     0.010297625f, 0.0062329685f, 0.0036694843f, 0.0013570087f, 0.0005061167f, 0.00017206918f,
     6.976199e-05f, 2.7909451e-05f, 7.83208e-06f, 3.3378965e-06f, 1.3539354e-06f,
     -9.638471e-07f, 0, 0, -0.33391708f, -0.32936427f, -0.31306013f, -0.29131413f, -0.25856718f,
     -0.17866074f, -0.09320584f, -0.015246393f, 0.044167668f, 0.084267505f, 0.10425956f,
     0.11158729f},
    {-0.020888986f, -0.025034888f, -0.020802489f, -0.015028922f, -0.010238375f, -0.0065548867f,
     -0.0039941864f, -0.0023138833f, -0.001217733f, -0.00045086798f, -0.0001715372f,
     -5.0490595e-05f, -2.4309331e-05f, -1.0937714e-05f, -1.8589524e-06f, -1.089747e-06f,
     -3.9664982e-07f, 4.5613373e-07f, 0, 0, 0.016030686f, 0.061891023f, 0.09118095f,
     0.14037865f, 0.15703318f, 0.16981024f, 0.15451218f, 0.11756594f, 0.07920101f, 0.04126597f,
     0.017134998f, -0.0044573676f},
};
template <class V>
TCF_INLINE V tanh_of_parts(V x) {
  typedef ints<V> I;
  const V most = cst<V>(9.02), ahead = cst<V>(0.75);
  V a = fabs(x);
  a = blend<V>(most < a, most, a);
  I u = bits<I>(V(a + ahead));
  V start = bits<V>(I(u & cst<I>(-1 << 20))) - ahead;
  return copysign(poly_of_part(tanh_parts, I(u >> 20), V(a - start)), x);
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
#endif
