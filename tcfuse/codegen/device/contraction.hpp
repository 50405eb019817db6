// Contractions: C(b, m, n) = sum over k of A(b, m, k) * B(b, k, n), one tile of C for each block.
//
// What A, B and C are is the caller's: functions of (b, m, k), (b, k, n) and (b, m, n).  A block
// walks along k.  While it computes with one pair of panels in shared memory, the elements of the
// next pair are on their way to registers.  At the end each warp passes its sums through shared
// memory, so that C is written along n whatever the tile's layout is.
//
// A tile (contraction_fma.hpp, contraction_mma.hpp) says how panels lie in shared memory and how
// they are multiplied.
//
// Sources: Volkov and Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", SC 2008; Tillet et
// al., "Triton", MAPL 2019 (the order of tiles).

namespace tcf {

// The sizes of a contraction.
template <class I>
struct Extents {
  I batches, m, n, k;
};

// An operand: at(b, outer, k), where outer is m or n, gives V neighbours along k or along outer
// as a vec<element, V>.  V divides the extent of that direction, unless it is 1.
template <int V, bool ALONG_K, class F>
struct Operand {
  static constexpr int width = V;
  static constexpr bool along_k = ALONG_K;
  const F& at;
};
template <int V, bool ALONG_K, class F>
TCF_INLINE Operand<V, ALONG_K, F> operand(const F& at) {
  return {at};
}

// What becomes of sums: at(b, m, n, sums) is called with V neighbours along n.
template <int V, class F>
struct Result {
  static constexpr int width = V;
  const F& at;
};
template <int V, class F>
TCF_INLINE Result<V, F> result(const F& at) {
  return {at};
}

// Neighbours as they are held: those of 16 bits as words, since halves of registers that a branch
// may have filled are taken apart and put together again.
template <class T, int V, bool PAIRS = sizeof(T) == 2 && V % 2 == 0>
struct held_as {
  typedef vec<T, V> type;
};
template <class T, int V>
struct held_as<T, V, true> {
  typedef vec<uint32_t, V / 2> type;
};

// A thread's part of an operand's next panel, of SPAN outer indices and DEPTH steps of k.
//
// Lanes follow memory: along outer, or some steps of k and as many outer indices as a warp has
// lanes left, so that whole sectors are read and what is stored together lies in different banks.
template <class Tile, class Source, int SPAN>
struct Fetch {
  typedef typename Tile::element element;
  static constexpr int V = Source::width, THREADS = Tile::threads;
  static constexpr int DEPTH = Tile::k, STEPS = Tile::run;
  static constexpr int RUN = (Source::along_k ? STEPS : SPAN) / V;  // neighbouring vectors
  static constexpr int COUNT = SPAN * DEPTH / V / THREADS;
  static_assert(COUNT * V * THREADS == SPAN * DEPTH, "threads share a panel evenly");
  static_assert(DEPTH % STEPS == 0 && STEPS % V == 0, "whole runs along k");

  typedef typename held_as<element, V>::type Held;
  Held held[COUNT];

  TCF_INLINE int outer(int i) {
    const unsigned v = threadIdx.x + i * THREADS;
    return Source::along_k ? v / RUN % SPAN : v % RUN * V;
  }
  TCF_INLINE int depth(int i) {
    const unsigned v = threadIdx.x + i * THREADS;
    return Source::along_k ? v / (RUN * SPAN) * STEPS + v % RUN * V : v / RUN;
  }

  template <class I>
  __device__ __forceinline__ void read(const Source& source, I b, I outer0, I outers, I k0,
                                       I depths) {
    TCF_UNROLL
    for (int i = 0; i < COUNT; ++i) {
      const I o = outer0 + outer(i), k = k0 + depth(i);
      held[i] = Held{};
      if (o < outers && k < depths) held[i] = bits<Held>(source.at(b, o, k));
    }
  }
  template <class Panel>
  __device__ __forceinline__ void write(typename Panel::element* panel) const {
    TCF_UNROLL
    for (int i = 0; i < COUNT; ++i)
      Panel::template put<V, Source::along_k>(panel, outer(i), depth(i),
                                              bits<vec<element, V>>(held[i]));
  }
};

// Where a tile is: neighbours share panels, and eight rows of tiles are walked column by column,
// so that tiles that run at the same time find each other's panels in the L2 cache.
template <class Tile, class I>
struct Place {
  I b, m, n;

