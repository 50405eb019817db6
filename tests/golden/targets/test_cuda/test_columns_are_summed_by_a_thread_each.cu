// def sums(float(n0, n1) X) -> (float(n1) Y) {
//   Y(j) +=! X(i, j) where j in 0:n1, i in 0:n0
// }

#include "tcf_device.hpp"

extern __shared__ __align__(16) char tcf_shared[];

template <class tcf_index, int TCF_TEAM, int TCF_L, int TCF_G, int TCF_ROWS>
TCF_INLINE void k_0_body(const float* __restrict__ T_X, float* __restrict__ T_Y, char* scratch, int32_t* fault, int64_t size_n0, int64_t size_n1) {
  const tcf_index n0 = tcf_index(size_n0); (void)n0;
  const tcf_index n1 = tcf_index(size_n1); (void)n1;
  constexpr int tcf_rank = 0; (void)tcf_rank;
  const tcf_index groups = (n1 + TCF_L - 1) / TCF_L;
  const tcf_index turns = groups;
  for (tcf_index turn = tcf::first_turn<1, tcf_index>(); turn < turns; turn += tcf::teams<1, tcf_index>()) {
    const tcf_index base = 0 + turn * TCF_L;
    if (base + TCF_L <= n1) {
      {
        const tcf_index c0 = base;
        tcf::vec<float, TCF_L> T_Y_acc = {};
        T_Y_acc = tcf::splat<float, TCF_L>(0.e+00f);
        for (tcf_index c1 = 0; c1 < n0; ++c1) {
          const auto x1 = tcf::load<float, TCF_L>(T_X + c0 + c1 * n1);
          T_Y_acc = (T_Y_acc + x1);
        }
        tcf::store<TCF_L>(T_Y + c0, T_Y_acc);
      }
    }
  }
}
