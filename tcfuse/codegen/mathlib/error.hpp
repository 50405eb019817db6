// erf and erfc.
#ifdef __clang__
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
namespace tcf {

template <class V>
TCF_INLINE V erf(V x) {
  // x P(x^2) / Q(x^2) on [0, 3.93], where the result rounds to 1: degrees 5 and 5 (2^-25.6).
  const V most = cst<V>(3.93);
  V a = fabs(x);
  a = blend<V>(most < a, most, a);
  V z = a * a;
  V p = poly(z, 2.041937752e-6, 0.0002848118981, 0.003779769002, 0.05279077582, 0.1907875915,
             1.128379145);
  V q = poly(z, 3.800390521e-5, 0.001165250945, 0.01499775676, 0.1142590703, 0.5024138192, 1);
  return copysign(V(a * p / q), x);
}

}  // namespace tcf
#ifdef __clang__
#pragma float_control(pop)
#endif
