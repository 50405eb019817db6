// Rounding, square root, fused multiply-add: what the instruction set has, for every width.
namespace tcf {

#ifdef TCF_DEVICE
// The device library has them.
#elif defined(__clang__)
#define TCF_UNARY(name, builtin, imm)                                          \
  TCF_INLINE float name(float v) { return __builtin_##builtin##f(v); }         \
  TCF_INLINE double name(double v) { return __builtin_##builtin(v); }          \
  template <class V>                                                           \
  TCF_INLINE V name(V v) {                                                     \
    return __builtin_elementwise_##builtin(v);                                 \
  }
TCF_UNARY(floor, floor, 9)
TCF_UNARY(ceil, ceil, 10)
TCF_UNARY(trunc, trunc, 11)
TCF_UNARY(roundeven, roundeven, 8)
TCF_UNARY(sqrt, sqrt, 0)
#if TCF_FUSED
TCF_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TCF_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class V>
TCF_INLINE V fused(V a, V b, V c) {
  return __builtin_elementwise_fma(a, b, c);
}
#endif
#elif !defined(__x86_64__)
#define TCF_UNARY(name)                                                        \
  TCF_INLINE float name(float v) { return __builtin_##name##f(v); }            \
  TCF_INLINE double name(double v) { return __builtin_##name(v); }             \
  template <class V>                                                           \
  TCF_INLINE V name(V v) {                                                     \
    return lanewise<V>([](elem<V> s) { return name(s); }, v);                  \
  }
TCF_UNARY(floor)
TCF_UNARY(ceil)
TCF_UNARY(trunc)
TCF_UNARY(roundeven)
TCF_UNARY(sqrt)
#if TCF_FUSED
TCF_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TCF_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class V>
TCF_INLINE V fused(V a, V b, V c) {
  typedef elem<V> T;
  return lanewise<V>([](T x, T y, T z) { return fused(x, y, z); }, a, b, c);
}
#endif
#else  // gcc has no elementwise builtins: the instructions, and halves of wider vectors
#define TCF_SPLIT(name)                                                        \
  template <class V>                                                           \
  TCF_INLINE V name(V v) {                                                     \
    if constexpr (sizeof(V) < 16) {                                            \
      return low(name(join(v, v)));                                            \
    } else {                                                                   \
      return join(name(low(v)), name(high(v)));                                \
    }                                                                          \
  }
#if TCF_LEVEL >= 4
#define TCF_ROUND_512(name, imm)                                               \
  TCF_INLINE vec<float, 16> name(vec<float, 16> v) {                           \
    return __builtin_ia32_rndscaleps_mask(v, imm, v, -1, 4);                   \
  }                                                                            \
  TCF_INLINE vec<double, 8> name(vec<double, 8> v) {                           \
    return __builtin_ia32_rndscalepd_mask(v, imm, v, -1, 4);                   \
  }
TCF_INLINE vec<float, 16> sqrt(vec<float, 16> v) {
  return __builtin_ia32_sqrtps512_mask(v, v, -1, 4);
}
TCF_INLINE vec<double, 8> sqrt(vec<double, 8> v) {
  return __builtin_ia32_sqrtpd512_mask(v, v, -1, 4);
}
#else
#define TCF_ROUND_512(name, imm)
#endif
#if TCF_LEVEL >= 3
#define TCF_ROUND_256(name, imm)                                               \
  TCF_INLINE vec<float, 8> name(vec<float, 8> v) {                             \
    return __builtin_ia32_roundps256(v, imm);                                  \
  }                                                                            \
  TCF_INLINE vec<double, 4> name(vec<double, 4> v) {                           \
    return __builtin_ia32_roundpd256(v, imm);                                  \
  }
TCF_INLINE vec<float, 8> sqrt(vec<float, 8> v) { return __builtin_ia32_sqrtps256(v); }
TCF_INLINE vec<double, 4> sqrt(vec<double, 4> v) { return __builtin_ia32_sqrtpd256(v); }
#else
#define TCF_ROUND_256(name, imm)
#endif
#define TCF_UNARY(name, imm)                                                   \
  TCF_INLINE float name(float v) { return __builtin_##name##f(v); }            \
  TCF_INLINE double name(double v) { return __builtin_##name(v); }             \
  TCF_INLINE f32x4 name(f32x4 v) { return __builtin_ia32_roundps(v, imm); }    \
  TCF_INLINE f64x2 name(f64x2 v) { return __builtin_ia32_roundpd(v, imm); }    \
  TCF_ROUND_256(name, imm)                                                     \
  TCF_ROUND_512(name, imm)                                                     \
  TCF_SPLIT(name)
TCF_UNARY(floor, 9)
TCF_UNARY(ceil, 10)
TCF_UNARY(trunc, 11)
TCF_UNARY(roundeven, 8)
TCF_INLINE float sqrt(float v) { return __builtin_sqrtf(v); }
TCF_INLINE double sqrt(double v) { return __builtin_sqrt(v); }
TCF_INLINE f32x4 sqrt(f32x4 v) { return __builtin_ia32_sqrtps(v); }
TCF_INLINE f64x2 sqrt(f64x2 v) { return __builtin_ia32_sqrtpd(v); }
TCF_SPLIT(sqrt)
#if TCF_LEVEL >= 3
TCF_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TCF_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
#define TCF_FUSE(T, builtin) \
  TCF_INLINE T fused(T a, T b, T c) { return builtin; }
TCF_FUSE(f32x4, __builtin_ia32_vfmaddps(a, b, c))
TCF_FUSE(f64x2, __builtin_ia32_vfmaddpd(a, b, c))
typedef vec<float, 8> f32x8;
typedef vec<double, 4> f64x4;
TCF_FUSE(f32x8, __builtin_ia32_vfmaddps256(a, b, c))
TCF_FUSE(f64x4, __builtin_ia32_vfmaddpd256(a, b, c))
#if TCF_LEVEL >= 4
typedef vec<float, 16> f32x16;
typedef vec<double, 8> f64x8;
TCF_FUSE(f32x16, __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4))
TCF_FUSE(f64x8, __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4))
#endif
template <class V>
TCF_INLINE V fused(V a, V b, V c) {
  if constexpr (sizeof(V) < 16) {
    return low(fused(join(a, a), join(b, b), join(c, c)));
  } else {
    return join(fused(low(a), low(b), low(c)), fused(high(a), high(b), high(c)));
  }
}
#endif
#endif

// a*b + c, in one rounding where the level has the instruction.
template <class V>
TCF_INLINE V mad(V a, V b, V c) {
#if TCF_FUSED
  return fused(a, b, c);
#else
  return a * b + c;
#endif
}

// The value of v, kept from being contracted or reassociated with what uses it.
template <class V>
TCF_INLINE V exactly(V v) {
#if defined(__clang__) || (defined(TCF_DEVICE) && !defined(TCF_EMULATED))
  return v;  // contraction is off in this library, and products have a function on the device
#else
  return __builtin_assoc_barrier(v);
#endif
}

// The polynomial with these coefficients, highest degree first.
template <class V, class... C>
TCF_INLINE V poly(V x, double lead, C... rest) {
  V r = cst<V>(lead);
  ((r = mad(r, x, cst<V>(rest))), ...);
  return r;
}

// The whole number nearest to v, the even one of two, plus zero, as the nearest that the short
// integer type T has; 0 of a NaN.  Within the bounds one addition leaves whole numbers, whose low
// bits are those of the sum.
template <class T, class V>
TCF_INLINE with_elem<V, T> quantized(V v, int32_t zero) {
  typedef uints<V> U;
  constexpr int32_t count = int32_t(1) << (8 * sizeof(T)), least = is_signed<T> ? -count / 2 : 0;
  const V low = cst<V>(float(least - zero)), high = cst<V>(float(least + count - 1 - zero));
  V w = blend<V>(v > low, v, low);  // which NaN becomes
  w = blend<V>(w < high, w, high);
  U u = bits<U>(exactly(w + cst<V>(0x1.8p23f))) + cst<U>(uint32_t(zero));
  if constexpr (is_signed<T>) u = select(eq(v, v), u, cst<U>(0));
  return cast<T>(u);
}

template <class V>
TCF_INLINE V copysign(V a, V b) {
  typedef uints<V> U;
  typedef uint_elem<elem<V>> E;
  const U top = cst<U>(E(E(1) << (8 * sizeof(E) - 1)));
  return bits<V>(U((bits<U>(a) & ~top) | (bits<U>(b) & top)));
}
// v with its sign flipped where b is negative.
template <class V>
TCF_INLINE V flip_sign(V v, V b) {
  typedef uints<V> U;
  typedef uint_elem<elem<V>> E;
  const U top = cst<U>(E(E(1) << (8 * sizeof(E) - 1)));
  return bits<V>(U(bits<U>(v) ^ (bits<U>(b) & top)));
}
template <class V>
TCF_INLINE V inf() {
  return cst<V>(__builtin_inff());
}
template <class V>
TCF_INLINE V nan() {
  return cst<V>(__builtin_nanf(""));
}
template <class V>
TCF_INLINE mask<lanes<V>> isinf(V v) {
  if constexpr (is_float<elem<V>>) return eq(fabs(v), inf<V>());
  else return ne(v, v);
}

// Half away from zero: truncation of the number nearest below a half added to it.
template <class V>
TCF_INLINE V round(V v) {
  const V half = cst<V>(same<elem<V>, float> ? 0x1.fffffep-2 : 0x1.fffffffffffffp-2);
  return trunc(v + copysign(half, v));
}
// a / b of numbers that are far from the ends of the range, where a quotient may cost less.
template <class V>
TCF_INLINE V quotient(V a, V b) {
  return a / b;
}
template <class V>
TCF_INLINE V rsqrt(V v) {
  return cst<V>(1) / sqrt(v);
}
// The positive difference; NaN when either is.
template <class V>
TCF_INLINE V fdim(V a, V b) {
  return blend<V>(a <= b, cst<V>(0), a - b);
}

}  // namespace tcf
