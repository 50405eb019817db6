// Tiles of contractions by tensor cores: warps multiply 16 x 8 elements at a time, and add in
// float.
//
// Sources: PTX ISA, "Matrix multiply-accumulate" (the fragments), "ldmatrix".

namespace tcf {

// ---- one multiplication ---------------------------------------------------------------------

// d += a * b for 16 x 16 by 16 x 8 elements of 16 bits, or 16 x 8 by 8 x 8 of 32.  The lanes 4g + t
// hold of a the pairs or elements t of rows g and g + 8, then those 4 further along k; of b the
// same of column g; of d the columns 2t and 2t + 1 of rows g and g + 8.
#define TCF_MMA(shape, type)                                                              \
  asm("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "                     \
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                   \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                    \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define TCF_MMA_HALF(type, a0, a1, b0)                                                    \
  asm("mma.sync.aligned.m16n8k8.row.col.f32." type "." type ".f32 "                       \
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                               \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b0))

// The same by single threads, for devices whose tensor cores do not know the type.
template <class Cores>
TCF_INLINE void mma_by_threads(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  constexpr int EACH = 4 / sizeof(typename Cores::element);
  const int l = threadIdx.x % 32, row = l & ~3, column = l % 4 * 8;
#pragma unroll 1
  for (int w = 0; w < 8; ++w) {
    const uint32_t x[2] = {__shfl_sync(~0u, w < 4 ? a[0] : a[2], row + w % 4),
                           __shfl_sync(~0u, w < 4 ? a[1] : a[3], row + w % 4)};
    const uint32_t word = w < 4 ? b[0] : b[1];
    const uint32_t y[2] = {__shfl_sync(~0u, word, column + w % 4),
                           __shfl_sync(~0u, word, column + 4 + w % 4)};
    TCF_UNROLL
    for (int i = 0; i < 4; ++i) {
      TCF_UNROLL
      for (int e = 0; e < EACH; ++e) d[i] += Cores::value(x[i / 2], e) * Cores::value(y[i % 2], e);
    }
  }
}

struct HalfCores {
  typedef uint16_t element;
  template <class V>
  TCF_INLINE V rounded(const V& values) {
    return values;
  }
  TCF_INLINE void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if defined(TCF_EMULATED)
    tcf_emulator::mma_pairs<tcf_emulator::half_element>(d, a, b, d);
#elif __CUDA_ARCH__ >= 800
    TCF_MMA("m16n8k16", "f16");
#else
    TCF_MMA_HALF("f16", a[0], a[1], b[0]);
    TCF_MMA_HALF("f16", a[2], a[3], b[1]);
#endif
  }
};
struct BfloatCores {
  typedef uint16_t element;
  template <class V>
  TCF_INLINE V rounded(const V& values) {
    return values;
  }
  TCF_INLINE float value(uint32_t word, int i) { return from_bfloat(uint16_t(word >> 16 * i)); }
  TCF_INLINE void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if defined(TCF_EMULATED)
    tcf_emulator::mma_pairs<tcf_emulator::bfloat_element>(d, a, b, d);
#elif __CUDA_ARCH__ >= 800
    TCF_MMA("m16n8k16", "bf16");
#else
    mma_by_threads<BfloatCores>(d, a, b);
#endif
  }
};
// float, of whose 23 bits of fraction the nearest 10 are used.
struct Tf32Cores {
  typedef float element;
  template <class V>
  TCF_INLINE V rounded(V values) {
    TCF_UNROLL
    for (int i = 0; i < lanes<V>; ++i) {
      const uint32_t u = bits<uint32_t>(lane(values, i));
      const float nearest = bits<float>((u + 0x1000) & 0xffffe000);
      if ((u & 0x7f800000) != 0x7f800000) set_lane(values, i, nearest);
    }
    return values;
  }
  TCF_INLINE float value(uint32_t word, int) { return bits<float>(word); }
  TCF_INLINE void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if defined(TCF_EMULATED)
    tcf_emulator::mma_tf32(d, a, b, d);
#elif __CUDA_ARCH__ >= 800
    TCF_MMA("m16n8k8", "tf32");
#else
    mma_by_threads<Tf32Cores>(d, a, b);
#endif
  }
};
#undef TCF_MMA
#undef TCF_MMA_HALF

// Four matrices of 8 rows of 16 bytes, of which lane l has the address of row l % 8 of matrix
// l / 8.  Lane 4g + t gets word t of row g; transposed, of elements of 16 bits, those of rows 2t
// and 2t + 1 in column g.
template <bool TRANSPOSED>
TCF_INLINE void load_matrices(uint32_t (&r)[4], const void* row) {
#if defined(TCF_EMULATED)
  tcf_emulator::ldmatrix<TRANSPOSED>(r, row);
#else
  const uint32_t at = uint32_t(__cvta_generic_to_shared(row));
  if constexpr (TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
  }
#endif
}

