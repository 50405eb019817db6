// Comparisons, masks, selection, minimum and maximum.
namespace tcf {

// Native masks stay as wide as what was compared; only the public functions narrow them.
template <class V>
TCF_INLINE V blend(native<V> m, V a, V b) {
  return m ? a : b;
}
template <int L, class N>
TCF_INLINE mask<L> narrow(N m) {
  if constexpr (L == 1) {
    return m;
  } else if constexpr (sizeof(N) == sizeof(mask<L>)) {
    return (mask<L>)m;
  } else {
    return converted_lanes<mask<L>>(m);
  }
}
template <class V>
TCF_INLINE native<V> widen(mask<lanes<V>> m) {
  if constexpr (is_scalar<V>) {
    return m;
  } else if constexpr (sizeof(V) == sizeof(m)) {
    return (native<V>)m;
  } else {
    return converted_lanes<native<V>>(m);
  }
}

template <class V>
TCF_INLINE mask<lanes<V>> lt(V a, V b) {
  return narrow<lanes<V>>(a < b);
}
template <class V>
TCF_INLINE mask<lanes<V>> le(V a, V b) {
  return narrow<lanes<V>>(a <= b);
}
template <class V>
TCF_INLINE mask<lanes<V>> gt(V a, V b) {
  return narrow<lanes<V>>(a > b);
}
template <class V>
TCF_INLINE mask<lanes<V>> ge(V a, V b) {
  return narrow<lanes<V>>(a >= b);
}
template <class V>
TCF_INLINE mask<lanes<V>> eq(V a, V b) {
  return narrow<lanes<V>>(a == b);
}
template <class V>
TCF_INLINE mask<lanes<V>> ne(V a, V b) {
  return narrow<lanes<V>>(a != b);
}

template <class M>
TCF_INLINE M and_(M a, M b) {
  return a & b;
}
template <class M>
TCF_INLINE M or_(M a, M b) {
  return a | b;
}
template <class M>
TCF_INLINE M xor_(M a, M b) {
  return a ^ b;
}
template <class M>
TCF_INLINE M not_(M a) {
  if constexpr (same<M, bool>) {
    return !a;
  } else {
    return ~a;
  }
}

// m ? a : b, for values of any type and for masks.
template <class V>
TCF_INLINE V select(mask<lanes<V>> m, V a, V b) {
  return blend<V>(widen<V>(m), a, b);
}

// The larger one; NaN when either is (as ONNX).  The bare comparison is the machine's max
// instruction, which gives b when unordered: so only a NaN in a needs a second look.
template <class V>
TCF_INLINE V max_(V a, V b) {
  V m = blend<V>(a > b, a, b);
  if constexpr (is_float<elem<V>>) return blend<V>(a != a, a, m);
  return m;
}
template <class V>
TCF_INLINE V min_(V a, V b) {
  V m = blend<V>(a < b, a, b);
  if constexpr (is_float<elem<V>>) return blend<V>(a != a, a, m);
  return m;
}
// The same of a number that is no NaN: one instruction.
template <class V>
TCF_INLINE V at_least(V v, V number) {
#ifdef TCF_DEVICE
  return max_(v, number);
#else
  return blend<V>(number > v, number, v);
#endif
}
template <class V>
TCF_INLINE V at_most(V v, V number) {
#ifdef TCF_DEVICE
  return min_(v, number);
#else
  return blend<V>(number < v, number, v);
#endif
}
// The larger one; the other when one is NaN (as C).
template <class V>
TCF_INLINE V fmax(V a, V b) {
  V m = blend<V>(a > b, a, b);
  if constexpr (is_float<elem<V>>) return blend<V>(b != b, a, m);
  return m;
}
template <class V>
TCF_INLINE V fmin(V a, V b) {
  V m = blend<V>(a < b, a, b);
  if constexpr (is_float<elem<V>>) return blend<V>(b != b, a, m);
  return m;
}

template <class V>
TCF_INLINE mask<lanes<V>> isnan(V v) {
  return ne(v, v);
}

}  // namespace tcf
