// exp, exp2, exp10, expm1 and what is made of them: sigmoid, tanh, sinh, cosh.
//
// exp(x) = 2^n p(r), n = round(x / ln 2), r in [-ln 2 / 2, ln 2 / 2].  A result below the
// smallest normal number is exactly 0: denormals on the way to zero would cost more than the
// function.
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

// How floats and doubles are laid out, and ln 2 in a part of few bits and the rest.
template <class T> struct format;
template <> struct format<float> {
  static constexpr int fraction = 23, bias = 127;
  static constexpr float shifter = 0x1.8p23f, least = 0x1p-126f;
  static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
  static constexpr float log10_2_high = 0x1.344p-2f, log10_2_low = 0x1.3509f8p-18f;
};
template <> struct format<double> {
  static constexpr int fraction = 52, bias = 1023;
  static constexpr double shifter = 0x1.8p52, least = 0x1p-1022;
  static constexpr double ln2_high = 0x1.62e42fefa2p-1, ln2_low = 0x1.9ef35793c7673p-41;
  static constexpr double log10_2_high = 0x1.34413509f6p-2, log10_2_low = 0x1.9fef311f12b36p-42;
};

// 2^n for whole n in [-bias, bias + 1]: 0 and inf at the two ends.
template <class V>
TCF_INLINE V exp2_whole(V n) {
  typedef format<elem<V>> F;
  V t = n + cst<V>(F::shifter + F::bias);
  return bits<V>(bits<uints<V>>(t) << F::fraction);
}

// e^r - 1 on [-ln 2 / 2, ln 2 / 2]: r + r^2 q(r), q of degree 4 (2^-26.2), 9 (2^-55.6).
template <class V>
TCF_INLINE V expm1_factor(V r) {
  if constexpr (same<elem<V>, float>) {
    return poly(r, 0.001388250624, 0.008366580145, 0.04166720185, 0.1666654318, 0.4999999814);
  } else {
    return poly(r, 2.505380961525545799e-8, 2.762616070727090041e-7, 2.755740776859245178e-6,
                0.00002480150498088138459, 0.0001984126971843732301,
                0.001388888893179310389, 0.008333333333389922449, 0.04166666666657611532,
                0.1666666666666658862, 0.5000000000000005225);
  }
}
template <class V>
TCF_INLINE V exp_reduced(V r) {
  return mad(mad(expm1_factor(r), r, cst<V>(1)), r, cst<V>(1));
}
// round(x / ln 2) and the remainder x - n ln 2.
template <class V>
TCF_INLINE V less_ln2(V x, V& n) {
  typedef format<elem<V>> F;
  n = roundeven(x * cst<V>(1.44269504088896340736));
  V r = mad(n, cst<V>(-F::ln2_high), x);
  return mad(n, cst<V>(-F::ln2_low), r);
}
// p 2^n for p in [0.7, 1.42], n from -126 to 128 (-1022 to 1024): added to p's exponent, so
// that 2^n itself need not be a number.
template <class V>
TCF_INLINE V scale(V p, V n) {
  typedef format<elem<V>> F;
  typedef uints<V> U;
  V t = n + cst<V>(F::shifter);
  return bits<V>(U(bits<U>(p) + (bits<U>(t) << F::fraction)));
}
// y, or what a power function is above the largest and below the smallest finite result.
template <class V>
TCF_INLINE V bounded(V x, V y, V least, V most) {
  y = blend<V>(x <= most, y, x + inf<V>());  // inf; NaN of a NaN
  return blend<V>(x < least, cst<V>(0), y);
}

