// Loads and stores, all unaligned.
namespace tcf {

template <class T, int L>
TCF_INLINE vec<T, L> load(const T* p) {
  vec<T, L> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <int L, class T>
TCF_INLINE void store(T* p, vec<T, L> v) {
  __builtin_memcpy(p, &v, sizeof v);
}

template <class T, int L>
TCF_INLINE vec<T, L> load_strided(const T* p, int64_t stride) {
  vec<T, L> v = {};
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, p[i * stride]);
  return v;
}
template <int L, class T>
TCF_INLINE void store_strided(T* p, int64_t stride, vec<T, L> v) {
  TCF_UNROLL
  for (int i = 0; i < L; i++) p[i * stride] = lane(v, i);
}
template <class T, int L>
TCF_INLINE vec<T, L> gather(const T* base, vec<int64_t, L> index) {
  vec<T, L> v = {};
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, base[lane(index, i)]);
  return v;
}

// Masked loads and stores are one instruction each from AVX2 on, for 4 and 8 bytes an element.
#if TCF_LEVEL >= 3 && defined(__has_builtin)
#if __has_builtin(__builtin_masked_load) && __has_builtin(__builtin_masked_store)
#define TCF_MASKED 1
#endif
#endif
#ifdef TCF_MASKED
template <class T, int L>
struct masked {
  typedef T elements __attribute__((ext_vector_type(L)));
  typedef bool flags __attribute__((ext_vector_type(L)));
  typedef int32_t numbers __attribute__((ext_vector_type(L)));
  static constexpr bool usable = L > 1 && (sizeof(T) == 4 || sizeof(T) == 8);
};
template <class T, int L>
TCF_INLINE typename masked<T, L>::flags first_flags(int64_t n) {
  typedef typename masked<T, L>::numbers numbers;
  const auto index = (numbers)iota<int32_t, L>();  // no loop: of 64 lanes it would stay one
  return __builtin_convertvector(index < (numbers)(int32_t(n)), typename masked<T, L>::flags);
}
#endif

// The first n lanes, 0 < n < L, touching nothing beyond them; the others are fill.
template <class T, int L>
TCF_INLINE vec<T, L> load_first(const T* p, int64_t n, T fill) {
#ifdef TCF_MASKED
  if constexpr (masked<T, L>::usable) {
    const auto rest = (typename masked<T, L>::elements)(fill);
    return (vec<T, L>)__builtin_masked_load(first_flags<T, L>(n), p, rest);
  }
#endif
  T all[L];
  for (int i = 0; i < L; i++) all[i] = fill;
  for (int64_t i = 0; i < n; i++) all[i] = p[i];
  return load<T, L>(all);
}
template <int L, class T>
TCF_INLINE void store_first(T* p, vec<T, L> v, int64_t n) {
#ifdef TCF_MASKED
  if constexpr (masked<T, L>::usable) {
    __builtin_masked_store(first_flags<T, L>(n), (typename masked<T, L>::elements)v, p);
    return;
  }
#endif
  T all[L];
  store<L>(all, v);
  for (int64_t i = 0; i < n; i++) p[i] = all[i];
}

}  // namespace tcf
