// sin, cos, tan, sinpi and cospi.
//
// sin: n = round(x / pi), r = x - n pi with pi in parts, one odd polynomial on [-pi/2, pi/2],
// the sign flipped for odd n.  cos: the same about odd multiples of pi / 2.  Beyond `large`
// each lane is reduced with as many bits of 2 / pi as its exponent asks for.
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

// sin on [-1.58, 1.58]: r + r^3 q(r^2), degree 9 (2^-27.2); 17 (2^-61.7).
template <class V>
TCF_INLINE V sin_reduced(V r) {
  V z = r * r, q;
  if constexpr (same<elem<V>, float>) {
    q = poly(z, 2.603986965e-6, -0.0001980883153, 0.008333056342, -0.1666665919);
  } else {
    q = poly(z, 2.721166076061250867e-15, -7.642990662248180439e-13, 1.605893967478516668e-10,
             -2.505210687219700409e-8, 2.755731921113081767e-6, -0.0001984126984120918243,
             0.008333333333333194207, -0.1666666666666666557);
  }
  return mad(q, z * r, r);
}

// cos on [-0.8, 0.8]: 1 - z/2 + z^2 q(z), z = r^2, degree 8 (2^-32.9); 16 (2^-74.7).
template <class V>
TCF_INLINE V cos_reduced(V r) {
  V z = r * r, q;
  if constexpr (same<elem<V>, float>) {
    q = poly(z, 2.442572011e-5, -0.001388725182, 0.04166664437);
  } else {
    q = poly(z, 4.736911127772409882e-14, -1.147026607411258696e-11, 2.087675412013791267e-9,
             -2.75573192142506776e-7, 0.00002480158730156878685, -0.001388888888888887096,
             0.0416666666666666666);
  }
  return mad(q, z * z, mad(cst<V>(-0.5), z, cst<V>(1)));
}

#if TCF_FUSED
// x - n pi.  The first product is a multiple of x's and pi's units, so the first step is exact.
template <class V>
TCF_INLINE V less_pi(V x, V n) {
  constexpr bool single = same<elem<V>, float>;
  V r = fused(n, cst<V>(single ? -0x1.921fb6p1 : -0x1.921fb54442d18p1), x);
  r = fused(n, cst<V>(single ? 0x1.777a5cp-24 : -0x1.1a62633145c07p-53), r);
  return fused(n, cst<V>(single ? 0x1.ee59dap-49 : 0x1.f1976b7ed8fbcp-109), r);
}
#else
// Without fused products: parts of 33 bits, whose products by n are exact.
template <class V>
TCF_INLINE V less_pi(V x, V n) {
  if constexpr (same<elem<V>, float>) {
    typedef with_elem<V, double> D;
    D m = cast<double>(n);
    D r = exactly(cast<double>(x) - exactly(m * cst<D>(0x1.921fb544p1)));
    return cast<float>(r - m * cst<D>(0x1.0b4611a626331p-33));
  } else {
    V r = exactly(x - exactly(n * cst<V>(0x1.921fb544p1)));
    twin<V> s = exact_sum(r, V(-exactly(n * cst<V>(0x1.0b4611a6p-33))));
    return s.high + (s.low - n * cst<V>(0x1.3198a2e037073p-68));
  }
}
#endif

// 2 / pi, after 64 zero bits.
static constexpr uint64_t two_over_pi[21] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
    0xf0cfbc209af4361d};

#ifndef TCF_DEVICE
// The upper half of a product.
TCF_INLINE uint64_t high_product(uint64_t a, uint64_t b) {
  return uint64_t(((unsigned __int128)a * b) >> 64);
}
#endif
// x - q pi / 2 in [-pi / 4, pi / 4] of a large finite x; q modulo 4.
struct reduced {
  double rest;
  int quadrant;
};
TCF_NOINLINE reduced reduce_large(double x) {
  uint64_t u = bits<uint64_t>(x);
  uint64_t m = (u & 0xfffffffffffffull) | 0x10000000000000ull;
  // x = m 2^e.  Bits of 2 / pi whose product by m is a multiple of 4 are left out.
  int e = int((u >> 52) & 0x7ff) - 1075, start = e - 2 + 64;
  uint64_t w[3];
  for (int i = 0; i < 3; i++) {
    int k = start / 64 + i, s = start % 64;
    w[i] = two_over_pi[k] << s | (s ? two_over_pi[k + 1] >> (64 - s) : 0);
  }
  uint64_t low = m * w[2], carried = high_product(m, w[2]), next = m * w[1] + carried;
  uint64_t top = m * w[0] + high_product(m, w[1]) + (next < carried);
  // top:next is the quotient modulo 4, in units of 2^-126.
  int quadrant = int(top >> 62);
  uint64_t f = top << 2 | next >> 62, g = next << 2 | low >> 62;
  bool up = f >> 63;
  if (up) {
    quadrant++;
    g = -g;
    f = ~f + (g == 0);
  }
  // The fraction as a pair, times pi / 2 as a pair.
  double whole = double(f), rest = double(int64_t(f - uint64_t(whole))) + double(g) * 0x1p-64;
  twin<double> p = exact_product(whole, 1.57079632679489661923);
  p.low += whole * 6.123233995736766036e-17 + rest * 1.57079632679489661923;
  double r = (p.high + p.low) * 0x1p-64;
  bool negative = u >> 63;
  return {up != negative ? -r : r, (negative ? -quadrant : quadrant) & 3};
}
// sin(x + quarters pi / 2) of any x.
TCF_NOINLINE double sin_large(double x, int quarters) {
  if (!(fabs(x) < inf<double>())) return x - x;
  const reduced large = reduce_large(x);
  const int q = large.quadrant + quarters;
  double s = q & 1 ? cos_reduced(large.rest) : sin_reduced(large.rest);
  return q & 2 ? -s : s;
}
TCF_NOINLINE double tan_large(double x) {
  if (!(fabs(x) < inf<double>())) return x - x;
  const reduced large = reduce_large(x);
  double s = sin_reduced(large.rest), c = cos_reduced(large.rest);
  return large.quadrant & 1 ? -c / s : s / c;
}

