// What kernels need beside mathematics: bounds, guarded and checked reads, shared divisors.

// Sizes and bounds: the same names as where the library is told how often to call a kernel.
TCF_INLINE int64_t tcf_min(int64_t a, int64_t b) { return a < b ? a : b; }
TCF_INLINE int64_t tcf_max(int64_t a, int64_t b) { return a > b ? a : b; }
TCF_INLINE int64_t tcf_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

namespace tcf {

// Lanes 0 .. n - 1.
template <int L>
TCF_INLINE mask<L> first_lanes(int64_t n) {
  return lt(iota<int32_t, L>(), splat<int32_t, L>(int32_t(n)));
}

// base[index] where m holds, else 0 without reading.
template <class T>
TCF_INLINE T load_if(const T* base, int64_t index, bool m) {
  return m ? base[index] : T(0);
}

// Whether every index lies in [0, size); where wanted says so, others are reported.
template <int L>
TCF_INLINE mask<L> inside(vec<int64_t, L> index, int64_t size) {
  return and_(ge(index, splat<int64_t, L>(0)), lt(index, splat<int64_t, L>(size)));
}
template <int L>
TCF_INLINE mask<L> checked(mask<L> found, mask<L> wanted, int32_t* fault) {
  if (hor(and_(wanted, not_(found)))) *fault = 1;
  return and_(wanted, found);
}

// What many numbers are divided by.  A product with the reciprocal is within 1.5 ulp of the
// quotient; where the reciprocal would be a denormal or infinite, it is that of the number times
// a power of two, by which the product is multiplied as well.
template <class T>
struct divisor_of {
  T inverse, scale;
};
template <class T>
TCF_INLINE divisor_of<T> divisor(T value) {
  const T size = fabs(value);
  const T scale = size < T(0x1p-120) ? T(0x1p64) : size > T(0x1p120) ? T(0x1p-64) : T(1);
  return {T(1) / (value * scale), scale};
}
template <class V, class T>
TCF_INLINE V divided(V v, divisor_of<T> by) {
  return v * splat<T, lanes<V>>(by.inverse) * splat<T, lanes<V>>(by.scale);
}
// v / by of a constant whose reciprocal is high + low (codegen/reciprocals.py): the same number.
template <class V, class T>
TCF_INLINE V quotient_by(V v, T by, T high, T low) {
#if TCF_FUSED
  return fused(v, splat<T, lanes<V>>(high), V(v * splat<T, lanes<V>>(low)));
#else
  return v / splat<T, lanes<V>>(by);
#endif
}

}  // namespace tcf
