// Tiles of contractions by multiply-adds of single threads.

namespace tcf {

// A tile of T for WARPS_M x WARPS_N warps.  The lanes of a warp are 4 along m and 8 along n; each
// keeps TM x TN sums, in packs of 16 bytes along either side, so that what 8 lanes read of a
// panel at once is the same pack or 128 bytes in a row.
template <class T, int WARPS_M, int WARPS_N, int TM, int TN, int DEPTH>
struct FmaTile {
  typedef T element;
  typedef T sum;
  static constexpr int PACK = 16 / sizeof(T);
  static constexpr int warps_n = WARPS_N, warp_m = 4 * TM, warp_n = 8 * TN;
  static constexpr int m = WARPS_M * warp_m, n = WARPS_N * warp_n, k = DEPTH;
  static constexpr int threads = 32 * WARPS_M * WARPS_N, run = 8;
  static_assert(TM % PACK == 0 && TN % PACK == 0, "packs of 16 bytes");

  struct Sums {
    T at[TM][TN];
  };

  // One row for each k.  Rows are a pack apart in the banks, so that eight of them, as lanes
  // along k store to at once, are in different banks.
  template <int SPAN, bool ALONG_K>
  struct PanelOf {
    typedef T element;
    static constexpr int stride = SPAN + PACK, size = DEPTH * stride;

    template <int V, bool COLUMN>
    TCF_INLINE void put(T* panel, int outer, int k, const vec<T, V>& values) {
      static_assert(V <= PACK, "one store for each vector");
      if constexpr (COLUMN) {
        TCF_UNROLL
        for (int j = 0; j < V; ++j) panel[(k + j) * stride + outer] = lane(values, j);
      } else {
        store<V>(panel + k * stride + outer, values);
      }
    }
  };

  static constexpr int staged_rows = 8, staged_stride = warp_n;

  TCF_INLINE int lane_m() { return threadIdx.x % 32 / 8 * PACK; }
  TCF_INLINE int lane_n() { return threadIdx.x % 8 * PACK; }

  template <class PanelA, class PanelB>
  TCF_INLINE void multiply(const T* a, const T* b, Sums& sums) {
    a += threadIdx.x / 32 / WARPS_N * warp_m + lane_m();
    b += threadIdx.x / 32 % WARPS_N * warp_n + lane_n();
    // Longer bodies gain nothing, and have the compiler keep more of the panels in registers.
    constexpr int STEPS = TM * TN < 64 ? 128 / (TM * TN) : 2;
#pragma unroll (STEPS)
    for (int step = 0; step < DEPTH; ++step) {
      vec<T, PACK> x[TM / PACK], y[TN / PACK];
      TCF_UNROLL
      for (int i = 0; i < TM / PACK; ++i)
        x[i] = load<T, PACK>(a + step * PanelA::stride + i * 4 * PACK);
      TCF_UNROLL
      for (int j = 0; j < TN / PACK; ++j)
        y[j] = load<T, PACK>(b + step * PanelB::stride + j * 8 * PACK);
      TCF_UNROLL
      for (int i = 0; i < TM; ++i) {
        TCF_UNROLL
        for (int j = 0; j < TN; ++j)
          sums.at[i][j] += lane(x[i / PACK], i % PACK) * lane(y[j / PACK], j % PACK);
      }
    }
  }

  // Two of the rows that each lane has, so eight of a warp.
  TCF_INLINE void stage(T* staged, int part, const Sums& sums) {
    TCF_UNROLL
    for (int i = 0; i < 2; ++i) {
      TCF_UNROLL
      for (int j = 0; j < TN / PACK; ++j) {
        vec<T, PACK> values = {};
        TCF_UNROLL
        for (int l = 0; l < PACK; ++l) set_lane(values, l, sums.at[2 * part + i][j * PACK + l]);
        store<PACK>(staged + (lane_m() / PACK * 2 + i) * warp_n + j * 8 * PACK + lane_n(), values);
      }
    }
  }
  TCF_INLINE int staged_row(int part, int row) {
    const int i = 2 * part + row % 2;
    return i / PACK * 4 * PACK + row / 2 * PACK + i % PACK;
  }
};

}  // namespace tcf
