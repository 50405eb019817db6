// Types on the device: fixed-width integers, packs of elements, bit casts.  In place of the math
// library's types.hpp, with the same names, so that the rest of that library is used as it is.
//
// vec<T, L> is the scalar T when L is 1 and a plain aligned structure of L elements otherwise,
// which the compiler keeps in registers.  A mask is bool or a pack of bool.
//
// A C++ compiler that plays the device defines TCF_EMULATED, and CUDA's words, before this.
#define TCF_DEVICE 1
#define TCF_FUSED 1
#define TCF_HALF 0
#define TCF_INLINE static __device__ __forceinline__
#define TCF_NOINLINE static __device__ __noinline__
#define TCF_LAUNCH(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)

#ifdef TCF_EMULATED
#ifdef __clang__
#define TCF_UNROLL _Pragma("unroll")
#pragma clang diagnostic ignored "-Wunused-function"
#else
#define TCF_UNROLL _Pragma("GCC unroll 64")
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
#else
#define TCF_UNROLL _Pragma("unroll")
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
#define __builtin_inff() __builtin_bit_cast(float, 0x7f800000)
#define __builtin_inf() __builtin_bit_cast(double, 0x7ff0000000000000)
#define __builtin_nanf(text) __builtin_bit_cast(float, 0x7fc00000)
#define __builtin_nan(text) __builtin_bit_cast(double, 0x7ff8000000000000)
#endif

namespace tcf {

// Bytes that one instruction moves at most, and what they must be aligned to.
constexpr int most_bytes = 16;
constexpr int aligned_to(int bytes) { return bytes < most_bytes ? bytes : most_bytes; }

template <class T, int L>
struct alignas(aligned_to(sizeof(T) * L)) pack {
  static_assert(L > 1 && (L & (L - 1)) == 0, "a power of two");
  T element[L];
  __device__ __forceinline__ T& operator[](int i) { return element[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return element[i]; }
};

template <class T, int L>
struct vec_of {
  typedef pack<T, L> type;
};
template <class T>
struct vec_of<T, 1> {
  typedef T type;
};
template <class T, int L>
using vec = typename vec_of<T, L>::type;
template <int L>
using mask = vec<bool, L>;

// Element and lane count; a scalar is its own single lane.
template <class T>
struct traits {
  typedef T elem;
  static constexpr int lanes = 1;
  static constexpr bool scalar = true;
};
template <class T, int L>
struct traits<pack<T, L>> {
  typedef T elem;
  static constexpr int lanes = L;
  static constexpr bool scalar = false;
};
template <class V>
using elem = typename traits<V>::elem;
template <class V>
inline constexpr int lanes = traits<V>::lanes;
template <class V>
inline constexpr bool is_scalar = traits<V>::scalar;

template <class A, class B>
inline constexpr bool same = false;
template <class A>
inline constexpr bool same<A, A> = true;
template <class T>
inline constexpr bool is_float = same<T, float> || same<T, double>;
template <class T>
inline constexpr bool is_signed = T(-1) < T(0);

// The integer type with as many bytes.
template <int Bytes> struct int_of;
template <> struct int_of<1> { typedef int8_t type; typedef uint8_t utype; };
template <> struct int_of<2> { typedef int16_t type; typedef uint16_t utype; };
template <> struct int_of<4> { typedef int32_t type; typedef uint32_t utype; };
template <> struct int_of<8> { typedef int64_t type; typedef uint64_t utype; };
template <class T>
using int_elem = typename int_of<sizeof(T)>::type;
template <class T>
using uint_elem = typename int_of<sizeof(T)>::utype;
template <class V>
using ints = vec<int_elem<elem<V>>, lanes<V>>;
template <class V>
using uints = vec<uint_elem<elem<V>>, lanes<V>>;
template <class V, class T>
using with_elem = vec<T, lanes<V>>;
// What comparing two V gives.
template <class V>
using native = mask<lanes<V>>;

template <class To, class From>
TCF_INLINE To bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "bits keeps the size");
  return __builtin_bit_cast(To, v);
}

template <class V>
TCF_INLINE elem<V> lane(V v, int i) {
  if constexpr (is_scalar<V>) {
    return v;
  } else {
    return v[i];
  }
}
template <class V>
TCF_INLINE void set_lane(V& v, int i, elem<V> s) {
  if constexpr (is_scalar<V>) {
    v = s;
  } else {
    v[i] = s;
  }
}

// f applied lane by lane.
template <class V, class F, class... A>
TCF_INLINE V lanewise(F f, A... a) {
  if constexpr (is_scalar<V>) {
    return f(a...);
  } else {
    V r;
    TCF_UNROLL
    for (int i = 0; i < lanes<V>; i++) r[i] = f(a[i]...);
    return r;
  }
}

// A pack's lanes as the elements of W.
template <class W, class V>
TCF_INLINE W converted_lanes(V v) {
  return lanewise<W>([](elem<V> s) { return static_cast<elem<W>>(s); }, v);
}

template <class T, int L>
TCF_INLINE vec<T, L> splat(T s) {
  vec<T, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, s);
  return v;
}
// A constant of V's element type in every lane.
template <class V, class C>
TCF_INLINE V cst(C c) {
  return splat<elem<V>, lanes<V>>(elem<V>(c));
}
// 0, 1, 2, ...
template <class T, int L>
TCF_INLINE vec<T, L> iota() {
  vec<T, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, T(i));
  return v;
}

// Halves of a pack, and the pack of two halves.
template <class V>
TCF_INLINE vec<elem<V>, lanes<V> / 2> low(V v) {
  vec<elem<V>, lanes<V> / 2> h;
  TCF_UNROLL
  for (int i = 0; i < lanes<V> / 2; i++) set_lane(h, i, v[i]);
  return h;
}
template <class V>
TCF_INLINE vec<elem<V>, lanes<V> / 2> high(V v) {
  vec<elem<V>, lanes<V> / 2> h;
  TCF_UNROLL
  for (int i = 0; i < lanes<V> / 2; i++) set_lane(h, i, v[i + lanes<V> / 2]);
  return h;
}
template <class H>
TCF_INLINE vec<elem<H>, lanes<H> * 2> join(H a, H b) {
  vec<elem<H>, lanes<H> * 2> v;
  TCF_UNROLL
  for (int i = 0; i < lanes<H>; i++) {
    v[i] = lane(a, i);
    v[i + lanes<H>] = lane(b, i);
  }
  return v;
}

}  // namespace tcf
