// cbrt, hypot and norms, fma, remainders, and functions of a float's representation.
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

// 2^(k + j/3) times a polynomial's guess of the fraction's root, then Halley's steps.
template <class V>
TCF_INLINE V cbrt(V x) {
  const V one = cst<V>(1);
  V a = fabs(x), e, f = split_power(a, e);
  V k = floor((e + cst<V>(0.5)) * cst<V>(1.0 / 3)), j = e - cst<V>(3) * k;
  V m = (f + one) * blend<V>(j == one, cst<V>(2), blend<V>(j > one, cst<V>(4), one));
  V y = poly(m, -0.001539811806949775172, 0.02414944133046397111, -0.1492690349303808036,
             0.5659466205523239291, 0.5588571856107836076);
  const int steps = same<elem<V>, float> ? 1 : 2;
  for (int i = 0; i < steps; i++) {
    V c = y * y * y;
    y = mad(y, (m - c) / (c + c + m), y);
  }
  y = y * exp2_whole(k);
  y = blend<V>((a == cst<V>(0)) | !(a < inf<V>()), a, y);
  return copysign(y, x);
}
template <class V>
TCF_INLINE V rcbrt(V x) {
  return cst<V>(1) / cbrt(x);
}

// A power of two near |x|, and its inverse, with which sums of squares neither overflow nor
// lose everything; 1 for what has none.
template <class V>
TCF_INLINE V power_near(V x, V& inverse) {
  typedef uints<V> U;
  typedef uint_elem<elem<V>> E;
  const int fraction = format<elem<V>>::fraction, bias = format<elem<V>>::bias;
  const U top = cst<U>(E(E(2 * bias - 2) << fraction)), one = cst<U>(E(E(1) << fraction));
  U e = U(bits<U>(fabs(x)) & cst<U>(E(E(2 * bias + 1) << fraction)));
  e = blend<U>(e < one, one, blend<U>(e > top, top, e));
  inverse = bits<V>(U(cst<U>(E(E(2 * bias) << fraction)) - e));
  return bits<V>(e);
}
template <class V>
TCF_INLINE V largest(V a) {
  return fabs(a);
}
template <class V, class... R>
TCF_INLINE V largest(V a, R... rest) {
  return fmax(fabs(a), largest(rest...));
}
// sqrt(a^2 + b^2 + ...), or its inverse; floats by doubles.
template <bool Inverse, class V, class... R>
TCF_INLINE V norm(V a, R... rest) {
  V r;
  if constexpr (same<elem<V>, float>) {
    typedef with_elem<V, double> D;
    auto square = [](V v) { D d = cast<double>(v); return D(d * d); };
    D s = square(a);
    ((s = s + square(rest)), ...);
    r = cast<float>(Inverse ? D(cst<D>(1) / sqrt(s)) : sqrt(s));
  } else {
    V inverse, power = power_near(largest(a, rest...), inverse);
    auto square = [&](V v) { return exact_product(V(v * inverse), V(v * inverse)); };
    twin<V> s = square(a);
    auto more = [&](V v) {
      twin<V> q = square(v), t = exact_sum(s.high, q.high);
      s = {t.high, t.low + (s.low + q.low)};
    };
    (more(rest), ...);
    V root = sqrt(s.high + s.low);
    r = Inverse ? V(inverse / root) : V(root * power);
  }
  const V end = Inverse ? cst<V>(0) : inf<V>();  // an infinity wins over a NaN
  return blend<V>(largest(a, rest...) == inf<V>(), end, r);
}
template <class V>
TCF_INLINE V hypot(V a, V b) {
  return norm<false>(a, b);
}
template <class V>
TCF_INLINE V norm3d(V a, V b, V c) {
  return norm<false>(a, b, c);
}
template <class V>
TCF_INLINE V norm4d(V a, V b, V c, V d) {
  return norm<false>(a, b, c, d);
}
template <class V>
TCF_INLINE V rhypot(V a, V b) {
  return norm<true>(a, b);
}
template <class V>
TCF_INLINE V rnorm3d(V a, V b, V c) {
  return norm<true>(a, b, c);
}
template <class V>
TCF_INLINE V rnorm4d(V a, V b, V c, V d) {
  return norm<true>(a, b, c, d);
}
template <class V>
TCF_INLINE V fdivide(V a, V b) {
  return a / b;
}

