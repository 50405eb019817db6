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
// Masks: compilers have an instruction that looks at all lanes.
template <class M>
TCF_INLINE bool hor(M m) {
#if defined(__clang__) && !defined(TCF_DEVICE)
  if constexpr (!same<M, bool>) return __builtin_reduce_or(m) != 0;
#endif
  return fold(m, [](auto a, auto b) { return or_(a, b); }) != 0;
}
template <class M>
TCF_INLINE bool hand(M m) {
#if defined(__clang__) && !defined(TCF_DEVICE)
  if constexpr (!same<M, bool>) return __builtin_reduce_and(m) != 0;
#endif
  return fold(m, [](auto a, auto b) { return and_(a, b); }) != 0;
}
// NaN is looked for in all lanes at once instead of in every pair.
template <class V>
TCF_INLINE elem<V> hmin(V v) {
  typedef elem<V> T;
  if constexpr (is_scalar<V>) return v;
  const T least = fold(v, [](auto a, auto b) { return at_most(a, b); });
  if constexpr (is_float<T>) return hor(isnan(v)) ? T(__builtin_nanf("")) : least;
  return least;
}
template <class V>
TCF_INLINE elem<V> hmax(V v) {
  typedef elem<V> T;
  if constexpr (is_scalar<V>) return v;
  const T most = fold(v, [](auto a, auto b) { return at_least(a, b); });
  if constexpr (is_float<T>) return hor(isnan(v)) ? T(__builtin_nanf("")) : most;
  return most;
}

}  // namespace tcf