// Where a function leaves the fast reduction; the quotient is then below 2^15 (2^20).
template <class V>
TCF_INLINE native<V> is_large(V x) {
  return !(fabs(x) <= cst<V>(same<elem<V>, float> ? 1e5 : 3e6));
}
template <class V>
TCF_INLINE bool any(native<V> m) {
  return hor(narrow<lanes<V>>(m));
}

template <class V>
TCF_INLINE V sin(V x) {
  typedef format<elem<V>> F;
  typedef uints<V> U;
  V t = mad(x, cst<V>(0.318309886183790671538), cst<V>(F::shifter));
  V y = sin_reduced(less_pi(x, V(t - cst<V>(F::shifter))));
  y = bits<V>(U(bits<U>(y) ^ (bits<U>(t) << (8 * sizeof(elem<V>) - 1))));
  auto big = is_large(x);
  if (__builtin_expect(any<V>(big), 0)) {
    for (int i = 0; i < lanes<V>; i++) {
      if (is_large(lane(x, i))) set_lane(y, i, elem<V>(sin_large(lane(x, i), 0)));
    }
  }
  return blend<V>(x == cst<V>(0), x, y);
}

// cos(x) = sin(x + pi / 2): with k = round(x / pi - 1/2) + 1/2, x - k pi, sign by k - 1/2.
// At 0, which is an end of the polynomial's range, 1 and not the number below it.
template <class V>
TCF_INLINE V cos(V x) {
  typedef format<elem<V>> F;
  typedef uints<V> U;
  V t = mad(fabs(x), cst<V>(0.318309886183790671538), cst<V>(-0.5)) + cst<V>(F::shifter);
  V n = (t - cst<V>(F::shifter)) + cst<V>(0.5);
  V y = sin_reduced(less_pi(fabs(x), n));
  y = bits<V>(U(bits<U>(y) ^ ((bits<U>(t) + 1) << (8 * sizeof(elem<V>) - 1))));
  auto big = is_large(x);
  if (__builtin_expect(any<V>(big), 0)) {
    for (int i = 0; i < lanes<V>; i++) {
      if (is_large(lane(x, i))) set_lane(y, i, elem<V>(sin_large(lane(x, i), 1)));
    }
  }
  return blend<V>(x == cst<V>(0), cst<V>(1), y);
}

// sin / cos of the remainder by pi / 2, or -cos / sin after an odd multiple.
template <class V>
TCF_INLINE V tan(V x) {
  typedef format<elem<V>> F;
  typedef uints<V> U;
  V t = mad(x, cst<V>(0.636619772367581343076), cst<V>(F::shifter));
  V r = less_pi(x, V((t - cst<V>(F::shifter)) * cst<V>(0.5)));
  V s = sin_reduced(r), c = cos_reduced(r);
  auto odd = U(bits<U>(t) & 1) != 0;
  V y = blend<V>(odd, -c, s) / blend<V>(odd, s, c);
  auto big = is_large(x);
  if (__builtin_expect(any<V>(big), 0)) {
    for (int i = 0; i < lanes<V>; i++) {
      if (is_large(lane(x, i))) set_lane(y, i, elem<V>(tan_large(lane(x, i))));
    }
  }
  return blend<V>(x == cst<V>(0), x, y);
}

// Whether a whole number is odd.
template <class V>
TCF_INLINE native<V> is_odd(V n) {
  V h = n * cst<V>(0.5);
  return trunc(h) != h;
}
template <class V>
TCF_INLINE V times_pi(V r) {
  constexpr bool single = same<elem<V>, float>;
  return mad(r, cst<V>(3.14159265358979323846),
             r * cst<V>(single ? -8.74227765734758577e-8 : 1.22464679914735317636e-16));
}
// sin(pi x) and cos(pi x); x is reduced exactly.
template <class V>
TCF_INLINE V sinpi(V x) {
  V n = roundeven(x), y = sin_reduced(times_pi(V(x - n)));
  y = blend<V>(is_odd(n), -y, y);
  return blend<V>(y == cst<V>(0), copysign(y, x), y);
}
template <class V>
TCF_INLINE V cospi(V x) {
  V n = roundeven(x), y = sin_reduced(times_pi(V(cst<V>(0.5) - fabs(x - n))));
  y = blend<V>(x - n == cst<V>(0), cst<V>(1), y);  // infinities stay NaN
  return blend<V>(is_odd(n), -y, y);
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
