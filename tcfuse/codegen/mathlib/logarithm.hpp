// log, log2, log10, log1p and pow.
//
// x = 2^e m with m in [1/sqrt 2, sqrt 2), by integers; f = m - 1 is exact.  Floats take a
// polynomial in f; doubles s = f / (2 + f), log m = 2 atanh s = f - s (f - s^2 R(s^2)).
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

// m - 1, and e in `e`, of a positive x; denormals are scaled up first.
template <class V>
TCF_INLINE V split_power(V x, V& e) {
  typedef elem<V> T;
  typedef format<T> F;
  typedef uints<V> U;
  typedef uint_elem<T> E;
  const E root = bits<E>(T(0.70710678118654752440)), one = bits<E>(T(1));
  const V small = cst<V>(F::least);
  auto tiny = x < small;
  x = blend<V>(tiny, x * cst<V>(T(E(1) << (F::fraction + 1))), x);
  U u = U(bits<U>(x) + (one - root));
  // The exponent's bits under those of 2^fraction make a float of that value.
  U biased = U((u >> F::fraction) | cst<U>(bits<E>(T(E(1) << F::fraction))));
  const V bias = cst<V>(T((E(1) << F::fraction) + F::bias));
  e = bits<V>(biased) - blend<V>(tiny, bias + cst<V>(T(F::fraction + 1)), bias);
  U m = U((u & ((E(1) << F::fraction) - 1)) + root);
  return bits<V>(m) - cst<V>(1);
}

// log(1 + f) less f, for f in [1/sqrt 2 - 1, sqrt 2 - 1]: degree 10 (2^-27.4); 2^-59.5.
template <class V>
TCF_INLINE V log1p_tail(V f) {
  if constexpr (same<elem<V>, float>) {
    V p = poly(f, -0.07634503852, 0.1276157886, -0.1316017989, 0.1420175714, -0.1662335746,
               0.2000122692, -0.2500082104, 0.3333333171);
    V z = f * f;
    return mad(p, z * f, cst<V>(-0.5) * z);
  } else {
    V s = f / (cst<V>(2) + f), z = s * s;
    V p = poly(z, 0.1479547228094680017, 0.1531409911071213993, 0.1818356239517753008,
               0.222221986109486998, 0.2857142874201435148, 0.399999999994163736,
               0.6666666666666734156);
    return -s * mad(-z, p, f);
  }
}

// What log and its scalings are outside (0, inf).
template <class V>
TCF_INLINE V log_special(V x, V y) {
  y = blend<V>(x < inf<V>(), y, x);  // inf and NaN
  y = blend<V>(x == cst<V>(0), -inf<V>(), y);
  return blend<V>(x < cst<V>(0), nan<V>(), y);
}

template <class V>
TCF_INLINE V log(V x) {
  typedef format<elem<V>> F;
  V e, f = split_power(x, e);
  V tail = mad(e, cst<V>(F::ln2_low), log1p_tail(f));
  return log_special(x, mad(e, cst<V>(F::ln2_high), f + tail));
}

// In log2 and log10, log m = h + t with h of few bits, so that its product by the scale is
// exact.
template <class V>
TCF_INLINE V few_bits(V v) {
  typedef uints<V> U;
  if constexpr (same<elem<V>, float>) return bits<V>(U(bits<U>(v) & 0xfffff000u));
  else return bits<V>(U(bits<U>(v) & 0xffffffff00000000u));
}
template <class V>
TCF_INLINE V log2(V x) {
  constexpr bool single = same<elem<V>, float>;
  V e, f = split_power(x, e), tail = log1p_tail(f);
  V h = few_bits(f + tail), t = (f - h) + tail;
  const V high = cst<V>(single ? 0x1.714p0 : 0x1.71547652p0);
  const V low = cst<V>(single ? 0x1.47652cp-12 : 0x1.705fc2eefa2p-33);
  V y = mad(h, low, t * cst<V>(1.44269504088896340736));
  return log_special(x, e + mad(h, high, y));
}
template <class V>
TCF_INLINE V log10(V x) {
  constexpr bool single = same<elem<V>, float>;
  typedef format<elem<V>> F;
  V e, f = split_power(x, e), tail = log1p_tail(f);
  V h = few_bits(f + tail), t = (f - h) + tail;
  const V high = cst<V>(single ? 0x1.bcap-2 : 0x1.bcb7b152p-2);
  const V low = cst<V>(single ? 0x1.7b1526p-14 : 0x1.b9438ca9aadd5p-36);
  V y = mad(h, low, t * cst<V>(0.43429448190325182765));
  y = mad(e, cst<V>(F::log10_2_low), y);
  return log_special(x, mad(e, cst<V>(F::log10_2_high), mad(h, high, y)));
}

// 1 + x = 2^e m gives m - 1 = x 2^-e + (2^-e - 1), whose only rounding is the last; beyond 2^25
// (2^54) the 1 is lost anyhow and m, rounded, will do.
template <class V>
TCF_INLINE V log1p(V x) {
  typedef elem<V> T;
  typedef format<T> F;
  typedef uints<V> U;
  typedef uint_elem<T> E;
  const E root = bits<E>(T(0.70710678118654752440)), one = bits<E>(T(1));
  const V lone = cst<V>(1), far = cst<V>(T(E(1) << (F::fraction + 2)));
  U u = U(bits<U>(V(x + lone)) + (one - root));
  U biased = U((u >> F::fraction) | cst<U>(bits<E>(T(E(1) << F::fraction))));
  V e = bits<V>(biased) - cst<V>(T((E(1) << F::fraction) + F::bias));
  V m = bits<V>(U((u & ((E(1) << F::fraction) - 1)) + root));
  V s = exp2_whole(-e);
  V f = blend<V>(x < far, mad(x, s, s - lone), m - lone);
  V tail = mad(e, cst<V>(F::ln2_low), log1p_tail(f));
  V y = mad(e, cst<V>(F::ln2_high), f + tail);
  y = blend<V>((x < inf<V>()) & (x != cst<V>(0)), y, x);  // keeps -0; inf and NaN
  y = blend<V>(x == -lone, -inf<V>(), y);
  return blend<V>(x < -lone, nan<V>(), y);
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
