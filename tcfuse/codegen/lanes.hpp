// Lanes on the CPU: masks, guarded reads, transposes in registers, how many lanes a loop gets.
namespace tcf {

template <int L>
TCF_INLINE mask<L> splat_mask(bool b) {
  if constexpr (L == 1) {
    return b;
  } else {
    return splat<int32_t, L>(b ? -1 : 0);
  }
}

// base[index] where m holds; the other lanes read nothing and are zero.
template <class T, int L>
TCF_INLINE vec<T, L> gather_if(const T* base, vec<int64_t, L> index, mask<L> m) {
  vec<T, L> v = {};
  TCF_UNROLL
  for (int i = 0; i < L; i++)
    if (lane(m, i)) set_lane(v, i, base[lane(index, i)]);
  return v;
}
// The same for neighbours: p[i] in lane i.
template <class T, int L>
TCF_INLINE vec<T, L> load_where(const T* p, mask<L> m) {
#ifdef TCF_MASKED
  if constexpr (masked<T, L>::usable) {
    typedef int32_t numbers __attribute__((ext_vector_type(L)));
    const auto flags = __builtin_convertvector((numbers)m, typename masked<T, L>::flags);
    return (vec<T, L>)__builtin_masked_load(flags, p, (typename masked<T, L>::elements)(T(0)));
  }
#endif
  vec<T, L> v = {};
  for (int i = 0; i < L; i++)
    if (lane(m, i)) set_lane(v, i, p[i]);
  return v;
}
template <int L, class T>
TCF_INLINE void store_strided_first(T* p, int64_t stride, vec<T, L> v, int64_t n) {
  for (int64_t i = 0; i < n; i++) p[i * stride] = lane(v, int(i));
}

// Ask for L elements from an index on, which need not be one of base's.
template <class T, int L>
TCF_INLINE void prefetch(const T* base, int64_t index) {
  const uintptr_t at = (uintptr_t)base + (uintptr_t)index * sizeof(T);
  TCF_UNROLL
  for (size_t i = 0; i < L * sizeof(T); i += 64) __builtin_prefetch((const void*)(at + i));
}

// How many elements p lies into its line, and as many lanes as asked for that are lines.  Neither
// matters to gcc, which streams nothing and whose lanes may be fewer than those of a line.
template <class T>
TCF_INLINE int64_t into_line(const T* p) {
#ifdef __clang__
  return int64_t((uintptr_t)p % 64 / sizeof(T));
#else
  (void)p;
  return 0;
#endif
}
template <class T>
constexpr int line_of(int lanes) {
#ifdef __clang__
  if (lanes * sizeof(T) < 64) return 64 / sizeof(T);
#endif
  return lanes;
}
// Whether n elements from p on are lines and nothing else.
template <class T>
TCF_INLINE bool are_lines(const T* p, int64_t n) {
  return ((uintptr_t)p | (uintptr_t)n * sizeof(T)) % 64 == 0;
}
// A store that passes the caches by, where p starts a line.
template <int L, class T>
TCF_INLINE void stream(T* p, vec<T, L> v) {
#if TCF_LEVEL >= 3 && defined(__clang__)
  if constexpr (L * sizeof(T) % 64 == 0) {
    if ((uintptr_t)p % 64 == 0) {
      typedef T line __attribute__((vector_size(64)));
      line lines[L * sizeof(T) / 64];
      __builtin_memcpy(lines, &v, sizeof v);
      TCF_UNROLL
      for (size_t i = 0; i < L * sizeof(T) / 64; i++)
        __builtin_nontemporal_store(lines[i], (line*)p + i);
      return;
    }
  }
#endif
  store<L>(p, v);
}
// Other threads see what was streamed, which no lock or atomic store takes care of.
TCF_INLINE void streamed() {
#ifdef __x86_64__
  __builtin_ia32_sfence();
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// Squares: columns of L rows that lie stride apart, for transposes in registers.  Every round
// interleaves the first half of the vectors with the second; after log2(L) rounds, vector q holds
// element q of every row.
template <class V, int... I>
TCF_INLINE V interleave_low(V a, V b, seq<I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + (I % 2) * lanes<V>)...);
}
template <class V, int... I>
TCF_INLINE V interleave_high(V a, V b, seq<I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + lanes<V> / 2 + (I % 2) * lanes<V>)...);
}
template <int L, class T>
TCF_INLINE void turn(vec<T, L>* columns, vec<T, L>* rows) {
  for (int round = 1; round < L; round *= 2) {
    for (int i = 0; i < L / 2; i++) {
      columns[2 * i] = interleave_low(rows[i], rows[i + L / 2], make_seq<L>());
      columns[2 * i + 1] = interleave_high(rows[i], rows[i + L / 2], make_seq<L>());
    }
    for (int i = 0; i < L; i++) rows[i] = columns[i];
  }
}
// Squares of a loop of few iterations are smaller than a register.
constexpr int square_of(int lanes, int64_t iterations = 1 << 20) {
  int side = lanes < TCF_LANES ? lanes : TCF_LANES;
  while (side > 4 && side > iterations) side /= 2;
  return side;
}
// The first Q columns of n rows, at least one; lanes beyond them repeat the last row.
template <int Q, int L, class T>
TCF_INLINE void load_columns(vec<T, L>* columns, const T* p, int64_t stride, int64_t n = L) {
  if constexpr (L > Q) {
    vec<T, L / 2> first[Q], second[Q];
    load_columns<Q, L / 2>(first, p, stride, n);
    load_columns<Q, L / 2>(second, p + L / 2 * stride, stride, n - L / 2);
    for (int q = 0; q < Q; q++) columns[q] = join(first[q], second[q]);
  } else {
    vec<T, L> rows[L];
    for (int i = 0; i < L; i++) rows[i] = load<T, L>(p + tcf_min(i, n - 1) * stride);
    turn<L, T>(columns, rows);
  }
}
// The same the other way round: Q neighbours of every row from its columns, which it changes.
template <int Q, int L, class T>
TCF_INLINE void store_columns(T* p, int64_t stride, vec<T, L>* columns) {
  if constexpr (L > Q) {
    vec<T, L / 2> first[Q], second[Q];
    for (int q = 0; q < Q; q++) first[q] = low(columns[q]), second[q] = high(columns[q]);
    store_columns<Q, L / 2>(p, stride, first);
    store_columns<Q, L / 2>(p + L / 2 * stride, stride, second);
  } else {
    vec<T, L> rows[L];
    turn<L, T>(rows, columns);
    for (int i = 0; i < L; i++) store<L>(p + i * stride, rows[i]);
  }
}
// Lanes of a panel, which lie side by side in memory: those of two registers.
constexpr int panel = TCF_LANES > 8 ? 2 * TCF_LANES : 16;
// Lanes of a loop of that many iterations: a register's worth of the widest element, or several
// registers' worth where the loops inside would otherwise wait for each other's results.
constexpr int lanes_for(int widest_bytes, int64_t extent, int registers = 1,
                        int limit = 1 << 10) {
#ifndef __clang__
  registers = 1;  // gcc makes poor code of vectors wider than a register
#endif
  if (TCF_LEVEL < 4 && registers > 4) registers = 4;  // of 16 instead of 32
  int most = TCF_LANES * 4 / (widest_bytes < 4 ? 4 : widest_bytes) * registers;
  while (most > 2 && (most / 2 >= extent || most > limit)) most /= 2;
  return most;
}

}  // namespace tcf
