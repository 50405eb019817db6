TCF_KERNEL(k_0)(char* const* tensors, const int64_t* sizes, char* shared,
    char* local, int64_t begin, int64_t end, int32_t* fault) {
  (void)tensors; (void)sizes; (void)shared; (void)local; (void)begin;
  (void)end; (void)fault;
  const int64_t n0 = sizes[0]; (void)n0;
  const int64_t n1 = sizes[1]; (void)n1;
  const float* __restrict T_X = (const float*)tensors[0];
  const uint8_t* __restrict T_P = (const uint8_t*)tensors[1];
  float* __restrict T_Y = (float*)tensors[2];
  float T_M = float(0);
  float* __restrict T_E = (float*)(local + 0);
  float T_S = float(0);
  int64_t c0 = 0 + begin;
  for (int64_t turn = begin; turn < end; ++turn) {
    T_M = -__builtin_inff();
    T_S = 0.e+00f;
    constexpr int L1 = tcf::lanes_for(4, 1048576);
    if (0 < n1) {
      auto acc3 = tcf::splat<float, L1>(-__builtin_inff());
      auto acc7 = tcf::splat<float, L1>(-__builtin_inff());
      int64_t base4 = 0;
      for (; base4 + 2 * L1 <= n1; base4 += 2 * L1) {
        {
          const int64_t c1 = base4;
          const auto v_5 = tcf::select(tcf::to_mask(tcf::load<uint8_t, L1>(T_P + c1)), tcf::load<float, L1>(T_X + c0 * n1 + c1), tcf::splat<float, L1>(-__builtin_inff()));
          acc3 = tcf::max_(v_5, acc3);
        }
        {
          const int64_t c1 = L1 + base4;
          const auto v_6 = tcf::select(tcf::to_mask(tcf::load<uint8_t, L1>(T_P + c1)), tcf::load<float, L1>(T_X + c0 * n1 + c1), tcf::splat<float, L1>(-__builtin_inff()));
          acc7 = tcf::max_(v_6, acc7);
        }
      }
      for (; base4 + L1 <= n1; base4 += L1) {
        {
          const int64_t c1 = base4;
          const auto v_8 = tcf::select(tcf::to_mask(tcf::load<uint8_t, L1>(T_P + c1)), tcf::load<float, L1>(T_X + c0 * n1 + c1), tcf::splat<float, L1>(-__builtin_inff()));
          acc3 = tcf::max_(v_8, acc3);
        }
      }
      if (base4 < n1) {
        const int64_t left = n1 - base4;
        {
          const int64_t c1 = base4;
          const auto v_9 = tcf::select(tcf::to_mask(tcf::load_first<uint8_t, L1>(T_P + c1, left, uint8_t(0))), tcf::load_first<float, L1>(T_X + c0 * n1 + c1, left, float(0)), tcf::splat<float, L1>(-__builtin_inff()));
          acc3 = tcf::max_(tcf::select(tcf::first_lanes<L1>(left), v_9, tcf::splat<float, L1>(-__builtin_inff())), acc3);
        }
      }
      T_M = tcf::max_(tcf::hmax(tcf::max_(acc7, acc3)), T_M);
    }
    constexpr int L10 = tcf::lanes_for(4, 1048576, 2);
    if (0 < n1) {
      auto acc12 = tcf::splat<float, L10>(0.e+00f);
      int64_t base13 = 0;
      for (; base13 + L10 <= n1; base13 += L10) {
        {
          const int64_t c1 = base13;
          const auto v_14 = tcf::select(tcf::to_mask(tcf::load<uint8_t, L10>(T_P + c1)), tcf::load<float, L10>(T_X + c0 * n1 + c1), tcf::splat<float, L10>(-__builtin_inff()));
          tcf::store<L10>(T_E + c1, tcf::exp_bounded((v_14 - tcf::splat<float, L10>(T_M))));
          acc12 = (acc12 + tcf::load<float, L10>(T_E + c1));
        }
      }
      if (base13 < n1) {
        const int64_t left = n1 - base13;
        {
          const int64_t c1 = base13;
          const auto v_15 = tcf::select(tcf::to_mask(tcf::load_first<uint8_t, L10>(T_P + c1, left, uint8_t(0))), tcf::load_first<float, L10>(T_X + c0 * n1 + c1, left, float(0)), tcf::splat<float, L10>(-__builtin_inff()));
          tcf::store_first<L10>(T_E + c1, tcf::exp_bounded((v_15 - tcf::splat<float, L10>(T_M))), left);
          acc12 = (acc12 + tcf::select(tcf::first_lanes<L10>(left), tcf::load_first<float, L10>(T_E + c1, left, float(0)), tcf::splat<float, L10>(0.e+00f)));
        }
      }
      T_S = (T_S + tcf::hsum(acc12));
    }
    constexpr int L16 = tcf::lanes_for(4, 1048576, 4);
    if (0 < n1) {
      const auto by17 = tcf::divisor(T_S);
      int64_t base18 = 0;
      const int64_t last19 = n1 - L16;
      if (base18 <= last19) {
        for (; base18 < n1; base18 += L16) {
          const int64_t at20 = tcf_min(base18, last19);
          {
            const int64_t c1 = at20;
            tcf::store<L16>(T_Y + c0 * n1 + c1, tcf::divided(tcf::load<float, L16>(T_E + c1), by17));
          }
        }
      }
      else {
        const int64_t left = n1 - base18;
        {
          const int64_t c1 = base18;
          tcf::store_first<L16>(T_Y + c0 * n1 + c1, tcf::divided(tcf::load_first<float, L16>(T_E + c1, left, float(0)), by17), left);
        }
      }
    }
    ++c0;
  }
}
