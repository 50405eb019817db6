// def f(float(64, 96) X, float(96, 64) Z, float(64, 96) W, float(96) B) -> (float(96, 64) Y) {
//   Y(i, j) = X(j, i) * Z(i, j) + W(j, i) - B(i)
// }

#include "tcf_device.hpp"

extern __shared__ __align__(16) char tcf_shared[];

template <class tcf_index, int TCF_L, int TCF_BYTES>
TCF_INLINE void k_0_squares_body(const float* __restrict__ T_X, const float* __restrict__ T_Z, const float* __restrict__ T_W, const float* __restrict__ T_B, float* __restrict__ T_Y, char* scratch, int32_t* fault) {
  constexpr int tcf_rank = 0; (void)tcf_rank;
  __shared__ uint32_t cells_T_X[1056];
  __shared__ uint32_t cells_T_W[1056];
  const tcf_index turns = 6;
  for (tcf_index turn = blockIdx.x; turn < turns; turn += gridDim.x) {
    tcf_index rest = turn;
    const tcf_index along = rest % 3 * 32;
    rest /= 3;
    const tcf_index across = rest % 2 * 32;
    rest /= 2;
    tcf::stage<uint32_t, 32, (TCF_BYTES > 4 ? TCF_BYTES / 4 : 1)>(cells_T_X, T_X + (96 * across + along), tcf_index(96), tcf_index(64 - across), tcf_index(96 - along));
    const tcf::staged<float, uint32_t> square_T_X = {cells_T_X, uint32_t(33 * across + along)};
    tcf::stage<uint32_t, 32, (TCF_BYTES > 4 ? TCF_BYTES / 4 : 1)>(cells_T_W, T_W + (96 * across + along), tcf_index(96), tcf_index(64 - across), tcf_index(96 - along));
    const tcf::staged<float, uint32_t> square_T_W = {cells_T_W, uint32_t(33 * across + along)};
    __syncthreads();
    #pragma unroll 4
    for (int step = 0; step < tcf::square<uint32_t, 32, TCF_L>::steps; ++step) {
      const tcf::square<uint32_t, 32, TCF_L> at(step);
      const tcf_index c0 = along + at.row;
      if (at.row < 32 && c0 < 96) {
        const tcf_index base = across + at.column;
        if (base + TCF_L <= 64) {
          {
            const tcf_index c1 = base;
            const auto x1 = tcf::load_strided<float, TCF_L>(square_T_X + c0 + 33 * c1, 33);
            const auto x2 = tcf::load<float, TCF_L>(T_Z + 64 * c0 + c1);
            const auto x3 = tcf::load_strided<float, TCF_L>(square_T_W + c0 + 33 * c1, 33);
            tcf::store<TCF_L>(T_Y + 64 * c0 + c1, (((x1 * x2) + x3) - tcf::splat<float, TCF_L>(T_B[c0])));
          }
        }
      }
    }
    __syncthreads();
  }
}
