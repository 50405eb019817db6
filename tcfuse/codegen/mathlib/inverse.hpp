// asin, acos, atan, atan2, asinh, acosh, atanh.
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

// (asin(s) / s - 1) / z for z = s^2 <= 1/4: degree 4 (2^-27.6); 12 (2^-59.9).
template <class V>
TCF_INLINE V asin_factor(V z) {
  if constexpr (same<elem<V>, float>) {
    return poly(z, 0.04216630218, 0.02417951356, 0.0454703775, 0.07495297615, 0.1666675248);
  } else {
    return poly(z, 0.03262846973296669269, -0.02099881196382498622, 0.02170726714786322899,
                0.003706483669873535075, 0.01078023283692353743, 0.01139891575193632583,
                0.01398082013015041619, 0.01735161204638671638, 0.02237221498598565161,
                0.03038194270783526358, 0.04464285717461098655, 0.0749999999997080047,
                0.1666666666666676044);
  }
}
// pi as a value and what it lacks.
template <class V>
inline constexpr elem<V> pi_high = elem<V>(3.14159265358979323846);
template <class V>
inline constexpr elem<V> pi_low =
    elem<V>(same<elem<V>, float> ? -8.74227765734758577e-8 : 1.22464679914735317636e-16);

// Beyond 1/2, asin x = pi/2 - 2 asin sqrt((1 - x) / 2).
template <class V>
TCF_INLINE V asin(V x) {
  V a = fabs(x);
  auto large = a > cst<V>(0.5);
  V z = blend<V>(large, (cst<V>(1) - a) * cst<V>(0.5), x * x);
  V s = blend<V>(large, sqrt(z), a);
  V r = mad(asin_factor(z), z * s, s);
  V y = cst<V>(pi_high<V> / 2) - (cst<V>(2) * r - cst<V>(pi_low<V> / 2));
  return copysign(V(blend<V>(large, y, r)), x);
}
template <class V>
TCF_INLINE V acos(V x) {
  V a = fabs(x);
  auto large = a > cst<V>(0.5);
  V z = blend<V>(large, (cst<V>(1) - a) * cst<V>(0.5), x * x);
  V s = blend<V>(large, sqrt(z), x);
  V r = mad(asin_factor(z), z * s, s);
  V twice = r + r;
  V far = cst<V>(pi_high<V>) - (twice - cst<V>(pi_low<V>));
  V near = cst<V>(pi_high<V> / 2) - (r - cst<V>(pi_low<V> / 2));
  return blend<V>(large, blend<V>(x < cst<V>(0), far, twice), near);
}

// atan(n / d) for 0 <= n <= d.  Floats: t + t^3 q(t^2) on [0, 1] (2^-28.5).  Doubles: beyond
// tan(pi/8), pi/4 + atan((n - d) / (n + d)), t + t^3 q(t^2) (2^-64.2).
template <class V>
TCF_INLINE V atan_ratio(V n, V d) {
  if constexpr (same<elem<V>, float>) {
    V t = n / d, z = t * t;
    V q = poly(z, -0.001793618875, 0.01091459048, -0.03117781216, 0.05795755382,
               -0.08403447601, 0.1095218468, -0.1426424143, 0.1999854826, -0.3333329909);
    return mad(q, z * t, t);
  } else {
    auto large = n > cst<V>(0.41421356237309504880) * d;
    V t = blend<V>(large, n - d, n) / blend<V>(large, n + d, d), z = t * t;
    V q = poly(z, 0.01518068062272606063, -0.03345962203521288871, 0.04502884635567183455,
               -0.05218233422973853924, 0.05876993955114403038, -0.0666622376857753664,
               0.07692282545301737181, -0.09090908134551307631, 0.1111111108788447269,
               -0.142857142853829998, 0.1999999999999762651, -0.333333333333333274);
    V y = mad(q, z * t, blend<V>(large, cst<V>(pi_low<V> / 4), cst<V>(0))) + t;
    return blend<V>(large, y + cst<V>(pi_high<V> / 4), y);
  }
}
template <class V>
TCF_INLINE V atan(V x) {
  const V one = cst<V>(1);
  V a = fabs(x);
  auto large = a > one;
  V y = atan_ratio<V>(blend<V>(large, one, a), blend<V>(large, a, one));
  V far = cst<V>(pi_high<V> / 2) - (y - cst<V>(pi_low<V> / 2));
  return copysign(V(blend<V>(large, far, y)), x);
}
template <class V>
TCF_INLINE V atan2(V y, V x) {
  typedef ints<V> I;
  typedef elem<V> T;
  const V zero = cst<V>(0), one = cst<V>(1);
  V a = fabs(y), b = fabs(x);
  auto steep = a > b;
  V n = blend<V>(steep, b, a), d = blend<V>(steep, a, b);
  // Keep the sum of the two finite, and 0/0 and inf/inf what C says.
  const V huge = cst<V>(same<T, float> ? 0x1p126f : 0x1p1022);
  auto over = d > huge;
  n = blend<V>(over, n * cst<V>(0.25), n);
  d = blend<V>(over, d * cst<V>(0.25), d);
  auto both = n == inf<V>();
  n = blend<V>(both, one, n);
  d = blend<V>(both | (d == zero), one, d);
  V r = atan_ratio(n, d);
  r = blend<V>(steep, cst<V>(pi_high<V> / 2) - (r - cst<V>(pi_low<V> / 2)), r);
  r = blend<V>(bits<I>(x) < 0, cst<V>(pi_high<V>) - (r - cst<V>(pi_low<V>)), r);
  r = copysign(r, y);
  return blend<V>((x != x) | (y != y), x + y, r);
}

// log(x + sqrt(x^2 + 1)), by log1p where x is not large.
template <class V>
TCF_INLINE V asinh(V x) {
  const V one = cst<V>(1), far = cst<V>(same<elem<V>, float> ? 0x1p13 : 0x1p28);
  V a = fabs(x);
  V b = blend<V>(a > far, one, a), z = b * b;
  V small = log1p(V(b + z / (one + sqrt(one + z))));
  V large = log(a) + cst<V>(0.693147180559945309417);
  V r = blend<V>(a > far, large, small);
  return blend<V>(a < negligible<V>(), x, copysign(r, x));
}
template <class V>
TCF_INLINE V acosh(V x) {
  const V one = cst<V>(1), far = cst<V>(same<elem<V>, float> ? 0x1p13 : 0x1p28);
  V t = blend<V>(x > far, one, x) - one;
  V small = log1p(V(t + sqrt(mad(t, t, t + t))));
  V large = log(x) + cst<V>(0.693147180559945309417);
  V r = blend<V>(x > far, large, small);
  return blend<V>(x < one, nan<V>(), r);
}
template <class V>
TCF_INLINE V atanh(V x) {
  const V one = cst<V>(1);
  V a = fabs(x);
  V r = cst<V>(0.5) * log1p(V((a + a) / (one - a)));
  r = blend<V>(a > one, nan<V>(), r);
  return blend<V>(a < negligible<V>(), x, copysign(r, x));
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
