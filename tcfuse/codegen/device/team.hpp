// Teams: the threads that run one iteration of the parallel loops together.
//
// team<N> is one thread, N = 2 .. 32 neighbours in a warp, or a whole block of N = 64 .. 1024.
// Every thread of a team makes the same calls in the same order.  Results are the same bits in
// every thread.  A block's reduction takes one barrier: its warps leave their results in slots of
// shared memory, of which there are two sets that take turns, so that nobody writes where others
// may still read.  The turn is what an object of team<N> holds: make one before all loops.
namespace tcf {

// A value and where it was found.
template <class T>
struct found {
  T value;
  int64_t index;
};

// The better of two: the larger (smaller) value, NaN before all numbers, then the lower index.
template <class T>
TCF_INLINE found<T> larger_found(found<T> a, found<T> b) {
  const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
  const bool equal = nan_a == nan_b && (nan_a || a.value == b.value);
  const bool first = equal ? a.index <= b.index : nan_a || (!nan_b && a.value > b.value);
  return first ? a : b;
}
template <class T>
TCF_INLINE found<T> smaller_found(found<T> a, found<T> b) {
  const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
  const bool equal = nan_a == nan_b && (nan_a || a.value == b.value);
  const bool first = equal ? a.index <= b.index : nan_a || (!nan_b && a.value < b.value);
  return first ? a : b;
}

// The word of 4 or 8 bytes that a scalar travels in.
template <bool Wide> struct word_for { typedef uint32_t type; };
template <> struct word_for<true> { typedef uint64_t type; };
template <class T>
using travelling = typename word_for<sizeof(T) == 8>::type;
template <class T>
TCF_INLINE travelling<T> packed(T v) {
  if constexpr (same<T, bool>) {
    return v;
  } else {
    return travelling<T>(bits<uint_elem<T>>(v));
  }
}
template <class T>
TCF_INLINE T unpacked(travelling<T> w) {
  if constexpr (same<T, bool>) {
    return w != 0;
  } else {
    return bits<T>(uint_elem<T>(w));
  }
}

// What the thread whose number differs in the bits of x, or thread source of its group, has.
template <class T>
TCF_INLINE T from_neighbour(unsigned members, T v, int x, int width) {
  return unpacked<T>(__shfl_xor_sync(members, packed(v), x, width));
}
template <class T>
TCF_INLINE found<T> from_neighbour(unsigned members, found<T> v, int x, int width) {
  return {from_neighbour(members, v.value, x, width),
          from_neighbour(members, v.index, x, width)};
}
template <class T>
TCF_INLINE T from_first(unsigned members, T v, int width) {
  return unpacked<T>(__shfl_sync(members, packed(v), 0, width));
}

// f over the values of N neighbouring threads, N <= 32, in all of them.
template <int N, class V, class F>
TCF_INLINE V over_neighbours(unsigned members, V v, F f) {
  TCF_UNROLL
  for (int x = N / 2; x > 0; x /= 2) v = f(v, from_neighbour(members, v, x, N));
  return v;
}

// One slot for each warp of a block, twice.
constexpr int most_warps = 32;
TCF_INLINE uint32_t* narrow_slots() {
  __shared__ uint32_t slots[2 * most_warps];
  return slots;
}
TCF_INLINE uint64_t* wide_slots() {
  __shared__ uint64_t slots[2 * most_warps];
  return slots;
}
TCF_INLINE uint64_t* index_slots() {
  __shared__ uint64_t slots[2 * most_warps];
  return slots;
}
template <class T>
TCF_INLINE travelling<T>* slots_for() {
  if constexpr (sizeof(T) == 8) {
    return wide_slots();
  } else {
    return narrow_slots();
  }
}
template <class T>
TCF_INLINE void put(int slot, T v) {
  slots_for<T>()[slot] = packed(v);
}
template <class T>
TCF_INLINE void put(int slot, found<T> v) {
  slots_for<T>()[slot] = packed(v.value);
  index_slots()[slot] = packed(v.index);
}
template <class T>
TCF_INLINE void get(int slot, T& v) {
  v = unpacked<T>(slots_for<T>()[slot]);
}
template <class T>
TCF_INLINE void get(int slot, found<T>& v) {
  v.value = unpacked<T>(slots_for<T>()[slot]);
  v.index = unpacked<int64_t>(index_slots()[slot]);
}

// How many groups of L neighbouring iterations each of N threads runs: G, where that is known.
template <int G, int N, int L>
TCF_INLINE int groups(int64_t extent) {
  return G ? G : int((extent + N * L - 1) / (N * L));
}

template <int N>
struct team {
  static_assert(N >= 1 && N <= 1024 && (N & (N - 1)) == 0, "a power of two up to 1024");
  static constexpr int size = N;
  static constexpr int warps = N > 32 ? N / 32 : 1;
  int turn = 0;

#define TCF_MEMBER __device__ __forceinline__
  // The thread's number in its team, and the team's in its block.
  static TCF_MEMBER int rank() {
    return N == 1 ? 0 : int(threadIdx.x) & (N - 1);
  }
  static TCF_MEMBER int number() {
    return N > 32 ? 0 : int(threadIdx.x / N);
  }
  // The team's threads among those of its warp, a bit each.
  static TCF_MEMBER unsigned members() {
    if constexpr (N >= 32) {
      return 0xffffffffu;
    } else {
      return ((1u << N) - 1) << (threadIdx.x & 31 & ~(N - 1));
    }
  }
  // Waits for the team, which then sees what each of its threads wrote.
  static TCF_MEMBER void sync() {
    if constexpr (N > 32) {
      __syncthreads();
    } else if constexpr (N > 1) {
      __syncwarp(members());
    }
  }
  // The same where a reduction is all that came after what is waited for: a block has waited.
  static TCF_MEMBER void settle() {
    if constexpr (N <= 32) sync();
  }

