// def norm(float(512, 768) X, float(768) G, float(768) B) -> (float(512, 768) Y) {
//   S(i) +=! X(i, j) where i in 0:512, j in 0:768
//   M(i) = S(i) / 768 where i in 0:512
//   V(i) +=! t * t where i in 0:512, j in 0:768, t = X(i, j) - M(i)
//   D(i) = sqrt(V(i) / 768 + 1e-05) where i in 0:512
//   Y(i, j) = (X(i, j) - M(i)) / D(i) * G(j) + B(j) where i in 0:512, j in 0:768
// }

#include "tcf_device.hpp"

extern __shared__ __align__(16) char tcf_shared[];

template <class tcf_index, int TCF_TEAM, int TCF_L, int TCF_G, int TCF_ROWS>
TCF_INLINE void k_0_kept(const float* __restrict__ T_X, const float* __restrict__ T_G, const float* __restrict__ T_B, float* __restrict__ T_Y, char* scratch, int32_t* fault) {
  tcf::team<TCF_TEAM> team;
  const int tcf_rank = team.rank(); (void)tcf_rank;
  const tcf_index turns = 512;
  for (tcf_index turn = tcf::first_turn<TCF_TEAM, tcf_index>(); turn < turns; turn += tcf::teams<TCF_TEAM, tcf_index>()) {
    tcf_index rest = turn;
    const tcf_index c0 = rest;
    tcf::vec<float, TCF_L> T_X_row[TCF_G ? TCF_G : 1];
    float T_S = float(0);
    float T_M = float(0);
    float T_V = float(0);
    float T_D = float(0);
    T_S = 0.e+00f;
    T_V = 0.e+00f;
    auto acc2 = tcf::splat<float, TCF_L>(0.e+00f);
    if (0 < 768) {
      #pragma unroll (TCF_G ? TCF_G : 1)
      for (int tcf_group = 0; tcf_group < tcf::groups<TCF_G, TCF_TEAM, TCF_L>(768); ++tcf_group) {
        const tcf_index base3 = (tcf_group * TCF_TEAM + tcf_rank) * TCF_L;
        if (base3 + TCF_L <= 768) {
          {
            const tcf_index c1 = base3;
            const auto x4 = tcf::load<float, TCF_L>(T_X + 768 * c0 + c1);
            T_X_row[tcf_group] = x4;
            acc2 = (acc2 + T_X_row[tcf_group]);
          }
        }
      }
    }
    const auto acc2_all = team.sum(tcf::hsum(acc2));
    T_S = (T_S + acc2_all);
    T_M = (T_S / 7.68e+02f);
    auto acc6 = tcf::splat<float, TCF_L>(0.e+00f);
    if (0 < 768) {
      #pragma unroll (TCF_G ? TCF_G : 1)
      for (int tcf_group = 0; tcf_group < tcf::groups<TCF_G, TCF_TEAM, TCF_L>(768); ++tcf_group) {
        const tcf_index base7 = (tcf_group * TCF_TEAM + tcf_rank) * TCF_L;
        if (base7 + TCF_L <= 768) {
          {
            const tcf_index c1 = base7;
            const auto t_8 = (T_X_row[tcf_group] - tcf::splat<float, TCF_L>(T_M));
            acc6 = (acc6 + (t_8 * t_8));
          }
        }
      }
    }
    const auto acc6_all = team.sum(tcf::hsum(acc6));
    T_V = (T_V + acc6_all);
    T_D = tcf::sqrt(((T_V / 7.68e+02f) + 1.e-05f));
    if (0 < 768) {
      const auto by9 = 1.e+00f / T_D;
      #pragma unroll (TCF_G ? TCF_G : 1)
      for (int tcf_group = 0; tcf_group < tcf::groups<TCF_G, TCF_TEAM, TCF_L>(768); ++tcf_group) {
        const tcf_index base13 = (tcf_group * TCF_TEAM + tcf_rank) * TCF_L;
        if (base13 + TCF_L <= 768) {
          {
            const tcf_index c1 = base13;
            const auto x14 = tcf::load<float, TCF_L>(T_G + c1);
            const auto v_15 = (((T_X_row[tcf_group] - tcf::splat<float, TCF_L>(T_M)) * tcf::splat<float, TCF_L>(by9)) * x14);
            const auto x16 = tcf::load<float, TCF_L>(T_B + c1);
            tcf::store<TCF_L>(T_Y + 768 * c0 + c1, (v_15 + x16));
          }
        }
      }
    }
  }
}
