// erf, erfc, their scaled and inverse forms, and the normal distribution.
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

// erf on [-1, 1]: x + x q(x^2), q of degree 6 (2^-29.6); 13 (2^-68.6).
template <class V>
TCF_INLINE V erf_small(V x) {
  V z = x * x, q;
  if constexpr (same<elem<V>, float>) {
    q = poly(z, 7.853857905e-5, -0.0008010192234, 0.005188327477, -0.02685381179, 0.1128358514,
             -0.3761262582, 0.128379166);
  } else {
    q = poly(z, -4.229244065612558829e-12, 8.708089139425879098e-11,
             -1.216433630430791643e-9, 1.4792374021189145e-8, -1.636464057569385e-7,
             1.646204544888310346e-6, -0.00001492564757572018848, 0.0001205533290352192983,
             -0.0008548327021960418151, 0.00522397762542391059, -0.02686617064512992679,
             0.1128379167095512089, -0.376126389031837524, 0.128379167095512574);
  }
  return mad(q, x, x);
}
// erfc(a) e^(a^2) for a >= 0.48: p(t) / (1 + 2 a), t = (a - k) / (a + k); k = 2.5, degree 9
// (2^-29.7); k = 3, degree 22 (2^-59.9).
template <class V>
TCF_INLINE V erfcx_large(V a) {
  constexpr bool single = same<elem<V>, float>;
  const V k = cst<V>(single ? 2.5 : 3.0);
  V t = (a - k) / (a + k), p;
  if constexpr (single) {
    p = poly(t, 0.0005358843013, 0.0004109215522, -0.004349621104, 0.0009588234328,
             0.03275583609, -0.1029707562, 0.1576302668, -0.09902436124, -0.1223567706,
             1.264838183);
  } else {
    p = poly(t, -4.190641155326654338e-9, -1.077033197293222152e-8, 3.379742526003028004e-8,
             9.913050794403576265e-8, -1.337273828604288153e-7, -6.151164931172738366e-7,
             3.522398555009601245e-7, 3.471976440762632326e-6, -7.298433003062172093e-7,
             -0.00002010053899174916827, 4.949108431693196205e-6, 0.0001250993737396953061,
             -0.0001051597481130640826, -0.0007798322796296440739, 0.001888690354984426354,
             0.002529391817192332343, -0.02377051491843862101, 0.06830802734389497348,
             -0.1192736634153152654, 0.1296451587027633304, -0.04756229435345064519,
             -0.1356211061245811978, 1.253008058269729652);
  }
  return p / mad(cst<V>(2), a, cst<V>(1));
}
// e^(-a^2), the square's rounding made good.
template <class V>
TCF_INLINE V exp_minus_square(V a) {
  const V most = cst<V>(same<elem<V>, float> ? 11 : 28);  // far below anything that matters
  a = blend<V>(a > most, most, a);
  twin<V> z = exact_product(a, a);
  V e = exp_bounded(-z.high);
  return mad(-z.low, e, e);
}
// erfc of a >= 0.48; 0 where the result is below the least normal number.
template <class V>
TCF_INLINE V erfc_large(V a) {
  const V most = cst<V>(same<elem<V>, float> ? 9.1945486 : 26.543258454250981);
  V b = blend<V>(a < cst<V>(1e30), a, cst<V>(1e30));
  b = blend<V>(a == a, b, a);
  V r = product(erfcx_large(b), exp_minus_square(b));
  return blend<V>(a > most, cst<V>(0), r);
}

// Floats, fused: x (1/4 + p(x^2) / q(x^2)) of degrees 6 and 5 (2^-26.3); the exact x / 4 halves
// what the quotient's rounding does to large results.  The bound is a point where all of it
// rounds to 1; the coefficients were moved by units in the last place to lessen the worst error.
template <class V>
TCF_INLINE V erf_quotient(V x) {
  const V most = cst<V>(3.9485333);
  V a = blend<V>(most < x, most, x);
  a = blend<V>(-most > a, -most, a);
  V z = a * a;
  V p = poly(z, -1.17513643e-8, -9.30905298e-6, 4.72436805e-5, -1.12631215e-5, 0.0211208574,
             0.0492344163, 0.713683009);
  V q = poly(z, 5.3296284e-5, 0.00107669667, 0.0126191396, 0.0926509202, 0.403968066,
             0.81249994);
  return mad(a, quotient(p, q), cst<V>(0.25) * a);
}
// Floats whose products are rounded: beyond 1, 1 - q(|x| - 2.46) of degree 12 (2^-24.9), up to
// where that is 1.
template <class V>
TCF_INLINE V erf(V x) {
  const V one = cst<V>(1);
  V a = fabs(x), large;
#if TCF_PERMUTED
  if constexpr (same<elem<V>, float>) return erf_of_parts(x);
#endif
  if constexpr (same<elem<V>, float> && TCF_FUSED) return erf_quotient(x);
  if constexpr (same<elem<V>, float>) {
    const V most = cst<V>(3.92);
    V t = blend<V>(most < a, most, a) - cst<V>(2.46);
    large = one - poly(t, 9.055359763e-6, -2.544395077e-5, -5.124476428e-5, 0.0003018015841,
                       -0.0003920866151, -0.0004624096938, 0.002964496852, -0.006797453996,
                       0.009904371367, -0.009833061392, 0.006535839013, -0.002656187569,
                       0.0005033247902);
  } else {
    large = one - erfc_large(a);
  }
  return blend<V>(a > one, copysign(large, x), erf_small(x));
}
template <class V>
TCF_INLINE V erfc(V x) {
  const V cut = cst<V>(0.5), one = cst<V>(1);
  V a = fabs(x), large = erfc_large(a);
  V small = one - erf_small(x);
  V r = blend<V>(a < cut, small, large);
  return blend<V>(x <= -cut, cst<V>(2) - large, r);
}
template <class V>
TCF_INLINE V erfcx(V x) {
  typedef elem<V> T;
  const V cut = cst<V>(0.5), one = cst<V>(1), most = cst<V>(same<T, float> ? 11 : 28);
  V a = fabs(x), b = blend<V>(a > most, most, a);
  twin<V> z = exact_product(b, b);
  V e = exp(z.high);
  e = blend<V>(e < inf<V>(), mad(z.low, e, e), e);
  // Beyond the fit, the asymptotic series in 1 / (2 a^2).
  V h = cst<V>(0.70710678118654752440) / a, w = h * h;
  V tail = poly(w, -135135, 10395, -945, 105, -15, 3, -1);
  tail = mad(tail, w, cst<V>(1)) * (cst<V>(0.79788456080286535588) * h);
  V far = blend<V>(a < cst<V>(same<T, float> ? 10 : 27), erfcx_large(a), tail);
  V small = (one - erf_small(x)) * e;
  V r = blend<V>(a < cut, small, far);
  r = blend<V>(x <= -cut, mad(cst<V>(2), e, -far), r);
  return blend<V>(x == x, r, x);
}

