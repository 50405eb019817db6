// CUDA's intrinsic functions that kernels use.
#pragma once

#define TCF_EMULATED_FUNCTION inline __attribute__((always_inline))

// Cache hints change nothing here.
#define TCF_EMULATED_LOAD(name) \
  template <class T>            \
  TCF_EMULATED_FUNCTION T name(const T* p) { return tcf_emulator::read(p); }
TCF_EMULATED_LOAD(__ldg)
TCF_EMULATED_LOAD(__ldca)
TCF_EMULATED_LOAD(__ldcg)
TCF_EMULATED_LOAD(__ldcs)
TCF_EMULATED_LOAD(__ldlu)
#undef TCF_EMULATED_LOAD
#define TCF_EMULATED_STORE(name) \
  template <class T>             \
  TCF_EMULATED_FUNCTION void name(T* p, T value) { tcf_emulator::write(p, value); }
TCF_EMULATED_STORE(__stwb)
TCF_EMULATED_STORE(__stwt)
TCF_EMULATED_STORE(__stcg)
TCF_EMULATED_STORE(__stcs)
#undef TCF_EMULATED_STORE

#define TCF_EMULATED_BITS(name, To, From) \
  TCF_EMULATED_FUNCTION To name(From value) { return __builtin_bit_cast(To, value); }
TCF_EMULATED_BITS(__float_as_int, int, float)
TCF_EMULATED_BITS(__float_as_uint, unsigned, float)
TCF_EMULATED_BITS(__int_as_float, float, int)
TCF_EMULATED_BITS(__uint_as_float, float, unsigned)
TCF_EMULATED_BITS(__double_as_longlong, long long, double)
TCF_EMULATED_BITS(__longlong_as_double, double, long long)
#undef TCF_EMULATED_BITS

TCF_EMULATED_FUNCTION int __popc(unsigned v) { return __builtin_popcount(v); }
TCF_EMULATED_FUNCTION int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
TCF_EMULATED_FUNCTION int __clz(int v) { return v ? __builtin_clz(v) : 32; }
TCF_EMULATED_FUNCTION int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
TCF_EMULATED_FUNCTION int __ffs(int v) { return __builtin_ffs(v); }
TCF_EMULATED_FUNCTION int __ffsll(long long v) { return __builtin_ffsll(v); }
TCF_EMULATED_FUNCTION unsigned __umulhi(unsigned a, unsigned b) {
  return unsigned((unsigned long long)a * b >> 32);
}
TCF_EMULATED_FUNCTION unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}

// Rounded on their own: never part of a fused multiplication and addition.
#ifdef __clang__
#define TCF_EMULATED_APART _Pragma("clang fp contract(off)")
#define TCF_EMULATED_ROUNDED TCF_EMULATED_FUNCTION
#else
#define TCF_EMULATED_APART
#define TCF_EMULATED_ROUNDED inline __attribute__((noinline, optimize("fp-contract=off")))
#endif
#define TCF_EMULATED_ARITHMETIC(name, T, op) \
  TCF_EMULATED_ROUNDED T name(T a, T b) {    \
    TCF_EMULATED_APART                       \
    return a op b;                           \
  }
TCF_EMULATED_ARITHMETIC(__fadd_rn, float, +)
TCF_EMULATED_ARITHMETIC(__fsub_rn, float, -)
TCF_EMULATED_ARITHMETIC(__fmul_rn, float, *)
TCF_EMULATED_ARITHMETIC(__fdiv_rn, float, /)
TCF_EMULATED_ARITHMETIC(__dadd_rn, double, +)
TCF_EMULATED_ARITHMETIC(__dsub_rn, double, -)
TCF_EMULATED_ARITHMETIC(__dmul_rn, double, *)
TCF_EMULATED_ARITHMETIC(__ddiv_rn, double, /)
#undef TCF_EMULATED_ARITHMETIC
TCF_EMULATED_FUNCTION float __fmaf_rn(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
TCF_EMULATED_FUNCTION double __fma_rn(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
TCF_EMULATED_FUNCTION float __fsqrt_rn(float v) { return __builtin_sqrtf(v); }
TCF_EMULATED_FUNCTION double __dsqrt_rn(double v) { return __builtin_sqrt(v); }

template <class A, class B>
TCF_EMULATED_FUNCTION auto max(A a, B b) -> decltype(a + b) { return a < b ? b : a; }
template <class A, class B>
TCF_EMULATED_FUNCTION auto min(A a, B b) -> decltype(a + b) { return b < a ? b : a; }

TCF_EMULATED_FUNCTION void __nanosleep(unsigned) {}
TCF_EMULATED_FUNCTION void __trap() { __builtin_trap(); }
