// Types: fixed-width integers, vectors of lanes, masks, bit casts and halves.
//
// vec<T, L> is the scalar T when L is 1 and a GNU vector of L elements otherwise, so that every
// function below is one template for both.  A mask is bool or a vector of int32_t 0 / -1.
#ifndef TCF_LEVEL
#define TCF_LEVEL 2
#endif
#ifndef TCF_LANES
#define TCF_LANES 4
#endif
#ifndef TCF_SUFFIX
#define TCF_SUFFIX
#endif
// Whether a*b + c is one instruction, and whether half conversions are (for clang's _Float16).
#if TCF_LEVEL >= 3 || defined(__aarch64__)
#define TCF_FUSED 1
#define TCF_HALF 1
#else
#define TCF_FUSED 0
#define TCF_HALF 0
#endif
#define TCF_CAT_(a, b) a##b
#define TCF_CAT(a, b) TCF_CAT_(a, b)
#define TCF_INLINE static inline __attribute__((always_inline))
#define TCF_NOINLINE static __attribute__((noinline, unused, cold))
#define TCF_KERNEL(name) \
  extern "C" __attribute__((visibility("hidden"))) void TCF_CAT(name, TCF_SUFFIX)
// Written out, a loop over the lanes of a vector needs no memory.
#ifdef __clang__
#define TCF_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TCF_UNROLL _Pragma("GCC unroll 16")
#endif
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"
#else
#pragma GCC diagnostic ignored "-Wpsabi"
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
typedef __SIZE_TYPE__ size_t;
typedef __UINTPTR_TYPE__ uintptr_t;

namespace tcf {

template <class T, int L>
struct vec_of {
  typedef T type __attribute__((vector_size(sizeof(T) * L)));
};
template <class T>
struct vec_of<T, 1> {
  typedef T type;
};
template <class T, int L>
using vec = typename vec_of<T, L>::type;

template <int L>
struct mask_of {
  typedef vec<int32_t, L> type;
};
template <>
struct mask_of<1> {
  typedef bool type;
};
template <int L>
using mask = typename mask_of<L>::type;

// Element and lane count of a vector; a scalar is its own single lane.
template <class T>
struct bare {
  typedef T type;
};
template <class T>
struct bare<T&> {
  typedef T type;
};
template <class V>
struct traits {
  typedef typename bare<decltype((*static_cast<V*>(nullptr))[0])>::type elem;
  static constexpr int lanes = sizeof(V) / sizeof(elem);
  static constexpr bool scalar = false;
};
template <class T>
struct scalar_traits {
  typedef T elem;
  static constexpr int lanes = 1;
  static constexpr bool scalar = true;
};
template <> struct traits<bool> : scalar_traits<bool> {};
template <> struct traits<float> : scalar_traits<float> {};
template <> struct traits<double> : scalar_traits<double> {};
template <> struct traits<int8_t> : scalar_traits<int8_t> {};
template <> struct traits<int16_t> : scalar_traits<int16_t> {};
template <> struct traits<int32_t> : scalar_traits<int32_t> {};
template <> struct traits<int64_t> : scalar_traits<int64_t> {};
template <> struct traits<uint8_t> : scalar_traits<uint8_t> {};
template <> struct traits<uint16_t> : scalar_traits<uint16_t> {};
template <> struct traits<uint32_t> : scalar_traits<uint32_t> {};
template <> struct traits<uint64_t> : scalar_traits<uint64_t> {};
#if defined(__clang__) && TCF_HALF
template <> struct traits<_Float16> : scalar_traits<_Float16> {};
#endif
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

// What comparing two V gives natively: bool, or integers as wide as the elements.
template <class V, bool Scalar>
struct native_mask_of { typedef ints<V> type; };
template <class V>
struct native_mask_of<V, true> { typedef bool type; };
template <class V>
using native = typename native_mask_of<V, is_scalar<V>>::type;

template <class To, class From>
TCF_INLINE To bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "bits keeps the size");
  return __builtin_bit_cast(To, v);
}

// A vector's lanes as the elements of W.
template <class W, class V>
TCF_INLINE W converted_lanes(V v) {
  return __builtin_convertvector(v, W);
}

// Every lane s; s - 0 keeps -0.0, unlike s + 0, and compilers fold it.
template <class T, int L>
TCF_INLINE vec<T, L> splat(T s) {
  if constexpr (L == 1) {
    return s;
  } else if constexpr (is_float<T>) {
    return s - vec<T, L>{};
  } else {
    return vec<T, L>{} + s;
  }
}

// A constant of V's element type in every lane.
template <class V, class C>
TCF_INLINE V cst(C c) {
  return splat<elem<V>, lanes<V>>(elem<V>(c));
}

template <int... I>
struct seq {};
#ifdef __clang__
template <class T, T... I>
struct typed_seq {
  typedef seq<I...> type;
};
template <int N>
using make_seq = typename __make_integer_seq<typed_seq, int, N>::type;
#else
template <int N>
using make_seq = seq<__integer_pack(N)...>;
#endif

template <class V, int... I>
TCF_INLINE vec<elem<V>, lanes<V> / 2> low_part(V v, seq<I...>) {
  if constexpr (lanes<V> == 2) {
    return v[0];
  } else {
    return __builtin_shufflevector(v, v, I...);
  }
}
template <class V, int... I>
TCF_INLINE vec<elem<V>, lanes<V> / 2> high_part(V v, seq<I...>) {
  if constexpr (lanes<V> == 2) {
    return v[1];
  } else {
    return __builtin_shufflevector(v, v, (I + lanes<V> / 2)...);
  }
}
template <class V>
TCF_INLINE vec<elem<V>, lanes<V> / 2> low(V v) {
  return low_part(v, make_seq<lanes<V> / 2>());
}
template <class V>
TCF_INLINE vec<elem<V>, lanes<V> / 2> high(V v) {
  return high_part(v, make_seq<lanes<V> / 2>());
}
template <class H, int... I>
TCF_INLINE vec<elem<H>, lanes<H> * 2> join_parts(H a, H b, seq<I...>) {
  if constexpr (is_scalar<H>) {
    return vec<H, 2>{a, b};
  } else {
    return __builtin_shufflevector(a, b, I...);
  }
}
template <class H>
TCF_INLINE vec<elem<H>, lanes<H> * 2> join(H a, H b) {
  return join_parts(a, b, make_seq<lanes<H> * 2>());
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

// f applied lane by lane; for what the instruction set has no vector form of.
template <class V, class F, class... A>
TCF_INLINE V lanewise(F f, A... a) {
  if constexpr (is_scalar<V>) {
    return f(a...);
  } else {
    V r = {};
    TCF_UNROLL
    for (int i = 0; i < lanes<V>; i++) r[i] = f(a[i]...);
    return r;
  }
}

template <class T, int L, int... I>
TCF_INLINE vec<T, L> iota_of(seq<I...>) {
  if constexpr (L == 1) {
    return T(0);
  } else {
    return vec<T, L>{T(I)...};
  }
}
// 0, 1, 2, ...
template <class T, int L>
TCF_INLINE vec<T, L> iota() {
  return iota_of<T, L>(make_seq<L>());
}

}  // namespace tcf
