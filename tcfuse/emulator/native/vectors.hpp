// CUDA's vector types: plain structures, aligned as the hardware's accesses need them.
//
// A C++ compiler may split the copy of a structure into its members.  Where one access of 8 or
// 16 bytes is meant, the text says so: `__ldg` and the like, or `tcf_emulator::read` and `write`.
#pragma once

#define TCF_EMULATED_VECTORS(name, T)                                                       \
  struct name##1 { T x; };                                                                  \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                        \
  struct name##3 { T x, y, z; };                                                            \
  struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; };        \
  TCF_EMULATED_MAKERS(name, T)
#define TCF_EMULATED_MAKERS(name, T)                                                        \
  inline __attribute__((always_inline)) name##1 make_##name##1(T x) { return {x}; }         \
  inline __attribute__((always_inline)) name##2 make_##name##2(T x, T y) { return {x, y}; } \
  inline __attribute__((always_inline)) name##3 make_##name##3(T x, T y, T z) {             \
    return {x, y, z};                                                                       \
  }                                                                                         \
  inline __attribute__((always_inline)) name##4 make_##name##4(T x, T y, T z, T w) {        \
    return {x, y, z, w};                                                                    \
  }
TCF_EMULATED_VECTORS(char, signed char)
TCF_EMULATED_VECTORS(uchar, unsigned char)
TCF_EMULATED_VECTORS(short, short)
TCF_EMULATED_VECTORS(ushort, unsigned short)
TCF_EMULATED_VECTORS(int, int)
TCF_EMULATED_VECTORS(long, long)
TCF_EMULATED_VECTORS(ulong, unsigned long)
TCF_EMULATED_VECTORS(longlong, long long)
TCF_EMULATED_VECTORS(ulonglong, unsigned long long)
TCF_EMULATED_VECTORS(float, float)
TCF_EMULATED_VECTORS(double, double)
struct uint1 { unsigned x; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
TCF_EMULATED_MAKERS(uint, unsigned)
#undef TCF_EMULATED_VECTORS
#undef TCF_EMULATED_MAKERS

namespace tcf_emulator {
// One access of sizeof(T) bytes.
#ifdef TCF_EMULATOR_TRACE
#define TCF_EMULATED_WORD TCF_EMULATED_OWN inline
#else
#define TCF_EMULATED_WORD inline __attribute__((always_inline))
#endif
template <class T>
TCF_EMULATED_WORD T read(const T* p) {
  TCF_EMULATED_ACCESS(p, sizeof(T), READ);
  return *p;
}
template <class T>
TCF_EMULATED_WORD void write(T* p, T value) {
  TCF_EMULATED_ACCESS(p, sizeof(T), WRITE);
  *p = value;
}
}  // namespace tcf_emulator