// ---- tiles ----------------------------------------------------------------------------------

// A tile for WARPS_M x WARPS_N warps, each of TM x TN results of a multiplication.
template <class Cores, int WARPS_M, int WARPS_N, int TM, int TN>
struct MmaTile {
  typedef typename Cores::element element;
  typedef float sum;
  static constexpr int CHUNK = 16 / sizeof(element);  // elements of 16 bytes
  static constexpr int warps_n = WARPS_N, warp_m = 16 * TM, warp_n = 8 * TN;
  static constexpr int m = WARPS_M * warp_m, n = WARPS_N * warp_n, k = 4 * CHUNK;
  static constexpr int threads = 32 * WARPS_M * WARPS_N, run = k;
  static_assert(TN % 2 == 0, "two at a time are loaded");

  struct Sums {
    float at[TM][TN][4];
  };

  // Along k: rows of outer, 64 bytes each, of whose four chunks neighbouring pairs of rows have
  // another one first, so that 8 rows' equal chunks are in different banks, as are two whole
  // rows.  Along outer: rows of k, 16 bytes apart in the banks.
  template <int SPAN, bool ALONG_K>
  struct PanelOf {
    typedef typename Cores::element element;
    static constexpr int stride = ALONG_K ? k : SPAN + 8, size = (ALONG_K ? SPAN : k) * stride;

    TCF_INLINE int place(int outer, int k) {
      if (!ALONG_K) return k * stride + outer;
      return outer * stride + (k / CHUNK ^ outer / 2 % 4) * CHUNK + k % CHUNK;
    }
    template <int V, bool COLUMN>
    TCF_INLINE void put(element* panel, int outer, int k, const vec<element, V>& values) {
      static_assert(COLUMN == ALONG_K, "neighbours are stored together");
      store<V>(panel + place(outer, k), Cores::rounded(values));
    }

    // Two fragments along outer and two along k, or the other way round.
    template <bool OUTER_FIRST>
    TCF_INLINE void get(uint32_t (&r)[4], const element* panel, int outer, int k) {
      const int l = threadIdx.x % 32, row = l % 8;
      const int second_outer = OUTER_FIRST ? l / 8 % 2 : l / 16;
      const int second_k = OUTER_FIRST ? l / 16 : l / 8 % 2;
      if constexpr (ALONG_K) {
        outer += 8 * second_outer + row;
        load_matrices<false>(r, panel + place(outer, k + CHUNK * second_k));
      } else if constexpr (sizeof(element) == 2) {
        k += CHUNK * second_k + row;
        load_matrices<true>(r, panel + place(outer + 8 * second_outer, k));
      } else {
        TCF_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int o = OUTER_FIRST ? i % 2 : i / 2, d = OUTER_FIRST ? i / 2 : i % 2;
          r[i] = bits<uint32_t>(panel[place(outer + 8 * o + l / 4, k + 4 * d + l % 4)]);
        }
      }
    }
  };

  static constexpr int staged_rows = 8, staged_stride = warp_n + 8;

  template <class PanelA, class PanelB>
  TCF_INLINE void multiply(const element* a, const element* b, Sums& sums) {
    const int m0 = threadIdx.x / 32 / WARPS_N * warp_m, n0 = threadIdx.x / 32 % WARPS_N * warp_n;
    TCF_UNROLL
    for (int step = 0; step < k; step += 2 * CHUNK) {
      uint32_t x[TM][4], y[TN / 2][4];
      TCF_UNROLL
      for (int i = 0; i < TM; ++i) PanelA::template get<true>(x[i], a, m0 + 16 * i, step);
      TCF_UNROLL
      for (int j = 0; j < TN / 2; ++j) PanelB::template get<false>(y[j], b, n0 + 16 * j, step);
      TCF_UNROLL
      for (int i = 0; i < TM; ++i) {
        TCF_UNROLL
        for (int j = 0; j < TN; ++j) {
          const uint32_t column[2] = {y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]};
          Cores::mma(sums.at[i][j], x[i], column);
        }
      }
    }
  }

  // The upper or the lower eight rows of the results of one row of multiplications.
  TCF_INLINE void stage(float* staged, int part, const Sums& sums) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    TCF_UNROLL
    for (int j = 0; j < TN; ++j) {
      vec<float, 2> values = {};
      set_lane(values, 0, sums.at[part / 2][j][part % 2 * 2]);
      set_lane(values, 1, sums.at[part / 2][j][part % 2 * 2 + 1]);
      store<2>(staged + g * staged_stride + 8 * j + 2 * t, values);
    }
  }
  TCF_INLINE int staged_row(int part, int row) { return 8 * part + row; }
};

}  // namespace tcf
