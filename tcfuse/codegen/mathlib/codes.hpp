// Floats of at most a byte, held as float: from their codes, to them, rounded to them.
// Integers of less than a byte, held as int32_t.
namespace tcf {

// The low bits.
template <int Bits, bool Signed, class V>
TCF_INLINE V wrapped(V v) {
  typedef uints<V> U;
  if constexpr (Signed) {
    return bits<V>(bits<U>(v) << (32 - Bits)) >> (32 - Bits);
  } else {
    return bits<V>(bits<U>(v) & cst<U>((1u << Bits) - 1));
  }
}
// The bits of every lane as another type.
template <class To, class V>
TCF_INLINE with_elem<V, To> reinterpret(V v) {
  return bits<with_elem<V, To>>(v);
}

// A sign, then an exponent, then a fraction, up to the code `Last`.  A value beyond that is
// `Beyond`, which is an infinity if it is another code than `NaN`; with `OneZero`, the code of -0
// is that of the only NaN.
template <int Exponent, int Fraction, int Bias, uint32_t Last, uint32_t Beyond, uint32_t NaN,
          bool OneZero = false>
struct float_format {
  static constexpr int sign = Exponent + Fraction, fraction = Fraction, bias = Bias;
  static constexpr uint32_t last = Last, beyond = Beyond, nan = NaN;
  static constexpr bool one_zero = OneZero, infinite = Beyond > Last && Beyond != NaN;
};
typedef float_format<4, 3, 7, 0x7e, 0x7f, 0x7f> float8e4m3fn;
typedef float_format<4, 3, 8, 0x7f, 0x80, 0x80, true> float8e4m3fnuz;
typedef float_format<5, 2, 15, 0x7b, 0x7c, 0x7e> float8e5m2;
typedef float_format<5, 2, 16, 0x7f, 0x80, 0x80, true> float8e5m2fnuz;
typedef float_format<2, 1, 1, 0x7, 0x7, 0x8> float4e2m1;  // NaN becomes -0, as in ml_dtypes
struct float8e8m0;  // an exponent alone: 2^-127 to 2^127, and a NaN

// 2^E in every lane.
template <class V>
TCF_INLINE V power_of_two(int e) {
  return bits<V>(cst<uints<V>>(uint32_t(e + 127) << 23));
}

template <class Format, class V>
TCF_INLINE with_elem<V, float> from_code(V code) {
  typedef with_elem<V, uint32_t> U;
  typedef with_elem<V, float> F;
  const U c = cast<uint32_t>(code);
  if constexpr (same<Format, float8e8m0>) {
    F r = bits<F>(select(eq(c, cst<U>(0)), cst<U>(0x400000), c << 23));
    return select(eq(c, cst<U>(255)), bits<F>(cst<U>(0x7fc00000)), r);
  } else {
    constexpr int shift = 23 - Format::fraction, sign = Format::sign;
    const U em = c & cst<U>((1u << sign) - 1);
    F normal = bits<F>((em << shift) + cst<U>(uint32_t(127 - Format::bias) << 23));
    F tiny = cast<float>(cast<int32_t>(em)) *
             power_of_two<F>(1 - Format::bias - Format::fraction);
    F r = select(lt(em, cst<U>(1u << Format::fraction)), tiny, normal);
    r = select(gt(em, cst<U>(Format::last)), bits<F>(cst<U>(0x7fc00000)), r);
    if constexpr (Format::infinite) {
      r = select(eq(em, cst<U>(Format::beyond)), bits<F>(cst<U>(0x7f800000)), r);
    }
    r = bits<F>(bits<U>(r) | ((c >> sign) << 31));
    if constexpr (Format::one_zero) {
      r = select(eq(c, cst<U>(Format::nan)), bits<F>(cst<U>(0x7fc00000)), r);
    }
    return r;
  }
}

// Nearest, ties to even.  As a power of two, as ml_dtypes does it: ties up, and NaN for what has no
// logarithm.
template <class Format, class V>
TCF_INLINE with_elem<V, uint8_t> to_code(V v) {
  typedef uints<V> U;
  const U u = bits<U>(v), a = u & cst<U>(0x7fffffffu);
  if constexpr (same<Format, float8e8m0>) {
    U r = (u + cst<U>(0x400000)) >> 23;
    r = select(lt(u, cst<U>(0x800000)), (u + cst<U>(0x200000)) >> 23, r);  // 0x400000 is 2^-127
    // From the middle above the largest one on; infinities, NaN and negative numbers too.
    r = select(ge(u, cst<U>(0x7f400000)), cst<U>(255), r);
    return cast<uint8_t>(select(eq(u, cst<U>(0)), cst<U>(255), r));
  } else {
    constexpr int shift = 23 - Format::fraction;
    constexpr uint32_t least = uint32_t(128 - Format::bias) << 23;
    // Adding a power of two lines a small result up with its fraction, rounding it on the way.
    constexpr int aligned = 24 - Format::bias - Format::fraction;
    const V one = power_of_two<V>(aligned);
    U tiny = bits<U>(bits<V>(a) + one) - bits<U>(one);
    U normal = a - cst<U>(uint32_t(127 - Format::bias) << 23);
    normal = normal + cst<U>((1u << (shift - 1)) - 1) + ((a >> shift) & cst<U>(1));
    U r = select(lt(a, cst<U>(least)), tiny, normal >> shift);
    r = min_(r, cst<U>(Format::beyond));
    r = select(gt(a, cst<U>(0x7f800000)), cst<U>(Format::nan), r);
    const U sign = (u >> 31) << Format::sign;
    if constexpr (Format::one_zero) {
      return cast<uint8_t>(select(eq(r, cst<U>(0)), r, r | sign));
    } else {
      return cast<uint8_t>(r | sign);
    }
  }
}
template <class Format, class V>
TCF_INLINE V round_code(V v) {
  return from_code<Format>(to_code<Format>(v));
}

}  // namespace tcf