  // f over the values of all threads; f must be commutative and associative.
  template <class V, class F>
  TCF_MEMBER V reduce(V v, F f) {
    if constexpr (N > 32) {
      v = over_neighbours<32>(members(), v, f);
      const int base = turn * most_warps, lane = int(threadIdx.x) & 31;
      turn ^= 1;
      if (lane == 0) put(base + int(threadIdx.x / 32), v);
      __syncthreads();
      get(base + (lane & (warps - 1)), v);
      return over_neighbours<warps>(members(), v, f);
    } else if constexpr (N > 1) {
      return over_neighbours<N>(members(), v, f);
    } else {
      return v;
    }
  }
  // Integers wrap around; min and max of NaN are NaN.
  template <class T>
  TCF_MEMBER T sum(T v) {
    return reduce(v, [](T a, T b) { return add(a, b); });
  }
  template <class T>
  TCF_MEMBER T product(T v) {
    return reduce(v, [](T a, T b) { return mul(a, b); });
  }
  template <class T>
  TCF_MEMBER T min(T v) {
    return reduce(v, [](T a, T b) { return min_(a, b); });
  }
  template <class T>
  TCF_MEMBER T max(T v) {
    return reduce(v, [](T a, T b) { return max_(a, b); });
  }
  // The largest (smallest) value and its place; of several the first.  NaN counts as both.
  template <class T>
  TCF_MEMBER found<T> argmax(found<T> v) {
    return reduce(v, [](found<T> a, found<T> b) { return larger_found(a, b); });
  }
  template <class T>
  TCF_MEMBER found<T> argmin(found<T> v) {
    return reduce(v, [](found<T> a, found<T> b) { return smaller_found(a, b); });
  }
  static TCF_MEMBER bool any(bool p) {
    if constexpr (N > 32) {
      return __syncthreads_or(p) != 0;
    } else if constexpr (N > 1) {
      return __any_sync(members(), p) != 0;
    } else {
      return p;
    }
  }
  static TCF_MEMBER bool all(bool p) {
    if constexpr (N > 32) {
      return __syncthreads_and(p) != 0;
    } else if constexpr (N > 1) {
      return __all_sync(members(), p) != 0;
    } else {
      return p;
    }
  }
  // What the first thread has.
  template <class T>
  TCF_MEMBER T first(T v) {
    if constexpr (N > 32) {
      const int slot = turn * most_warps;
      turn ^= 1;
      if (threadIdx.x == 0) put(slot, v);
      __syncthreads();
      get(slot, v);
      return v;
    } else if constexpr (N > 1) {
      return from_first(members(), v, N);
    } else {
      return v;
    }
  }
#undef TCF_MEMBER
};

}  // namespace tcf
