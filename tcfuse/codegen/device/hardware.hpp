// What the hardware does in an instruction or two, for scalars.  Being no templates, these are
// preferred to the math library's functions of the same names.
//
// Minimum and maximum take +0 for larger than -0 (elsewhere either may come out), and a NaN that
// an instruction makes is the positive quiet one without a payload.
namespace tcf {

#ifdef TCF_EMULATED

#define TCF_UNARY(name)                                                \
  TCF_INLINE float name(float v) { return __builtin_##name##f(v); }    \
  TCF_INLINE double name(double v) { return __builtin_##name(v); }
TCF_UNARY(floor)
TCF_UNARY(ceil)
TCF_UNARY(trunc)
TCF_UNARY(sqrt)
TCF_UNARY(fabs)
#undef TCF_UNARY
TCF_INLINE float roundeven(float v) { return __builtin_rintf(v); }
TCF_INLINE double roundeven(double v) { return __builtin_rint(v); }
TCF_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TCF_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
TCF_INLINE uint64_t high_product(uint64_t a, uint64_t b) {
  return uint64_t(((unsigned __int128)a * b) >> 64);
}

// The sign bits of two zeros: both must be set for the larger to be -0, one for the smaller.
template <class T>
TCF_INLINE T larger(T a, T b) {
  typedef uint_elem<T> U;
  return a > b ? a : a < b ? b : bits<T>(U(bits<U>(a) & bits<U>(b)));
}
template <class T>
TCF_INLINE T smaller(T a, T b) {
  typedef uint_elem<T> U;
  return a < b ? a : a > b ? b : bits<T>(U(bits<U>(a) | bits<U>(b)));
}
#define TCF_EXTREMES(T)                                                              \
  TCF_INLINE T max_(T a, T b) { return a != a || b != b ? a + b : larger(a, b); }    \
  TCF_INLINE T min_(T a, T b) { return a != a || b != b ? a + b : smaller(a, b); }   \
  TCF_INLINE T fmax(T a, T b) { return a != a ? b : b != b ? a : larger(a, b); }     \
  TCF_INLINE T fmin(T a, T b) { return a != a ? b : b != b ? a : smaller(a, b); }
TCF_EXTREMES(float)
TCF_EXTREMES(double)
#undef TCF_EXTREMES

#else

TCF_INLINE float floor(float v) { return ::floorf(v); }
TCF_INLINE double floor(double v) { return ::floor(v); }
TCF_INLINE float ceil(float v) { return ::ceilf(v); }
TCF_INLINE double ceil(double v) { return ::ceil(v); }
TCF_INLINE float trunc(float v) { return ::truncf(v); }
TCF_INLINE double trunc(double v) { return ::trunc(v); }
TCF_INLINE float roundeven(float v) { return ::rintf(v); }
TCF_INLINE double roundeven(double v) { return ::rint(v); }
TCF_INLINE float fabs(float v) { return ::fabsf(v); }
TCF_INLINE double fabs(double v) { return ::fabs(v); }
TCF_INLINE float sqrt(float v) { return __fsqrt_rn(v); }
TCF_INLINE double sqrt(double v) { return __dsqrt_rn(v); }
TCF_INLINE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TCF_INLINE double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
TCF_INLINE float product(float a, float b) { return __fmul_rn(a, b); }
TCF_INLINE double product(double a, double b) { return __dmul_rn(a, b); }
TCF_INLINE uint64_t high_product(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
// From a reciprocal within a unit in the last place; what the quotient lacks is known exactly, so
// that no more than 2^-20 of such a unit is added to the last rounding.
TCF_INLINE float quotient(float a, float b) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
  const float q = __fmul_rn(a, r);
  return __fmaf_rn(__fmaf_rn(-b, q, a), r, q);
}

TCF_INLINE float fmax(float a, float b) { return ::fmaxf(a, b); }
TCF_INLINE float fmin(float a, float b) { return ::fminf(a, b); }
TCF_INLINE double fmax(double a, double b) { return ::fmax(a, b); }
TCF_INLINE double fmin(double a, double b) { return ::fmin(a, b); }
TCF_INLINE double max_(double a, double b) { return a != a || b != b ? a + b : ::fmax(a, b); }
TCF_INLINE double min_(double a, double b) { return a != a || b != b ? a + b : ::fmin(a, b); }
#if __CUDA_ARCH__ >= 800
TCF_INLINE float max_(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
TCF_INLINE float min_(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
#else
TCF_INLINE float max_(float a, float b) { return a != a || b != b ? a + b : ::fmaxf(a, b); }
TCF_INLINE float min_(float a, float b) { return a != a || b != b ? a + b : ::fminf(a, b); }
#endif

// Conversions saturate, which is what is wanted below the range but not above it.
constexpr int32_t least32 = int32_t(uint32_t(1) << 31);
constexpr int64_t least64 = int64_t(uint64_t(1) << 63);
TCF_INLINE int32_t truncate32(float v) { return v < 0x1p31f ? __float2int_rz(v) : least32; }
TCF_INLINE int32_t truncate32(double v) { return v < 0x1p31 ? __double2int_rz(v) : least32; }
TCF_INLINE int64_t truncate64(float v) { return v < 0x1p63f ? __float2ll_rz(v) : least64; }
TCF_INLINE int64_t truncate64(double v) { return v < 0x1p63 ? __double2ll_rz(v) : least64; }

TCF_INLINE float from_half(uint16_t h) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h));
  return r;
}
TCF_INLINE uint16_t to_half(float v) {
  uint16_t r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}
#if __CUDA_ARCH__ >= 800
TCF_INLINE uint32_t bfloat_bits(float v) {
  uint16_t r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return uint32_t(r) << 16;
}
#endif

#endif

}  // namespace tcf