  TCF_INLINE I count(const Extents<I>& e) {
    return e.batches * ((e.m + Tile::m - 1) / Tile::m) * ((e.n + Tile::n - 1) / Tile::n);
  }
  TCF_INLINE Place of(I number, const Extents<I>& e) {
    constexpr I HEIGHT = 8;
    const I rows = (e.m + Tile::m - 1) / Tile::m, columns = (e.n + Tile::n - 1) / Tile::n;
    const I b = number / (rows * columns), rest = number % (rows * columns);
    const I first = rest / (HEIGHT * columns) * HEIGHT, inside = rest % (HEIGHT * columns);
    const I height = rows - first < HEIGHT ? rows - first : HEIGHT;
    return {b, (first + inside % height) * Tile::m, inside / height * Tile::n};
  }
};

// The sums of one tile: all of k, panel by panel.
template <class Tile, class A, class B, class I>
TCF_INLINE void accumulate(const A& a, const B& b, const Extents<I>& e, const Place<Tile, I>& at,
                           char* shared, typename Tile::Sums& sums) {
  typedef typename Tile::template PanelOf<Tile::m, A::along_k> PanelA;
  typedef typename Tile::template PanelOf<Tile::n, B::along_k> PanelB;
  typedef typename Tile::element E;
  E* panel_a = (E*)shared;
  E* panel_b = panel_a + 2 * PanelA::size;
  Fetch<Tile, A, Tile::m> next_a;
  Fetch<Tile, B, Tile::n> next_b;
  next_a.read(a, at.b, at.m, e.m, I(0), e.k);
  next_b.read(b, at.b, at.n, e.n, I(0), e.k);
  next_a.template write<PanelA>(panel_a);
  next_b.template write<PanelB>(panel_b);
  __syncthreads();
  int turn = 0;
  for (I k = Tile::k;; k += Tile::k) {
    const bool more = k < e.k;
    if (more) {
      next_a.read(a, at.b, at.m, e.m, k, e.k);
      next_b.read(b, at.b, at.n, e.n, k, e.k);
    }
    Tile::template multiply<PanelA, PanelB>(panel_a + turn * PanelA::size,
                                            panel_b + turn * PanelB::size, sums);
    if (!more) break;
    turn ^= 1;
    next_a.template write<PanelA>(panel_a + turn * PanelA::size);
    next_b.template write<PanelB>(panel_b + turn * PanelB::size);
    __syncthreads();
  }
}

// Hands the sums of a tile to what becomes of them, some rows of each warp at a time.
template <class Tile, class C, class I>
TCF_INLINE void deliver(const C& c, const Extents<I>& e, const Place<Tile, I>& at, char* shared,
                        const typename Tile::Sums& sums) {
  typedef typename Tile::sum S;
  constexpr int V = C::width, ROWS = Tile::staged_rows, COLUMNS = Tile::warp_n;
  constexpr int STRIDE = Tile::staged_stride;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const I m0 = at.m + warp / Tile::warps_n * Tile::warp_m;
  const I n0 = at.n + warp % Tile::warps_n * COLUMNS;
  S* staged = (S*)shared + warp * ROWS * STRIDE;
  __syncthreads();  // the panels have been read
  TCF_UNROLL
  for (int part = 0; part < Tile::warp_m / ROWS; ++part) {
    Tile::stage(staged, part, sums);
    __syncwarp();
    for (int v = lane; v < ROWS * COLUMNS / V; v += 32) {
      const int row = v / (COLUMNS / V), column = v % (COLUMNS / V) * V;
      const I m = m0 + Tile::staged_row(part, row), n = n0 + column;
      if (m < e.m && n < e.n) c.at(at.b, m, n, load<S, V>(staged + row * STRIDE + column));
    }
    __syncwarp();
  }
}

// Bytes of shared memory that a block needs.
template <class Tile, bool A_ALONG_K, bool B_ALONG_K>
constexpr int contraction_bytes() {
  constexpr int panels = 2 * int(sizeof(typename Tile::element)) *
                         (Tile::template PanelOf<Tile::m, A_ALONG_K>::size +
                          Tile::template PanelOf<Tile::n, B_ALONG_K>::size);
  constexpr int staged = Tile::threads / 32 * Tile::staged_rows * Tile::staged_stride *
                         int(sizeof(typename Tile::sum));
  return panels > staged ? panels : staged;
}

// The whole contraction, by a grid of any size; a block has Tile::threads threads and shared is
// 16-byte aligned memory of SHARED bytes.
template <class Tile, int SHARED, class A, class B, class C, class I>
TCF_INLINE void contract(const Extents<I>& e, const A& a, const B& b, const C& c, char* shared) {
  constexpr int needed = contraction_bytes<Tile, A::along_k, B::along_k>();
  static_assert(SHARED >= needed, "what a launch asks for");
  const I tiles = Place<Tile, I>::count(e);
  for (I number = blockIdx.x; number < tiles; number += gridDim.x) {
    const Place<Tile, I> at = Place<Tile, I>::of(number, e);
    typename Tile::Sums sums = {};
    accumulate<Tile>(a, b, e, at, shared, sums);
    deliver<Tile>(c, e, at, shared, sums);
    __syncthreads();  // the staged sums have been read
  }
}

}  // namespace tcf