// a b + c in one rounding.  Without the instruction: a float's product is exact as a double,
// and the sum is rounded to odd there so that the second rounding is right; doubles take
// integers.
#if TCF_FUSED
template <class V>
TCF_INLINE V fma(V a, V b, V c) {
  return fused(a, b, c);
}
#else
// s.high with its last bit set where s.low says the sum was not exact.
template <class D>
TCF_INLINE D to_odd(twin<D> s) {
  typedef ints<D> I;
  I high = bits<I>(s.high);
  I away = bits<I>(s.high) ^ bits<I>(s.low);  // negative where low points to zero
  I step = blend<I>(away < 0, cst<I>(-1), cst<I>(1)) + high;
  auto change = (s.low != cst<D>(0)) & ((high & 1) == 0) & (fabs(s.high) < inf<D>());
  return bits<D>(blend<I>(change, step | 1, high));
}
typedef unsigned __int128 uint128_t;
// The value shifted right; the last bit tells whether ones were lost.
TCF_INLINE uint128_t shift_sticky(uint128_t v, int n) {
  if (n == 0) return v;
  if (n > 127) return v != 0;
  return v >> n | ((v << (128 - n)) != 0);
}
// v 2^e, v not 0, rounded to the nearest double.
TCF_INLINE double round_fixed(uint128_t v, int e, bool negative) {
  uint64_t top = uint64_t(v >> 64);
  int bit = top ? 127 - __builtin_clzll(top) : 63 - __builtin_clzll(uint64_t(v));
  int n = bit - 52 > -1074 - e ? bit - 52 : -1074 - e;
  uint64_t m;
  if (n <= 0) {
    m = uint64_t(v << -n);
  } else {
    uint128_t w = shift_sticky(v, n > 2 ? n - 2 : 0) << (n > 2 ? 0 : 2 - n);
    m = uint64_t(w >> 2) + ((w & 2) && (w & 5));
  }
  // The hidden bit carries into the exponent; a denormal has none.
  uint64_t u = m + (uint64_t(e + n + 1074) << 52);
  if (m && e + n + 1074 >= 2046) u = uint64_t(0x7ff) << 52;
  return bits<double>(u | uint64_t(negative) << 63);
}
TCF_NOINLINE double fma_lane(double a, double b, double c) {
  const double end = inf<double>();
  if (!(fabs(a) < end && fabs(b) < end && fabs(c) < end) || a == 0 || b == 0 || c == 0) {
    if (a == 0 || b == 0 || !(fabs(a) < end && fabs(b) < end)) return a * b + c;
    if (c != 0) return c + c;
  }
  auto part = [](double v, int& e) {
    uint64_t u = bits<uint64_t>(v), f = u & 0xfffffffffffffull;
    e = int((u >> 52) & 0x7ff);
    if (e) f |= 0x10000000000000ull;
    e = (e ? e : 1) - 1075;
    return f;
  };
  int ea, eb, ec;
  uint128_t p = uint128_t(part(a, ea)) * part(b, eb), r = part(c, ec);
  bool sp = (a < 0) != (b < 0), sc = copysign(1.0, c) < 0;
  // Both as multiples of 2^e, the product below 2^126 and the one that is shifted out jammed.
  int e = ea + eb - 20, d = ec - e;
  p <<= 20;
  if (r == 0) {
    sc = sp;
  } else if (d > 73) {
    p = shift_sticky(p, d - 73);
    r <<= 73;
    e = ec - 73;
  } else {
    r = d >= 0 ? r << d : shift_sticky(r, -d);
  }
  if (sp == sc) return round_fixed(p + r, e, sp);
  if (p == r) return 0.0;
  return p > r ? round_fixed(p - r, e, sp) : round_fixed(r - p, e, sc);
}
template <class V>
TCF_INLINE V fma(V a, V b, V c) {
  if constexpr (same<elem<V>, float>) {
    typedef with_elem<V, double> D;
    D p = cast<double>(a) * cast<double>(b);
    return cast<float>(to_odd(exact_sum(p, cast<double>(c))));
  } else {
    return lanewise<V>([](double x, double y, double z) { return fma_lane(x, y, z); }, a, b, c);
  }
}
template <class V>
TCF_INLINE V fused(V a, V b, V c) {
  return fma(a, b, c);
}
#endif

