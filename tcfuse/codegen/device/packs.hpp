// Everything that takes packs, lane by lane.  For overload resolution these are more specialised
// than the math library's templates, which are left with scalars.
namespace tcf {

// f of every lane of packs and of scalars, which every lane shares.
template <class T, int L>
TCF_INLINE T part(const pack<T, L>& v, int i) {
  return v[i];
}
template <class R, int L, class F, class... A>
TCF_INLINE pack<R, L> each(F f, const A&... a) {
  pack<R, L> r;
  TCF_UNROLL
  for (int i = 0; i < L; i++) r[i] = f(part(a, i)...);
  return r;
}

// ---- operators ------------------------------------------------------------------------------

#define TCF_OPERATOR(op)                                                     \
  template <class T, int L>                                                  \
  TCF_INLINE pack<T, L> operator op(pack<T, L> a, pack<T, L> b) {            \
    return each<T, L>([](T x, T y) { return T(x op y); }, a, b);             \
  }
TCF_OPERATOR(+)
TCF_OPERATOR(-)
TCF_OPERATOR(*)
TCF_OPERATOR(/)
TCF_OPERATOR(%)
TCF_OPERATOR(&)
TCF_OPERATOR(|)
TCF_OPERATOR(^)
#undef TCF_OPERATOR
#define TCF_SHIFT(op)                                                        \
  template <class T, int L>                                                  \
  TCF_INLINE pack<T, L> operator op(pack<T, L> a, int n) {                   \
    return each<T, L>([n](T x) { return T(x op n); }, a);                    \
  }
TCF_SHIFT(<<)
TCF_SHIFT(>>)
#undef TCF_SHIFT
template <class T, int L>
TCF_INLINE pack<T, L> operator-(pack<T, L> a) {
  return each<T, L>([](T x) { return T(-x); }, a);
}
template <class T, int L>
TCF_INLINE pack<T, L> operator~(pack<T, L> a) {
  return each<T, L>([](T x) { return T(~x); }, a);
}

// ---- comparisons and masks ------------------------------------------------------------------

#define TCF_COMPARISON(name)                                                 \
  template <class T, int L>                                                  \
  TCF_INLINE pack<bool, L> name(pack<T, L> a, pack<T, L> b) {                \
    return each<bool, L>([](T x, T y) { return name(x, y); }, a, b);         \
  }
TCF_COMPARISON(lt)
TCF_COMPARISON(le)
TCF_COMPARISON(gt)
TCF_COMPARISON(ge)
TCF_COMPARISON(eq)
TCF_COMPARISON(ne)
#undef TCF_COMPARISON
#define TCF_TEST(name)                                                       \
  template <class T, int L>                                                  \
  TCF_INLINE pack<bool, L> name(pack<T, L> a) {                              \
    return each<bool, L>([](T x) { return name(x); }, a);                    \
  }
TCF_TEST(isnan)
TCF_TEST(isinf)
TCF_TEST(to_mask)
#undef TCF_TEST

template <class T, int L>
TCF_INLINE pack<T, L> select(pack<bool, L> m, pack<T, L> a, pack<T, L> b) {
  return each<T, L>([](bool c, T x, T y) { return c ? x : y; }, m, a, b);
}

// ---- conversions ----------------------------------------------------------------------------

#define TCF_CONVERSION(name)                                                 \
  template <class To, class T, int L>                                        \
  TCF_INLINE pack<To, L> name(pack<T, L> a) {                                \
    return each<To, L>([](T x) { return name<To>(x); }, a);                  \
  }
TCF_CONVERSION(cast)
TCF_CONVERSION(convert)
TCF_CONVERSION(from_mask)
TCF_CONVERSION(reinterpret)
#undef TCF_CONVERSION
#define TCF_CONVERSION(name, To)                                             \
  template <class Format, class T, int L>                                    \
  TCF_INLINE pack<To, L> name(pack<T, L> a) {                                \
    return each<To, L>([](T x) { return name<Format>(x); }, a);              \
  }
TCF_CONVERSION(from_code, float)
TCF_CONVERSION(to_code, uint8_t)
TCF_CONVERSION(round_code, float)
#undef TCF_CONVERSION
#define TCF_CONVERSION(name, To)                                             \
  template <class T, int L>                                                  \
  TCF_INLINE pack<To, L> name(pack<T, L> a) {                                \
    return each<To, L>([](T x) { return name(x); }, a);                      \
  }
TCF_CONVERSION(from_half, float)
TCF_CONVERSION(from_half_bits, float)
TCF_CONVERSION(to_half_bits, uint16_t)
TCF_CONVERSION(to_half, uint16_t)
TCF_CONVERSION(round_half, float)
TCF_CONVERSION(bfloat_bits, uint32_t)
TCF_CONVERSION(round_bfloat, float)
#undef TCF_CONVERSION

template <int Bits, bool Signed, class T, int L>
TCF_INLINE pack<T, L> wrapped(pack<T, L> a) {
  return each<T, L>([](T x) { return wrapped<Bits, Signed>(x); }, a);
}

template <class To, class T, int L>
TCF_INLINE pack<To, L> quantized(pack<T, L> a, int32_t zero) {
  return each<To, L>([zero](T x) { return quantized<To>(x, zero); }, a);
}

// Two neighbours come in one word, of which each is a half.
template <int L>
TCF_INLINE pack<float, L> from_bfloat(pack<uint16_t, L> h) {
  const auto words = bits<vec<uint32_t, L / 2>>(h);
  pack<float, L> r;
  TCF_UNROLL
  for (int i = 0; i < L; i += 2) {
    r[i] = bits<float>(lane(words, i / 2) << 16);
    r[i + 1] = bits<float>(lane(words, i / 2) & 0xffff0000u);
  }
  return r;
}

// ---- functions ------------------------------------------------------------------------------

#define TCF_FUNCTION_1(name)                                                 \
  template <class T, int L>                                                  \
  TCF_INLINE pack<T, L> name(pack<T, L> a) {                                 \
    return each<T, L>([](T x) { return name(x); }, a);                       \
  }
#define TCF_FUNCTION_2(name)                                                 \
  template <class T, int L>                                                  \
  TCF_INLINE pack<T, L> name(pack<T, L> a, pack<T, L> b) {                   \
    return each<T, L>([](T x, T y) { return name(x, y); }, a, b);            \
  }
#define TCF_FUNCTION_3(name)                                                 \
  template <class T, int L>                                                  \
  TCF_INLINE pack<T, L> name(pack<T, L> a, pack<T, L> b, pack<T, L> c) {     \
    return each<T, L>([](T x, T y, T z) { return name(x, y, z); }, a, b, c); \
  }
#define TCF_FUNCTION_4(name)                                                 \
  template <class T, int L>                                                  \
  TCF_INLINE pack<T, L> name(pack<T, L> a, pack<T, L> b, pack<T, L> c,       \
                             pack<T, L> d) {                                 \
    return each<T, L>([](T x, T y, T z, T w) { return name(x, y, z, w); },   \
                      a, b, c, d);                                           \
  }
TCF_FUNCTION_1(floor)
TCF_FUNCTION_1(ceil)
TCF_FUNCTION_1(trunc)
TCF_FUNCTION_1(round)
TCF_FUNCTION_1(roundeven)
TCF_FUNCTION_1(sqrt)
TCF_FUNCTION_1(rsqrt)
TCF_FUNCTION_1(fabs)
TCF_FUNCTION_1(abs)
TCF_FUNCTION_1(neg)
TCF_FUNCTION_1(sign)
TCF_FUNCTION_1(cbrt)
TCF_FUNCTION_1(rcbrt)
TCF_FUNCTION_1(exp)
TCF_FUNCTION_1(exp2)
TCF_FUNCTION_1(exp10)
TCF_FUNCTION_1(expm1)
TCF_FUNCTION_1(exp_bounded)
TCF_FUNCTION_1(sigmoid)
TCF_FUNCTION_1(tanh)
TCF_FUNCTION_1(sinh)
TCF_FUNCTION_1(cosh)
TCF_FUNCTION_1(log)
TCF_FUNCTION_1(log2)
TCF_FUNCTION_1(log10)
TCF_FUNCTION_1(log1p)
TCF_FUNCTION_1(logb)
TCF_FUNCTION_1(sin)
TCF_FUNCTION_1(cos)
TCF_FUNCTION_1(tan)
TCF_FUNCTION_1(sinpi)
TCF_FUNCTION_1(cospi)
TCF_FUNCTION_1(asin)
TCF_FUNCTION_1(acos)
TCF_FUNCTION_1(atan)
TCF_FUNCTION_1(asinh)
TCF_FUNCTION_1(acosh)
TCF_FUNCTION_1(atanh)
TCF_FUNCTION_1(erf)
TCF_FUNCTION_1(erfc)
TCF_FUNCTION_1(erfcx)
TCF_FUNCTION_1(erfinv)
TCF_FUNCTION_1(erfcinv)
TCF_FUNCTION_1(normcdf)
TCF_FUNCTION_1(normcdfinv)
TCF_FUNCTION_1(lgamma)
TCF_FUNCTION_1(tgamma)
TCF_FUNCTION_1(j0)
TCF_FUNCTION_1(j1)
TCF_FUNCTION_1(y0)
TCF_FUNCTION_1(y1)
TCF_FUNCTION_1(cyl_bessel_i0)
TCF_FUNCTION_1(cyl_bessel_i1)
TCF_FUNCTION_1(bitnot_)
TCF_FUNCTION_1(not_)
TCF_FUNCTION_1(exactly)
TCF_FUNCTION_2(add)
TCF_FUNCTION_2(sub)
TCF_FUNCTION_2(mul)
TCF_FUNCTION_2(product)
TCF_FUNCTION_2(quotient)
TCF_FUNCTION_2(tdiv)
TCF_FUNCTION_2(tmod)
TCF_FUNCTION_2(floor_div)
TCF_FUNCTION_2(floor_mod)
TCF_FUNCTION_2(ipow)
TCF_FUNCTION_2(shl)
TCF_FUNCTION_2(shr)
TCF_FUNCTION_2(bitand_)
TCF_FUNCTION_2(bitor_)
TCF_FUNCTION_2(bitxor_)
TCF_FUNCTION_2(and_)
TCF_FUNCTION_2(or_)
TCF_FUNCTION_2(xor_)
TCF_FUNCTION_2(max_)
TCF_FUNCTION_2(min_)
TCF_FUNCTION_2(at_least)
TCF_FUNCTION_2(at_most)
TCF_FUNCTION_2(fmax)
TCF_FUNCTION_2(fmin)
TCF_FUNCTION_2(fdim)
TCF_FUNCTION_2(fdivide)
TCF_FUNCTION_2(fmod)
TCF_FUNCTION_2(floored)
TCF_FUNCTION_2(remainder)
TCF_FUNCTION_2(nextafter)
TCF_FUNCTION_2(copysign)
TCF_FUNCTION_2(flip_sign)
TCF_FUNCTION_2(hypot)
TCF_FUNCTION_2(rhypot)
TCF_FUNCTION_2(atan2)
TCF_FUNCTION_2(pow)
TCF_FUNCTION_3(fused)
TCF_FUNCTION_3(mad)
TCF_FUNCTION_3(fma)
TCF_FUNCTION_3(norm3d)
TCF_FUNCTION_3(rnorm3d)
TCF_FUNCTION_4(norm4d)
TCF_FUNCTION_4(rnorm4d)
#undef TCF_FUNCTION_1
#undef TCF_FUNCTION_2
#undef TCF_FUNCTION_3
#undef TCF_FUNCTION_4

template <int L>
TCF_INLINE mask<L> splat_mask(bool b) {
  return splat<bool, L>(b);
}

}  // namespace tcf
