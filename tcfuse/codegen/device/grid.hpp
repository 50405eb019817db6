// The grid: which turns a team takes, and how a loop over lanes is divided among its threads.
namespace tcf {

// The first turn of this thread's team of N; the teams of the grid take turns round and round.
template <int N, class I>
TCF_INLINE I first_turn() {
  return I(blockIdx.x) * I(blockDim.x / N) + I(threadIdx.x / N);
}
template <int N, class I>
TCF_INLINE I teams() {
  return I(gridDim.x) * I(blockDim.x / N);
}

// Groups of L lanes that each of N threads has of that many iterations: G where that is known.
template <int G, int N, int L>
TCF_INLINE int groups(int64_t extent) {
  if constexpr (G > 0) {
    return G;
  } else {
    return int((extent + N * L - 1) / (N * L));
  }
}

}  // namespace tcf