// |x| modulo |y|, both finite and y not 0, by long division on the fractions.
TCF_NOINLINE double fmod_lane(double x, double y) {
  uint64_t m = bits<uint64_t>(fabs(x)), n = bits<uint64_t>(fabs(y));
  const uint64_t hidden = uint64_t(1) << 52;
  int ex = int(m >> 52), ey = int(n >> 52);
  m = ex ? (m & (hidden - 1)) | hidden : m;
  n = ey ? (n & (hidden - 1)) | hidden : n;
  ex += ex == 0;
  ey += ey == 0;
  if (ex < ey) return fabs(x);
  m %= n;
  for (int k = ex - ey; k > 0 && m;) {
    int s = k < 11 ? k : 11;
    m = (m << s) % n;
    k -= s;
  }
  // m 2^(ey - 1075) is a number; its fraction may have to move up.
  double r = double(m);
  return ey >= 53 ? r * bits<double>(uint64_t(ey - 52) << 52)
                  : r * bits<double>(uint64_t(ey) << 52) * 0x1p-52;
}
// Below 2^22 (2^51) the truncated quotient is right or 1 too far, and x - q y is exact.
template <class V>
TCF_INLINE V fmod(V x, V y) {
  typedef elem<V> T;
  const V zero = cst<V>(0), most = cst<V>(same<T, float> ? 0x1p22 : 0x1p51);
  const V huge = cst<V>(same<T, float> ? 0x1p100 : 0x1p900);
  const V tiny = cst<V>(same<T, float> ? 0x1p-60 : 0x1p-900);
  V a = fabs(x), b = fabs(y), q = trunc(a / b);
#if TCF_FUSED
  V r = fused(-q, b, a);
#else
  twin<V> p = exact_product(q, b);
  V r = (a - p.high) - p.low;
#endif
  r = blend<V>(r < zero, r + b, r);
  r = blend<V>(a < b, a, r);
  auto hard = !((a < b) | ((q < most) & (a < huge) & (b > tiny)));
  if (__builtin_expect(any<V>(hard), 0)) {
    for (int i = 0; i < lanes<V>; i++) {
      T s = lane(a, i), t = lane(b, i);
      if (s < t) continue;
      if (!(s < inf<T>()) || !(t > 0)) set_lane(r, i, nan<T>());
      else set_lane(r, i, T(fmod_lane(s, t)));
    }
  }
  return copysign(r, x);
}
// x - n y with n = x / y rounded down, so it has the sign of y.
template <class V>
TCF_INLINE V floored(V x, V y) {
  const V zero = cst<V>(0);
  V r = fmod(x, y);
  auto crosses = ((r < zero) & (y > zero)) | ((r > zero) & (y < zero));
  return blend<V>(crosses, r + y, copysign(r, y));
}
// x - n y with n = x / y rounded to even.
template <class V>
TCF_INLINE V remainder(V x, V y) {
  V b = fabs(y), a = fmod(fabs(x), V(b + b));  // an infinite 2 b leaves |x|
  auto over = a + a > b;
  V c = blend<V>(over, a - b, a);
  auto again = over & (c + c >= b);
  c = blend<V>(again, c - b, c);
  return blend<V>(c == c, flip_sign(c, x), c);
}

// The next number after a in the direction of b.
template <class V>
TCF_INLINE V nextafter(V a, V b) {
  typedef ints<V> I;
  typedef int_elem<elem<V>> E;
  const V zero = cst<V>(0);
  I i = bits<I>(a);
  // Away from zero is one more in the bits; from zero itself, the least denormal towards b.
  I up = blend<I>((a < b) == (a > zero), cst<I>(1), cst<I>(-1));
  V r = bits<V>(I(i + up));
  r = blend<V>(a == zero, copysign(bits<V>(cst<I>(E(1))), b), r);
  r = blend<V>(a == b, b, r);
  return blend<V>((a != a) | (b != b), a + b, r);
}
// The exponent of x as a number.
template <class V>
TCF_INLINE V logb(V x) {
  V e, f = split_power(fabs(x), e);
  // split_power centres the fraction on 1: below 1 the exponent is one too high.
  e = blend<V>(f < cst<V>(0), e - cst<V>(1), e);
  e = blend<V>(x == cst<V>(0), -inf<V>(), e);
  return blend<V>(fabs(x) < inf<V>(), e, x * x);
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