// n = round(x / ln 2) and x - n ln 2.  Added to the shift, n is rounded to a whole number and stands
// in the last bits of t, from where it can be moved to an exponent.
template <class V>
TCF_INLINE V less_ln2(V x, V shift, V& t) {
  typedef format<elem<V>> F;
  t = mad(x, cst<V>(1.44269504088896340736), shift);
  V n = exactly(t - shift);
  return mad(n, cst<V>(-F::ln2_low), mad(n, cst<V>(-F::ln2_high), x));
}
// exp where x is at most 88 (709); NaN of a NaN.
template <class V>
TCF_INLINE V exp_bounded(V x) {
  typedef format<elem<V>> F;
  const V least = cst<V>(same<elem<V>, float> ? -87.33654022216797 : -708.3964185322641);
#if TCF_PERMUTED
  if constexpr (same<elem<V>, float>) {
    return blend<V>(x < least, cst<V>(0), exp_of_sixteenths(x));
  }
#endif
  V t, r = less_ln2(x, cst<V>(F::shifter + F::bias), t);
  V y = exp_reduced(r) * bits<V>(bits<uints<V>>(t) << F::fraction);
  return blend<V>(x < least, cst<V>(0), y);
}
template <class V>
TCF_INLINE V exp(V x) {
  constexpr bool single = same<elem<V>, float>;
  typedef format<elem<V>> F;
  typedef uints<V> U;
  const V least = cst<V>(single ? -87.33654022216797 : -708.3964185322641);
  const V most = cst<V>(single ? 88.72283172607422 : 709.782712893384);
#if TCF_PERMUTED
  if constexpr (single) return bounded(x, exp_of_sixteenths_to_end(x), least, most);
#endif
  V t, r = less_ln2(x, cst<V>(F::shifter), t);
  V y = bits<V>(U(bits<U>(exp_reduced(r)) + (bits<U>(t) << F::fraction)));
  return bounded(x, y, least, most);
}

template <class V>
TCF_INLINE V exp2(V x) {
  constexpr bool single = same<elem<V>, float>;
  V n = roundeven(x), f = x - n;
  V r = mad(f, cst<V>(0.693147180559945309417),
            f * cst<V>(single ? -1.904654299957e-9 : 2.319046813846299558e-17));
  return bounded(x, scale(exp_reduced(r), n), cst<V>(single ? -126 : -1022),
                 cst<V>(single ? 0x1.fffffep6 : 0x1.fffffffffffffp9));
}

template <class V>
TCF_INLINE V exp10(V x) {
  constexpr bool single = same<elem<V>, float>;
  typedef format<elem<V>> F;
  V n = roundeven(x * cst<V>(3.32192809488736234787));
  V f = mad(n, cst<V>(-F::log10_2_high), x);
  f = mad(n, cst<V>(-F::log10_2_low), f);
  V r = mad(f, cst<V>(2.30258509299404568402),
            f * cst<V>(single ? -3.1975436737857e-8 : -2.1707562233822493508e-16));
  return bounded(x, scale(exp_reduced(r), n),
                 cst<V>(single ? -37.92977905273 : -307.6526555685887),
                 cst<V>(single ? 38.53183936 : 308.25471555991674));
}

// e^x - 1 as 4 (tail + head), tail = (e^r - 1) 2^(n-2) and head = 2^(n-2) - 1/4, with
// r = x - n ln 2; needs |x| below 89.5 (710.5).
template <class V>
TCF_INLINE V expm1_quarter(V x) {
  V n, r = less_ln2(x, n);
  V s = exp2_whole(n - cst<V>(2));
  return mad(mad(expm1_factor(r) * r, r, r), s, s - cst<V>(0.25));
}

// |x| below which x is the result of an odd function with a slope of 1 at 0.
template <class V>
TCF_INLINE V negligible() {
  return cst<V>(same<elem<V>, float> ? 0x1p-13 : 0x1p-28);
}

template <class V>
TCF_INLINE V expm1(V x) {
  typedef elem<V> T;
  const V least = cst<V>(same<T, float> ? -18 : -38);
  const V most = cst<V>(same<T, float> ? 88.72283172607422 : 709.782712893384);
  V y = blend<V>(least > x, least, x);
  y = blend<V>(most < y, most, y);
  V r = cst<V>(4) * expm1_quarter(y);
  r = blend<V>(x > most, inf<V>(), r);
  // A tiny x would lose bits as a denormal quarter.
  return blend<V>(fabs(x) < cst<V>(same<T, float> ? 0x1p-25 : 0x1p-54), x, r);
}

#if TCF_PERMUTED
// With e^-x and the inverse as exact as they are here, 1 / (1 + e^-x) is accurate on both sides.
template <class V>
TCF_INLINE V sigmoid_by_inverse(V x) {
  const V least = cst<V>(-87.33654022216797), most = cst<V>(87);
  V a = blend<V>(most < x, most, x);
  V y = inverse_of_one_and(exp_of_sixteenths<-1, true>(a));
  return blend<V>(x < least, cst<V>(0), y);
}
#endif
// 1 / (1 + e^-x), relatively accurate on both sides; 0 where it is below the least normal.
// Below 0 it is e^x - e^x sigmoid(x), which leaves e^x almost alone where that is small.
template <class V>
TCF_INLINE V sigmoid(V x) {
  const V one = cst<V>(1);
#if TCF_PERMUTED
  if constexpr (same<elem<V>, float>) return sigmoid_by_inverse(x);
#endif
  V e = exp_bounded(-fabs(x));
  V y = quotient(one, V(one + e));
  return blend<V>(x < cst<V>(0), mad(-e, e * y, e), y);
}

