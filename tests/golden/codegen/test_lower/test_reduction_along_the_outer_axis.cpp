TCF_KERNEL(k_0)(char* const* tensors, const int64_t* sizes, char* shared,
    char* local, int64_t begin, int64_t end, int32_t* fault) {
  (void)tensors; (void)sizes; (void)shared; (void)local; (void)begin;
  (void)end; (void)fault;
  const int64_t n0 = sizes[0]; (void)n0;
  const int64_t n1 = sizes[1]; (void)n1;
  const float* __restrict T_X = (const float*)tensors[0];
  float* __restrict T_Y = (float*)tensors[1];
  const int64_t first = 0 + begin * 64, last = tcf_min(n1, 0 + end * 64);
  constexpr int L1 = tcf::lanes_for(4, 1048576);
  if (first < last) {
    int64_t base3 = first;
    const int64_t last4 = last - L1;
    if (base3 <= last4) {
      for (; base3 < last; base3 += L1) {
        const int64_t at5 = tcf_min(base3, last4);
        {
          const int64_t c0 = at5;
          tcf::vec<float, L1> T_Y_acc = {};
          T_Y_acc = tcf::splat<float, L1>(0.e+00f);
          for (int64_t c1 = 0; c1 < n0; ++c1) {
            T_Y_acc = (T_Y_acc + tcf::load<float, L1>(T_X + c0 + c1 * n1));
          }
          tcf::store<L1>(T_Y + c0, T_Y_acc);
        }
      }
    }
    else {
      const int64_t left = last - base3;
      {
        const int64_t c0 = base3;
        tcf::vec<float, L1> T_Y_acc = {};
        T_Y_acc = tcf::splat<float, L1>(0.e+00f);
        for (int64_t c1 = 0; c1 < n0; ++c1) {
          T_Y_acc = (T_Y_acc + tcf::load_first<float, L1>(T_X + c0 + c1 * n1, left, float(0)));
        }
        tcf::store_first<L1>(T_Y + c0, T_Y_acc, left);
      }
    }
  }
}
