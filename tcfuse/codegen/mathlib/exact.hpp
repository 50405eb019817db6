// Sums and products as a rounded value and its error: double the precision where it is needed.
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

// a * b, rounded whatever becomes of it.
template <class V>
TCF_INLINE V product(V a, V b) {
  return exactly(a * b);
}

// high + low is the value; |low| is at most half a unit in the last place of high.
template <class V>
struct twin {
  V high, low;
};

// |a| >= |b|, or a is 0.
template <class V>
TCF_INLINE twin<V> quick_sum(V a, V b) {
  V s = exactly(a + b);
  return {s, b - exactly(s - a)};
}
template <class V>
TCF_INLINE twin<V> exact_sum(V a, V b) {
  V s = exactly(a + b), t = exactly(s - a);
  return {s, exactly(a - exactly(s - t)) + exactly(b - t)};
}
template <class V>
TCF_INLINE twin<V> exact_product(V a, V b) {
  V p = product(a, b);
#if TCF_FUSED
  return {p, fused(a, b, -p)};
#else
  const V c = cst<V>(same<elem<V>, float> ? 4097 : 134217729);
  V ac = exactly(a * c), ah = exactly(ac - exactly(ac - a)), al = exactly(a - ah);
  V bc = exactly(b * c), bh = exactly(bc - exactly(bc - b)), bl = exactly(b - bh);
  V e = exactly(exactly(ah * bh) - p);
  e = exactly(e + exactly(ah * bl));
  e = exactly(e + exactly(al * bh));
  return {p, exactly(e + exactly(al * bl))};
#endif
}
template <class V>
TCF_INLINE twin<V> operator*(twin<V> a, twin<V> b) {
  twin<V> p = exact_product(a.high, b.high);
  return quick_sum(p.high, V(p.low + mad(a.high, b.low, V(a.low * b.high))));
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
