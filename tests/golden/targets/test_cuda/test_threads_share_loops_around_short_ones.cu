// def norm(float(4, 16, 12, 12) X, float(16) G) -> (float(4, 16, 12, 12) Y) {
//   S(n) +=! X(n, c, h, w)
//   V(n) +=! t * t where t = X(n, c, h, w) - S(n) / 2304
//   Y(n, c, h, w) = (X(n, c, h, w) - S(n) / 2304) * rsqrt(V(n) / 2304 + 1e-05) * G(c)
// }

#include "tcf_device.hpp"

extern __shared__ __align__(16) char tcf_shared[];

template <class tcf_index, int TCF_TEAM, int TCF_L, int TCF_G, int TCF_ROWS>
TCF_INLINE void k_0_kept(const float* __restrict__ T_X, const float* __restrict__ T_G, float* __restrict__ T_Y, char* scratch, int32_t* fault) {
  tcf::team<TCF_TEAM> team;
  const int tcf_rank = team.rank(); (void)tcf_rank;
  const tcf_index turns = 4;
  for (tcf_index turn = tcf::first_turn<TCF_TEAM, tcf_index>(); turn < turns; turn += tcf::teams<TCF_TEAM, tcf_index>()) {
    tcf_index rest = turn;
    const tcf_index c0 = rest;
    tcf::vec<float, TCF_L> T_X_row[TCF_G ? TCF_G : 1];
    float T_S = float(0);
    float T_V = float(0);
    T_S = 0.e+00f;
    T_V = 0.e+00f;
    const tcf_index groups3 = (12 + TCF_L - 1) / TCF_L;
    const tcf_index total4 = 192 * groups3;
    auto acc2 = tcf::splat<float, TCF_L>(0.e+00f);
    #pragma unroll (TCF_G ? TCF_G : 1)
    for (int tcf_group = 0; tcf_group < tcf::groups<TCF_G, TCF_TEAM, 1>(total4); ++tcf_group) {
      tcf_index rest5 = tcf_group * TCF_TEAM + tcf_rank;
      if (rest5 >= total4) continue;
      const tcf_index base6 = rest5 % groups3 * TCF_L;
      rest5 /= groups3;
      const tcf_index c2 = rest5 % 12;
      rest5 /= 12;
      const tcf_index c1 = rest5;
      if (base6 + TCF_L <= 12) {
        {
          const tcf_index c3 = base6;
          const auto x7 = tcf::load<float, TCF_L>(T_X + 2304 * c0 + 144 * c1 + 12 * c2 + c3);
          T_X_row[tcf_group] = x7;
          acc2 = (acc2 + T_X_row[tcf_group]);
        }
      }
    }
    const auto acc2_all = team.sum(tcf::hsum(acc2));
    T_S = (T_S + acc2_all);
    const tcf_index groups10 = (12 + TCF_L - 1) / TCF_L;
    const tcf_index total11 = 192 * groups10;
    auto acc9 = tcf::splat<float, TCF_L>(0.e+00f);
    #pragma unroll (TCF_G ? TCF_G : 1)
    for (int tcf_group = 0; tcf_group < tcf::groups<TCF_G, TCF_TEAM, 1>(total11); ++tcf_group) {
      tcf_index rest12 = tcf_group * TCF_TEAM + tcf_rank;
      if (rest12 >= total11) continue;
      const tcf_index base13 = rest12 % groups10 * TCF_L;
      rest12 /= groups10;
      const tcf_index c2 = rest12 % 12;
      rest12 /= 12;
      const tcf_index c1 = rest12;
      if (base13 + TCF_L <= 12) {
        {
          const tcf_index c3 = base13;
          const auto t_14 = (T_X_row[tcf_group] - tcf::splat<float, TCF_L>((T_S / 2.304e+03f)));
          acc9 = (acc9 + (t_14 * t_14));
        }
      }
    }
    const auto acc9_all = team.sum(tcf::hsum(acc9));
    T_V = (T_V + acc9_all);
    const tcf_index groups16 = (12 + TCF_L - 1) / TCF_L;
    const tcf_index total17 = 192 * groups16;
    #pragma unroll (TCF_G ? TCF_G : 1)
    for (int tcf_group = 0; tcf_group < tcf::groups<TCF_G, TCF_TEAM, 1>(total17); ++tcf_group) {
      tcf_index rest18 = tcf_group * TCF_TEAM + tcf_rank;
      if (rest18 >= total17) continue;
      const tcf_index base19 = rest18 % groups16 * TCF_L;
      rest18 /= groups16;
      const tcf_index c2 = rest18 % 12;
      rest18 /= 12;
      const tcf_index c1 = rest18;
      if (base19 + TCF_L <= 12) {
        {
          const tcf_index c3 = base19;
          const auto v_20 = ((T_X_row[tcf_group] - tcf::splat<float, TCF_L>((T_S / 2.304e+03f))) * tcf::splat<float, TCF_L>(tcf::rsqrt(((T_V / 2.304e+03f) + 1.e-05f))));
          tcf::store<TCF_L>(T_Y + 2304 * c0 + 144 * c1 + 12 * c2 + c3, (v_20 * tcf::splat<float, TCF_L>(T_G[c1])));
        }
      }
    }
  }
}