// Floats, fused: E / (E + 3/2), E = 3/4 (e^2|x| - 1): of numbers that size the roundings of E and
// of the sum are the least part.  The last bits of t are n + bias: a shift makes them 2^n.
template <class V>
TCF_INLINE V tanh_fused(V x) {
  typedef format<elem<V>> F;
  const V most = cst<V>(9.02), k = cst<V>(0.75), shift = cst<V>(F::shifter + F::bias);
  V a = fabs(x);
  a = blend<V>(most < a, most, a);
  V t = mad(a, cst<V>(2.88539008177792681472), shift), n = exactly(t - shift);
  V r = mad(n, cst<V>(-0.693147180559945309417), a + a);
  V s = bits<V>(bits<uints<V>>(t) << F::fraction);
  V q = poly(r, 0.001041187968, 0.006274935109, 0.03125040139, 0.1249990739, 0.3749999861);
  V p = mad(r, k, q * (r * r));
  V e = mad(p, s, mad(s, k, -k));
  return copysign(quotient(e, V(e + cst<V>(1.5))), x);
}
// Floats whose products are rounded: x + x^3 q(x^2) below 0.6 (2^-28.4), 1 - 2 / (e^2|x| + 1)
// above, with e^r to 2^-23.4.
// Doubles: E / (E + 2), E = e^2|x| - 1.
template <class V>
TCF_INLINE V tanh(V x) {
  typedef elem<V> T;
#if TCF_PERMUTED
  if constexpr (same<T, float>) return tanh_of_parts(x);
#endif
  if constexpr (same<T, float> && TCF_FUSED) return tanh_fused(x);
  // Beyond this the result rounds to 1.
  const V most = cst<V>(same<T, float> ? 9.02 : 19.07), one = cst<V>(1);
  V a = fabs(x);
  a = blend<V>(most < a, most, a);
  if constexpr (same<T, float>) {
    V n = roundeven(a * cst<V>(2.88539008177792681472));
    V r = mad(n, cst<V>(-0.693147180559945309417), a + a);
    V p = poly(r, 0.008290317499, 0.04189792702, 0.1666763614, 0.4999914955, 0.9999997072, 1);
    V large = one - cst<V>(2) / mad(p, exp2_whole(n), one);
    V z = a * a;
    V q = poly(z, -0.005895164592, 0.02079597714, -0.05378383188, 0.1333192415, -0.33333298);
    return copysign(V(blend<V>(a < cst<V>(0.6), mad(q, z * a, a), large)), x);
  } else {
    V e = expm1_quarter(a + a);
    return blend<V>(a < negligible<V>(), x, copysign(V(e / (e + cst<V>(0.5))), x));
  }
}

template <class V>
TCF_INLINE V sinh(V x) {
  typedef elem<V> T;
  const V most = cst<V>(same<T, float> ? 89.5 : 710.5);
  V a = fabs(x);
  a = blend<V>(most < a, most, a);
  V e = expm1_quarter(a);
  V small = cst<V>(2) * (e + e / (cst<V>(4) * e + cst<V>(1)));
  V large = mad(cst<V>(2), e, cst<V>(0.5));
  V r = blend<V>(a > cst<V>(20), large, small);
  const V over = cst<V>(same<T, float> ? 89.41598510742188 : 710.4758600739439);
  r = blend<V>(a > over, inf<V>(), r);
  return blend<V>(a < negligible<V>(), x, copysign(r, x));
}
template <class V>
TCF_INLINE V cosh(V x) {
  typedef elem<V> T;
  const V most = cst<V>(same<T, float> ? 89.5 : 710.5);
  V a = fabs(x);
  a = blend<V>(most < a, most, a);
  V e = expm1_quarter(a) + cst<V>(0.25);
  V r = mad(cst<V>(2), e, cst<V>(0.125) / e);
  const V over = cst<V>(same<T, float> ? 89.41598510742188 : 710.4758600739439);
  return blend<V>(a > over, inf<V>(), r);
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
