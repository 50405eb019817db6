// Reductions over the lanes of one vector, as a balanced tree.
namespace tcf {

template <class V, class F>
TCF_INLINE elem<V> fold(V v, F f) {
  if constexpr (is_scalar<V>) {
    return v;
  } else {
    return fold(f(low(v), high(v)), f);
  }
}
template <class V>
TCF_INLINE elem<V> hsum(V v) {
  return fold(v, [](auto a, auto b) { return add(a, b); });
}
template <class V>
TCF_INLINE elem<V> hprod(V v) {
  return fold(v, [](auto a, auto b) { return mul(a, b); });
}
template <class V>
TCF_INLINE elem<V> hmin(V v) {
  return fold(v, [](auto a, auto b) { return min_(a, b); });
}
template <class V>
TCF_INLINE elem<V> hmax(V v) {
  return fold(v, [](auto a, auto b) { return max_(a, b); });
}
template <class M>
TCF_INLINE bool hor(M m) {
  return fold(m, [](auto a, auto b) { return or_(a, b); }) != 0;
}
template <class M>
TCF_INLINE bool hand(M m) {
  return fold(m, [](auto a, auto b) { return and_(a, b); }) != 0;
}

}  // namespace tcf
