// Squares in shared memory, which a block fills row by row and reads column by column.
//
// A square has T x T cells of 4 or 8 bytes, each the bits of an element, and its rows are T + 1
// cells long.  So cell (i, j) is in bank i + j of 128 bytes' worth of banks, and threads that
// fill L x (banks / L) cells, L neighbours each, or read as many the other way, meet in none.
namespace tcf {

constexpr int stage_block = 256;  // threads of a block

// Where a thread is when all threads of a block walk over a square, L neighbours of a row each.
template <class C, int T, int L>
struct square {
  static constexpr int banks = 128 / int(sizeof(C));
  static constexpr int pieces = banks / L;        // threads side by side
  static constexpr int rows = 32 / pieces;        // rows that a warp covers
  static constexpr int parts = T / banks;         // warps that cover a row
  static constexpr int warps = stage_block / 32;
  static constexpr int items = parts * T / rows;  // of all warps together
  static constexpr int steps = (items + warps - 1) / warps;
  int row, column;

  __device__ __forceinline__ explicit square(int step) {
    const int item = int(threadIdx.x) / 32 + step * warps, lane = int(threadIdx.x) % 32;
    row = item / parts * rows + lane / pieces;
    column = item % parts * banks + lane % pieces * L;
  }
};

// Fills a square: cell (i, j) from p[i * stride + j], for i in first_row:rows and j in
// first_column:columns.  Some loads are on their way at once, as many as there are registers for.
template <class C, int T, int L, class X, class I>
TCF_INLINE void stage(C* cells, const X* p, I stride, I rows, I columns, I first_row = 0,
                      I first_column = 0) {
  typedef square<C, T, L> S;
  constexpr int batch = L * int(sizeof(X)) < 8 ? 8 : 4;
  constexpr int count = S::steps < batch ? S::steps : batch;
#pragma unroll 1
  for (int first = 0; first < S::steps; first += count) {
    vec<X, L> v[count];
    TCF_UNROLL
    for (int k = 0; k < count; k++) {
      const S at(first + k);
      if (at.row >= T || at.row < first_row || at.row >= rows) continue;
      const X* from = p + (at.row * stride + at.column);
      if (at.column >= first_column && at.column + L <= columns) {
        v[k] = load<X, L>(from);
      } else {
        TCF_UNROLL
        for (int i = 0; i < L; i++) {
          const bool there = at.column + i >= first_column && at.column + i < columns;
          set_lane(v[k], i, there ? from[i] : X(0));
        }
      }
    }
    TCF_UNROLL
    for (int k = 0; k < count; k++) {
      const S at(first + k);
      if (at.row >= T || at.row < first_row || at.row >= rows || at.column >= columns) continue;
      C* to = cells + (at.row * (T + 1) + at.column);
      TCF_UNROLL
      for (int i = 0; i < L; i++) to[i] = C(bits<uint_elem<X>>(lane(v[k], i)));
    }
  }
}

// Elements of type X in cells, of which the first is number first.  Numbers may be large; their
// differences are not, and are right modulo 2^32.
template <class X, class C>
struct staged {
  const C* cells;
  uint32_t first;

  __device__ __forceinline__ X operator[](int64_t i) const {
    return bits<X>(uint_elem<X>(cells[uint32_t(i) - first]));
  }
  __device__ __forceinline__ staged operator+(int64_t i) const {
    return {cells, first - uint32_t(i)};
  }
};
template <class X, int L, class C>
TCF_INLINE vec<X, L> load_strided(staged<X, C> p, int64_t stride) {
  vec<X, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, p[i * stride]);
  return v;
}
template <class X, int L, class C>
TCF_INLINE vec<X, L> lookup(staged<X, C> table, vec<uint8_t, L> index) {
  vec<X, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, table[lane(index, i)]);
  return v;
}
template <class X, int L, class C>
TCF_INLINE vec<X, L> gather(staged<X, C> p, vec<int64_t, L> index) {
  vec<X, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, p[lane(index, i)]);
  return v;
}
template <class X, int L, class C>
TCF_INLINE vec<X, L> gather_if(staged<X, C> p, vec<int64_t, L> index, mask<L> m) {
  vec<X, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, lane(m, i) ? p[lane(index, i)] : X(0));
  return v;
}

}  // namespace tcf
