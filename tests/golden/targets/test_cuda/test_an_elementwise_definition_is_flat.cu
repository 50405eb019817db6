// def act(float(8, 96) X, float(96) B) -> (float(8, 96) Y) {
//   Y(i, j) = fmax(X(i, j) + B(j), 0.0)
// }

#include "tcf_device.hpp"

extern __shared__ __align__(16) char tcf_shared[];

template <class tcf_index, int TCF_TEAM, int TCF_L, int TCF_G, int TCF_ROWS>
TCF_INLINE void k_0_body(const float* __restrict__ T_X, const float* __restrict__ T_B, float* __restrict__ T_Y, char* scratch, int32_t* fault) {
  constexpr int tcf_rank = 0; (void)tcf_rank;
  const tcf_index groups = (96 + TCF_L - 1) / TCF_L;
  const tcf_index turns = 8 * groups;
  for (tcf_index turn = tcf::first_turn<1, tcf_index>(); turn < turns; turn += tcf::teams<1, tcf_index>()) {
    tcf_index rest = turn / groups;
    const tcf_index base = 0 + turn % groups * TCF_L;
    const tcf_index c0 = rest;
    if (base + TCF_L <= 96) {
      {
        const tcf_index c1 = base;
        const auto x1 = tcf::load<float, TCF_L>(T_X + 96 * c0 + c1);
        const auto x2 = tcf::load<float, TCF_L>(T_B + c1);
        tcf::store<TCF_L>(T_Y + 96 * c0 + c1, tcf::fmax((x1 + x2), tcf::splat<float, TCF_L>(0.e+00f)));
      }
    }
  }
}
