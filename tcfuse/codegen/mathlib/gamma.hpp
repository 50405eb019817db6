// lgamma and tgamma, for floats by doubles; tgamma is 0 below -171.6.
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

// x in (0, 5.5) as c + u, c whole and u in [-1/2, 1/2] exact: gamma(x) = gamma(2 + u) up /
// down, the factors between x and 2 + u; one of the two is 1.
template <class V>
struct moved {
  V u, up, down;
};
template <class V>
TCF_INLINE moved<V> move_to_two(V x) {
  const V one = cst<V>(1), two = cst<V>(2);
  V c = cst<V>(0), up = one;
  c = blend<V>(x >= cst<V>(0.5), one, c);
  V down = blend<V>(c == one, x, x * (x + one));
  auto passed = x >= cst<V>(1.5);
  c = blend<V>(passed, two, c);
  down = blend<V>(passed, one, down);
  for (int k = 1; k <= 3; k++) {
    passed = x > cst<V>(k + 1.5);
    c = blend<V>(passed, cst<V>(k + 2), c);
    up = blend<V>(passed, up * (x - cst<V>(k)), up);
  }
  return {x - c, up, down};
}
// log gamma(2 + u), u in [-1/2, 1/2]: u p(u), degree 18 (2^-59.5).
template <class V>
TCF_INLINE V lgamma_two(V u) {
  V p = poly(u, -1.432841186965027558e-7, 2.784931141086215927e-7, -4.200552273496884125e-7,
             9.203159321216209569e-7, -2.049748677858461283e-6, 4.384589293502567777e-6,
             -9.437238150671426249e-6, 0.00002050561747445185371, -0.00004492653092047780893,
             0.00009945767002622452615, -0.0002231547351843786411, 0.0005096695156764010316,
             -0.001192753912757404825, 0.002890510331023734132, -0.007385551028649738438,
             0.02058080842778056815, -0.06735230105319831194, 0.3224670334241132346,
             0.4227843350984671397);
  return p * u;
}
// log gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), x >= 5.5: by 1/x^2, degree 9 (2^-66.8).
template <class V>
TCF_INLINE V stirling(V x) {
  V y = cst<V>(1) / x, w = y * y;
  V p = poly(w, -0.3971261219967344838, 0.128999765574593244, -0.02787798585475372293,
             0.00637458468891083636, -0.001917040645580279607, 0.0008417467352990402717,
             -0.0005952380751197871254, 0.0007936507936004503225, -0.002777777777777728761,
             0.08333333333333333333);
  return p * y;
}

template <class V>
TCF_INLINE V lgamma_positive(V x) {
  const V far = cst<V>(5.5);
  moved<V> m = move_to_two(V(blend<V>(x < far, x, cst<V>(2))));
  auto low = x < cst<V>(1.5);
  V f = log(V(blend<V>(low, m.down, m.up)));
  V near = lgamma_two(m.u) + blend<V>(low, -f, f);
  V y = blend<V>(x < far, far, x);
  y = blend<V>(y < inf<V>(), y, far);
  V l = mad(y - cst<V>(0.5), log(y) - cst<V>(1), stirling(y) + cst<V>(0.41893853320467274178));
  V r = blend<V>(x < far, near, l);
  return blend<V>(x < inf<V>(), r, x);
}
// log |gamma(x)|; below 0 by reflection, where only the absolute error is small near a zero.
template <class V>
TCF_INLINE V lgamma(V x) {
  if constexpr (same<elem<V>, float>) {
    return cast<float>(lgamma(cast<double>(x)));
  } else {
    const V zero = cst<V>(0);
    V a = fabs(x);
    V r = lgamma_positive(a);
    V s = fabs(sinpi(a)) * a;
    // log(pi / (a |sin(pi a)|)); the product would be too small for a tiny a.
    V mirror = cst<V>(1.14472988584940017414) - log(s) - r;
    auto below = x < cst<V>(-0x1p-60);
    r = blend<V>(below, mirror, r);
    r = blend<V>((x <= zero) & (floor(x) == x), inf<V>(), r);
    return blend<V>(x == -inf<V>(), inf<V>(), r);
  }
}

// gamma of x > 0: e^(log gamma(2 + u)) up / down; from 5.5 on Stirling's sum in pairs.
template <class V>
TCF_INLINE V tgamma_positive(V x) {
  const V far = cst<V>(5.5), zero = cst<V>(0), most = cst<V>(180);
  moved<V> m = move_to_two(V(blend<V>(x < far, x, cst<V>(2))));
  V y = blend<V>(x < far, far, x);
  y = blend<V>(y < most, y, most);
  twin<V> l = log_twin(y), t = exact_product(V(y - cst<V>(0.5)), l.high);
  t.low = mad(y - cst<V>(0.5), l.low, t.low) + (stirling(y) + cst<V>(0.91893853320467274178));
  twin<V> s = quick_sum(t.high, V(-y));
  s = {s.high, s.low + t.low};
  s = quick_sum(s.high, s.low);
  auto near = x < far;
  s.high = blend<V>(near, lgamma_two(m.u), s.high);
  s.low = blend<V>(near, zero, s.low);
  V e = exp_twin(s);
  return blend<V>(near, e * m.up / m.down, e);
}
template <class V>
TCF_INLINE V tgamma(V x) {
  if constexpr (same<elem<V>, float>) {
    return cast<float>(tgamma(cast<double>(x)));
  } else {
    const V zero = cst<V>(0);
    V a = fabs(x), g = tgamma_positive(a);
    V mirror = cst<V>(-pi_high<V>) / (x * sinpi(x) * g);
    V r = blend<V>(x < zero, mirror, g);
    r = blend<V>(a < cst<V>(0x1p-60), cst<V>(1) / x, r);
    r = blend<V>(x == zero, copysign(inf<V>(), x), r);
    r = blend<V>((x < zero) & (floor(x) == x), nan<V>(), r);  // -inf too
    return blend<V>(x == x, r, x);
  }
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
