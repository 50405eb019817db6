// The grid: which turns of the parallel loops a team takes.
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

}  // namespace tcf
