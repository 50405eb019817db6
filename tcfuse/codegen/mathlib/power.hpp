// pow, for floats by doubles, for doubles by pairs of doubles.
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

// |x|^y for a float x, before the cases C singles out.  log2 |x| has 2^-37.8, 2^r 2^-28.9.
template <class V>
TCF_INLINE V pow_positive_float(V x, V y) {
  typedef with_elem<V, double> D;
  D e, f = split_power(cast<double>(x), e);
  D s = f / (cst<D>(2) + f), z = s * s;
  D p = poly(z, 0.3407280076036135094, 0.4116728264341597489, 0.5770835832907799574,
             0.9617966733498090519, 2.885390081790080743);
  D l = mad(s, p, e);
  l = blend<D>(cast<double>(x) == cst<D>(0), -inf<D>(), l);
  l = blend<D>(cast<double>(x) < inf<D>(), l, cast<double>(x));
  D t = cast<double>(y) * l;
  t = blend<D>(cst<D>(-200) > t, cst<D>(-200), t);
  t = blend<D>(cst<D>(200) < t, cst<D>(200), t);
  D n = roundeven(t), r = t - n;
  D q = poly(r, 0.0001535337336221900471, 0.001339887430219882383, 0.009618437314916032123,
             0.05550332471033301829, 0.2402264791396585493, 0.6931472028555890748);
  return cast<float>(mad(q, r, cst<D>(1)) * exp2_whole(n));
}

// log x of a positive finite x, to 2^-65: s = f / (2 + f) and its square are pairs, and of
// the series 2 s + s^3 (2/3 + z R(z)), z = s^2, the head is summed in pairs (R: 2^-66.3).
template <class V>
TCF_INLINE twin<V> log_twin(V x) {
  typedef format<double> F;
  V e, f = split_power(x, e);
  const V two = cst<V>(2);
  twin<V> d = quick_sum(two, f), s;
  s.high = f / d.high;
  twin<V> back = exact_product(s.high, d.high);
  s.low = (exactly(exactly(f - back.high) - back.low) - s.high * d.low) / d.high;
  twin<V> z = s * s;
  V r = poly(z.high, 0.1319734446941696758, 0.1325671403104615921, 0.1538676152283093196,
             0.1818178428222547799, 0.2222222252081839543, 0.2857142857009500826,
             0.4000000000000226455);
  twin<V> p = quick_sum(cst<V>(2.0 / 3), V(mad(z.high, r, cst<V>(3.7007434154171884681e-17))));
  twin<V> t = s * (z * p);
  twin<V> m = quick_sum(V(two * s.high), t.high);
  m.low = m.low + mad(two, s.low, t.low);
  twin<V> l = quick_sum(V(e * cst<V>(F::ln2_high)), m.high);
  l.low = l.low + mad(e, cst<V>(F::ln2_low), m.low);
  l = quick_sum(l.high, l.low);
  return l;
}

// exp of a pair; a result that is denormal is rounded to one.
template <class V>
TCF_INLINE V exp_twin(twin<V> t) {
  // Out of range either way: keep it there, without the low part.
  const V far = cst<V>(800);
  auto over = fabs(t.high) > far;
  t.high = blend<V>(over, copysign(far, t.high), t.high);
  t.low = blend<V>(over, cst<V>(0), t.low);
  V n, r = less_ln2(t.high, n) + t.low;
  V p = cst<V>(1) + mad(expm1_factor(r) * r, r, r);
  V h = floor(n * cst<V>(0.5));
  return p * exp2_whole(h) * exp2_whole(n - h);
}

template <class V>
TCF_INLINE V pow_positive_double(V x, V y) {
  const V zero = cst<V>(0), far = cst<V>(0x1p70);
  twin<V> l = log_twin(x);
  y = blend<V>(y > far, far, y);
  y = blend<V>(y < -far, -far, y);
  twin<V> t = exact_product(y, l.high);
  t.low = mad(y, l.low, t.low);
  V v = exp_twin(t);
  V end = blend<V>((x == zero) ^ (y > zero), inf<V>(), zero);
  return blend<V>((x == zero) | (x == inf<V>()), end, blend<V>(x == x, v, x));
}

template <class V>
TCF_INLINE V pow(V x, V y) {
  const V one = cst<V>(1), zero = cst<V>(0), half = cst<V>(0.5);
  V a = fabs(x), r;
  if constexpr (same<elem<V>, float>) r = pow_positive_float(a, y);
  else r = pow_positive_double(a, y);
  auto whole = trunc(y) == y;
  V h = y * half;
  auto odd = whole & (trunc(h) != h);
  r = blend<V>(odd, copysign(r, x), r);
  r = blend<V>((x < zero) & (a < inf<V>()) & not_(whole) & (y == y), nan<V>(), r);
  // 1 to any power, and -1 to an infinite one; anything to the power 0.
  r = blend<V>((x == one) | (y == zero) | ((x == -one) & (fabs(y) == inf<V>())), one, r);
  return blend<V>(((x != x) & (y != zero)) | ((y != y) & (x != one)), x + y, r);
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
