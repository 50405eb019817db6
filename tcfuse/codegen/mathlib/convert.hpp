// Conversions between element types: C's, made total.
//
// A float outside the integer's range (or NaN) gives what the x86 instruction gives: the most
// negative int32 or int64; narrower integers are the low bits of that, uint32 those of int64.
namespace tcf {

#if defined(__x86_64__) && !defined(TCF_DEVICE)
typedef vec<float, 4> f32x4;
typedef vec<double, 2> f64x2;

TCF_INLINE int32_t truncate32(float v) { return __builtin_ia32_cvttss2si(f32x4{v}); }
TCF_INLINE int32_t truncate32(double v) { return __builtin_ia32_cvttsd2si(f64x2{v}); }
TCF_INLINE int64_t truncate64(float v) { return __builtin_ia32_cvttss2si64(f32x4{v}); }
TCF_INLINE int64_t truncate64(double v) { return __builtin_ia32_cvttsd2si64(f64x2{v}); }
TCF_INLINE vec<int32_t, 4> truncate32(f32x4 v) {
  return (vec<int32_t, 4>)__builtin_ia32_cvttps2dq(v);
}
TCF_INLINE vec<int32_t, 2> truncate32(f64x2 v) {
  return low((vec<int32_t, 4>)__builtin_ia32_cvttpd2dq(v));
}
#if TCF_LEVEL >= 3
TCF_INLINE vec<int32_t, 8> truncate32(vec<float, 8> v) {
  return (vec<int32_t, 8>)__builtin_ia32_cvttps2dq256(v);
}
TCF_INLINE vec<int32_t, 4> truncate32(vec<double, 4> v) {
  return (vec<int32_t, 4>)__builtin_ia32_cvttpd2dq256(v);
}
#endif
#if TCF_LEVEL >= 4
TCF_INLINE vec<int32_t, 16> truncate32(vec<float, 16> v) {
  return (vec<int32_t, 16>)__builtin_ia32_cvttps2dq512_mask(v, vec<int32_t, 16>{}, -1, 4);
}
TCF_INLINE vec<int32_t, 8> truncate32(vec<double, 8> v) {
  return (vec<int32_t, 8>)__builtin_ia32_cvttpd2dq512_mask(v, vec<int32_t, 8>{}, -1, 4);
}
TCF_INLINE vec<int64_t, 8> truncate64(vec<double, 8> v) {
  return bits<vec<int64_t, 8>>(
      __builtin_ia32_cvttpd2qq512_mask(v, vec<long long, 8>{}, -1, 4));
}
TCF_INLINE vec<int64_t, 8> truncate64(vec<float, 8> v) {
  return bits<vec<int64_t, 8>>(
      __builtin_ia32_cvttps2qq512_mask(v, vec<long long, 8>{}, -1, 4));
}
#endif

template <class V>
TCF_INLINE with_elem<V, int32_t> truncate32(V v) {
  if constexpr (sizeof(V) <= 16) {
    return low(truncate32(join(v, v)));
  } else {
    return join(truncate32(low(v)), truncate32(high(v)));
  }
}
template <class V>
TCF_INLINE with_elem<V, int64_t> truncate64(V v) {
  if constexpr (TCF_LEVEL >= 4 && lanes<V> > 8) {
    return join(truncate64(low(v)), truncate64(high(v)));
  } else {
    return lanewise<with_elem<V, int64_t>>([](elem<V> s) { return truncate64(s); }, v);
  }
}
#else
// What does not fit is taken out first: the conversion itself may do anything with it.
template <class To, class V>
TCF_INLINE with_elem<V, To> truncate(V v) {
  typedef elem<V> T;
  typedef with_elem<V, To> W;
  const T most = sizeof(To) == 4 ? T(0x1p31) : T(0x1p63);
  auto fits = (v >= cst<V>(-most)) & (v < cst<V>(most));
  V u = blend<V>(fits, v, cst<V>(0));
  W w;
  if constexpr (is_scalar<V>) w = To(u);
  else w = converted_lanes<W>(u);
  const To least = To(uint_elem<To>(1) << (8 * sizeof(To) - 1));
  return select(narrow<lanes<V>>(fits), w, cst<W>(least));
}
template <class V>
TCF_INLINE with_elem<V, int32_t> truncate32(V v) {
  return truncate<int32_t>(v);
}
template <class V>
TCF_INLINE with_elem<V, int64_t> truncate64(V v) {
  return truncate<int64_t>(v);
}
#endif

// The same value in another element type, without care for what does not fit.
template <class To, class V>
TCF_INLINE with_elem<V, To> cast(V v) {
  if constexpr (same<To, elem<V>>) {
    return v;
  } else if constexpr (is_scalar<V>) {
    return static_cast<To>(v);
  } else {
    return converted_lanes<with_elem<V, To>>(v);
  }
}

template <class V>
TCF_INLINE mask<lanes<V>> to_mask(V v) {
  return ne(v, cst<V>(0));
}
template <class T, class M>
TCF_INLINE with_elem<M, T> from_mask(M m) {
  if constexpr (same<M, bool>) {
    return m ? T(1) : T(0);
  } else {
    return cast<T>(m & 1);
  }
}

template <class To, class V>
TCF_INLINE with_elem<V, To> convert(V v) {
  typedef elem<V> From;
  if constexpr (same<From, bool>) {
    return from_mask<To>(v);
  } else if constexpr (!is_float<From> || is_float<To>) {
    return cast<To>(v);
  } else if constexpr (same<To, int64_t>) {
    return truncate64(v);
  } else if constexpr (same<To, uint64_t>) {
    const V big = cst<V>(0x1p63);
    auto over = v >= big;
    auto i = cast<uint64_t>(truncate64(blend<V>(over, v - big, v)));
    typedef with_elem<V, uint64_t> U;
    return i ^ select(narrow<lanes<V>>(over), cst<U>(uint64_t(1) << 63), cst<U>(0));
  } else if constexpr (same<To, uint32_t>) {
    return cast<To>(truncate64(v));
  } else {
    return cast<To>(truncate32(v));
  }
}

}  // namespace tcf