// The y with erf(y) = p and erfc(y) = q = 1 - p, both positive, from a closed form that is
// right to 0.4 %: Halley's steps on erf where p <= 1/2, else Newton's on log erfc.
template <class V>
TCF_INLINE V erf_inverse(V p, V q) {
  const V two = cst<V>(2), c = cst<V>(0.147), half = cst<V>(0.5);
  const V root = cst<V>(0.88622692545275801365);  // sqrt(pi) / 2
  V lq = log(q), l = lq + log(V(two - q));
  V t = cst<V>(4.3307467508) + half * l;
  V y = sqrt(sqrt(t * t - l / c) - t);
  auto central = p <= half;
  // Near 0 the closed form loses its digits.
  V near = blend<V>(p < cst<V>(0.01), p * root, blend<V>(central, y, half));
  V far = blend<V>(central, half, y);
  for (int i = 0; i < 3; i++) {
    V u = (erf(near) - p) * root / exp_minus_square(near);
    near = near - u / mad(near, u, cst<V>(1));
    V x = erfcx_large(far);
    far = mad((log(x) - lq) - far * far, x * root, far);
  }
  return blend<V>(central, near, far);
}
template <class V>
TCF_INLINE V erfinv(V x) {
  if constexpr (same<elem<V>, float>) {
    return cast<float>(erfinv(cast<double>(x)));
  } else {
    const V one = cst<V>(1);
    V a = fabs(x);
    V y = erf_inverse(a, V(one - a));
    y = blend<V>(a < cst<V>(1e-9), a * cst<V>(0.88622692545275801365), y);
    y = blend<V>(a == one, inf<V>(), y);
    y = blend<V>(a > one, nan<V>(), y);
    return blend<V>(x == x, copysign(y, x), x);
  }
}
template <class V>
TCF_INLINE V erfcinv(V x) {
  if constexpr (same<elem<V>, float>) {
    return cast<float>(erfcinv(cast<double>(x)));
  } else {
    const V one = cst<V>(1), two = cst<V>(2), zero = cst<V>(0);
    V q = blend<V>(x > one, two - x, x);
    V y = erf_inverse(V(one - q), q);
    y = blend<V>(q == one, zero, y);
    y = blend<V>(q == zero, inf<V>(), y);
    y = blend<V>(x > one, -y, y);
    y = blend<V>((x < zero) | (x > two), nan<V>(), y);
    return blend<V>(x == x, y, x);
  }
}
// erfc(-x / sqrt 2) / 2; what the product lost is made good to first order in the tail.
template <class V>
TCF_INLINE V normcdf(V x) {
  if constexpr (same<elem<V>, float>) {
    V r = cast<float>(normcdf(cast<double>(x)));
    return blend<V>(r < cst<V>(format<float>::least), cst<V>(0), r);
  } else {
    const V most = cst<V>(60), root = cst<V>(-0.70710678118654752440);
    V b = blend<V>(fabs(x) > most, copysign(most, x), x);
    twin<V> t = exact_product(b, root);
    t.low = t.low + b * cst<V>(4.83364665672645672553e-17);
    V r = erfc(t.high);
    V slope = blend<V>(t.high > cst<V>(1), cst<V>(-2) * t.high * t.low, cst<V>(0));
    return cst<V>(0.5) * mad(r, slope, r);
  }
}
template <class V>
TCF_INLINE V normcdfinv(V p) {
  if constexpr (same<elem<V>, float>) {
    return cast<float>(normcdfinv(cast<double>(p)));
  } else {
    return cst<V>(-1.41421356237309504880) * erfcinv(V(p + p));
  }
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
