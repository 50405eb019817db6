/* The highest instruction set level of this machine, without libgcc's CPU model. */
#ifndef TCF_CPU_H
#define TCF_CPU_H

#include <stdint.h>

enum { TCF_LEVEL_NONE = -1, TCF_LEVEL_V2 = 0, TCF_LEVEL_V3 = 1, TCF_LEVEL_V4 = 2 };

#if defined(__x86_64__)

typedef struct {
  uint32_t a, b, c, d;
} TcfCpuid;

static inline TcfCpuid tcf_cpuid(uint32_t leaf) {
  TcfCpuid r;
  __asm__("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(0));
  return r;
}

static inline int tcf_has(uint32_t found, uint32_t wanted) { return (found & wanted) == wanted; }

#define TCF_BIT(n) (1u << (n))

/* An instruction set counts only when the operating system saves its registers too. */
static inline int tcf_cpu_level(void) {
  const uint32_t v2_c = TCF_BIT(0) | TCF_BIT(9) | TCF_BIT(13) | TCF_BIT(19) | TCF_BIT(20) |
                        TCF_BIT(23); /* sse3 ssse3 cmpxchg16b sse4.1 sse4.2 popcnt */
  const uint32_t v3_c = TCF_BIT(12) | TCF_BIT(22) | TCF_BIT(27) | TCF_BIT(28) |
                        TCF_BIT(29); /* fma movbe osxsave avx f16c */
  const uint32_t v3_b = TCF_BIT(3) | TCF_BIT(5) | TCF_BIT(8); /* bmi1 avx2 bmi2 */
  const uint32_t v4_b = TCF_BIT(16) | TCF_BIT(17) | TCF_BIT(28) | TCF_BIT(30) |
                        TCF_BIT(31); /* avx512 f dq cd bw vl */
  uint32_t last = tcf_cpuid(0).a;
  if (last < 1) return TCF_LEVEL_NONE;
  uint32_t basic = tcf_cpuid(1).c;
  uint32_t more = tcf_cpuid(0x80000000u).a > 0x80000000u ? tcf_cpuid(0x80000001u).c : 0;
  if (!tcf_has(basic, v2_c) || !tcf_has(more, TCF_BIT(0) /* lahf */)) return TCF_LEVEL_NONE;
  if (last < 7 || !tcf_has(basic, v3_c) || !tcf_has(more, TCF_BIT(5) /* lzcnt */))
    return TCF_LEVEL_V2;
  uint32_t extended = tcf_cpuid(7).b;
  uint32_t saved, saved_high;
  __asm__("xgetbv" : "=a"(saved), "=d"(saved_high) : "c"(0));
  if (!tcf_has(extended, v3_b) || !tcf_has(saved, 0x06 /* xmm ymm */)) return TCF_LEVEL_V2;
  if (!tcf_has(extended, v4_b) || !tcf_has(saved, 0xe6 /* and k, zmm */)) return TCF_LEVEL_V3;
  return TCF_LEVEL_V4;
}

/* Channels in a block of ONNX Runtime's blocked layout.
 * Source: MLAS_PLATFORM::MLAS_PLATFORM of ONNX Runtime, which asks for AVX512F and AVX2 with FMA. */
static inline int tcf_cpu_block(void) {
  const uint32_t basic_c = TCF_BIT(12) | TCF_BIT(27) | TCF_BIT(28);  /* fma osxsave avx */
  const uint32_t extended_b = TCF_BIT(5) | TCF_BIT(16);              /* avx2 avx512f */
  if (tcf_cpuid(0).a < 7 || !tcf_has(tcf_cpuid(1).c, basic_c)) return 8;
  uint32_t saved, saved_high;
  __asm__("xgetbv" : "=a"(saved), "=d"(saved_high) : "c"(0));
  return tcf_has(saved, 0xe6) && tcf_has(tcf_cpuid(7).b, extended_b) ? 16 : 8;
}

#else

/* Nothing is known of blocked layouts elsewhere, so no model in one is served. */
static inline int tcf_cpu_block(void) { return 0; }

/* Elsewhere there is one level, which every machine of the architecture has. */
static inline int tcf_cpu_level(void) { return 0; }

#endif
#endif
