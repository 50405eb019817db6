// Arithmetic that is total: integers wrap, division by 0 is 0, shifts may be of any count.
namespace tcf {

template <class V>
TCF_INLINE V wrap_neg(V a) {
  return bits<V>(uints<V>(cst<uints<V>>(0) - bits<uints<V>>(a)));
}

// Signed overflow is undefined for the operators on scalars and on vectors; these wrap.
template <class V>
TCF_INLINE V add(V a, V b) {
  if constexpr (is_float<elem<V>>) return a + b;
  else return bits<V>(uints<V>(bits<uints<V>>(a) + bits<uints<V>>(b)));
}
template <class V>
TCF_INLINE V sub(V a, V b) {
  if constexpr (is_float<elem<V>>) return a - b;
  else return bits<V>(uints<V>(bits<uints<V>>(a) - bits<uints<V>>(b)));
}
template <class V>
TCF_INLINE V mul(V a, V b) {
  if constexpr (is_float<elem<V>>) {
    return a * b;
  } else if constexpr (is_scalar<V> && sizeof(V) < 4) {
    return V(uint32_t(a) * uint32_t(b));  // int would overflow
  } else {
    return bits<V>(uints<V>(bits<uints<V>>(a) * bits<uints<V>>(b)));
  }
}

template <class V>
TCF_INLINE V fabs(V a) {
  typedef elem<V> T;
  typedef uints<V> U;
  const uint_elem<T> all = ~(uint_elem<T>(1) << (8 * sizeof(T) - 1));
  return bits<V>(U(bits<U>(a) & cst<U>(all)));
}
template <class V>
TCF_INLINE V neg(V a) {
  if constexpr (is_float<elem<V>>) return -a;
  else return wrap_neg(a);
}
template <class V>
TCF_INLINE V abs(V a) {
  if constexpr (is_float<elem<V>>) return fabs(a);
  else if constexpr (is_signed<elem<V>>) return blend<V>(a < 0, wrap_neg(a), a);
  else return a;
}
// -1, 0 or 1; of a NaN, NaN.
template <class V>
TCF_INLINE V sign(V a) {
  const V zero = cst<V>(0), one = cst<V>(1);
  if constexpr (is_float<elem<V>>) {
    return blend<V>(a > zero, one, blend<V>(a < zero, -one, a));
  } else if constexpr (is_signed<elem<V>>) {
    return blend<V>(a > zero, one, blend<V>(a < zero, cst<V>(-1), zero));
  } else {
    return blend<V>(a > zero, one, zero);
  }
}

// Truncating, as C; a divisor of 0 gives 0 and the one overflow wraps.
template <class T>
TCF_INLINE T tdiv_lane(T a, T b) {
  if (b == 0) return 0;
  if constexpr (is_signed<T>) {
    if (b == T(-1)) return wrap_neg(a);
  }
  return T(a / b);
}
template <class T>
TCF_INLINE T tmod_lane(T a, T b) {
  if (b == 0) return 0;
  if constexpr (is_signed<T>) {
    if (b == T(-1)) return 0;
  }
  return T(a % b);
}
template <class T>
TCF_INLINE T floor_div_lane(T a, T b) {
  T q = tdiv_lane(a, b);
  if constexpr (is_signed<T>) {
    if (tmod_lane(a, b) != 0 && (a < 0) != (b < 0)) q = T(q - 1);
  }
  return q;
}
template <class T>
TCF_INLINE T floor_mod_lane(T a, T b) {
  T r = tmod_lane(a, b);
  if constexpr (is_signed<T>) {
    if (r != 0 && (r < 0) != (b < 0)) r = T(r + b);
  }
  return r;
}
template <class V>
TCF_INLINE V tdiv(V a, V b) {
  return lanewise<V>([](elem<V> x, elem<V> y) { return tdiv_lane(x, y); }, a, b);
}
template <class V>
TCF_INLINE V tmod(V a, V b) {
  return lanewise<V>([](elem<V> x, elem<V> y) { return tmod_lane(x, y); }, a, b);
}
template <class V>
TCF_INLINE V floor_div(V a, V b) {
  return lanewise<V>([](elem<V> x, elem<V> y) { return floor_div_lane(x, y); }, a, b);
}
template <class V>
TCF_INLINE V floor_mod(V a, V b) {
  return lanewise<V>([](elem<V> x, elem<V> y) { return floor_mod_lane(x, y); }, a, b);
}

// a to the power b, wrapping; a negative exponent truncates: 0 unless a is 1 or -1.
template <class T>
TCF_INLINE T ipow_lane(T a, T b) {
  if constexpr (is_signed<T>) {
    if (b < 0) return a == 1 ? T(1) : a == T(-1) ? ((b & 1) ? T(-1) : T(1)) : T(0);
  }
  uint64_t r = 1, base = uint64_t(a), n = uint64_t(b);
  for (; n; n >>= 1) {
    if (n & 1) r *= base;
    base *= base;
  }
  return T(r);
}
template <class V>
TCF_INLINE V ipow(V a, V b) {
  return lanewise<V>([](elem<V> x, elem<V> y) { return ipow_lane(x, y); }, a, b);
}

// A count outside [0, width) shifts everything out: 0, or the sign for shr of a signed type.
template <class V>
TCF_INLINE V shl(V a, V b) {
  typedef uints<V> U;
  const uint_elem<elem<V>> width = 8 * sizeof(elem<V>);
  U n = bits<U>(b), u = bits<U>(a);
  return bits<V>(blend<U>(n < width, U(u << (n & (width - 1))), cst<U>(0)));
}
template <class V>
TCF_INLINE V shr(V a, V b) {
  typedef uints<V> U;
  const uint_elem<elem<V>> width = 8 * sizeof(elem<V>);
  U n = bits<U>(b);
  if constexpr (is_signed<elem<V>>) {
    return V(a >> bits<V>(blend<U>(n < width, n, cst<U>(width - 1))));
  } else {
    return blend<U>(n < width, U(a >> (n & (width - 1))), cst<U>(0));
  }
}
template <class V>
TCF_INLINE V bitand_(V a, V b) {
  return V(a & b);
}
template <class V>
TCF_INLINE V bitor_(V a, V b) {
  return V(a | b);
}
template <class V>
TCF_INLINE V bitxor_(V a, V b) {
  return V(a ^ b);
}
template <class V>
TCF_INLINE V bitnot_(V a) {
  return V(~a);
}

}  // namespace tcf
