// What memory holds otherwise than registers: bool as uint8_t, 16-bit floats as uint16_t.
namespace tcf {

template <int L>
TCF_INLINE mask<L> load_bool(const uint8_t* p) {
  return to_mask(load<uint8_t, L>(p));
}
template <int L>
TCF_INLINE void store_bool(uint8_t* p, mask<L> m) {
  store<L>(p, from_mask<uint8_t>(m));
}

// ---- bfloat16: the upper half of a float ----------------------------------------------------

template <class V>
TCF_INLINE with_elem<V, float> from_bfloat(V h) {
  return bits<with_elem<V, float>>(cast<uint32_t>(h) << 16);
}
// Nearest, ties to even; a NaN stays one (its quiet bit is set, as the rounding might carry).
template <class V>
TCF_INLINE uints<V> bfloat_bits(V v) {
  typedef uints<V> U;
  U u = bits<U>(v);
  U rounded = u + 0x7fff + ((u >> 16) & 1);
  return select(isnan(v), u | 0x400000, rounded) & 0xffff0000u;
}
template <class V>
TCF_INLINE V round_bfloat(V v) {
  return bits<V>(bfloat_bits(v));
}
template <int L>
TCF_INLINE vec<float, L> load_bfloat(const uint16_t* p) {
  return from_bfloat(load<uint16_t, L>(p));
}
template <int L>
TCF_INLINE void store_bfloat(uint16_t* p, vec<float, L> v) {
  store<L>(p, cast<uint16_t>(bfloat_bits(v) >> 16));
}

// ---- float16 --------------------------------------------------------------------------------

// By integers.  A denormal half is the exponent of 2^-14 with its fraction, less 2^-14.
template <class V>
TCF_INLINE with_elem<V, float> from_half_bits(V h) {
  typedef with_elem<V, uint32_t> U;
  typedef with_elem<V, float> F;
  U u = cast<uint32_t>(h), sign = (u & 0x8000) << 16, em = (u & 0x7fff) << 13;
  F normal = bits<F>(em + (112u << 23));
  F tiny = bits<F>(em + (113u << 23)) - cst<F>(0x1p-14);
  F special = bits<F>(em | 0x7f800000u);
  // A signalling NaN comes out quiet, as the instruction does it.
  special = special + special;
  F r = select(lt(em, cst<U>(0x400u << 13)), tiny, normal);
  r = select(ge(em, cst<U>(0x7c00u << 13)), special, r);
  return bits<F>(bits<U>(r) | sign);
}
template <class V>
TCF_INLINE with_elem<V, uint16_t> to_half_bits(V v) {
  typedef uints<V> U;
  U u = bits<U>(v), sign = (u >> 16) & 0x8000;
  u = u & 0x7fffffffu;
  // Adding 0.5 lines a result below 2^-14 up with the fraction, rounding it on the way.
  U tiny = bits<U>(bits<V>(u) + cst<V>(0.5f)) - 0x3f000000u;
  U normal = (u - 0x38000000u + 0xfff + ((u >> 13) & 1)) >> 13;
  U r = select(lt(u, cst<U>(0x38800000u)), tiny, normal);
  r = select(ge(u, cst<U>(0x47800000u)), cst<U>(0x7c00u), r);
  r = select(gt(u, cst<U>(0x7f800000u)), 0x7e00u | ((u >> 13) & 0x3ff), r);
  return cast<uint16_t>(r | sign);
}

#if TCF_HALF && defined(__clang__)
template <class V>
TCF_INLINE with_elem<V, float> from_half(V h) {
  return cast<float>(bits<with_elem<V, _Float16>>(h));
}
#elif TCF_HALF && defined(__x86_64__)
template <class V>
TCF_INLINE with_elem<V, float> from_half(V h) {
  if constexpr (lanes<V> == 1) {
    return __builtin_ia32_vcvtph2ps(vec<int16_t, 8>{int16_t(h)})[0];
  } else if constexpr (lanes<V> < 8) {
    return low(from_half(join(h, h)));
  } else if constexpr (lanes<V> == 8) {
    return __builtin_ia32_vcvtph2ps256((vec<int16_t, 8>)h);
  } else {
    return join(from_half(low(h)), from_half(high(h)));
  }
}
#else
template <class V>
TCF_INLINE with_elem<V, float> from_half(V h) {
  return from_half_bits(h);
}
#endif

#if TCF_HALF && defined(__x86_64__)
// The instruction by name: clang would merge a conversion of a _Float16 with one from double
// before it into a call of a library.
template <class V>
TCF_INLINE with_elem<V, uint16_t> to_half(V v) {
  if constexpr (lanes<V> == 1) {
    return uint16_t(__builtin_ia32_vcvtps2ph(f32x4{v}, 0)[0]);
  } else if constexpr (lanes<V> < 8) {
    return low(to_half(join(v, v)));
  } else if constexpr (lanes<V> == 8) {
    return (vec<uint16_t, 8>)__builtin_ia32_vcvtps2ph256(v, 0);
  } else {
    return join(to_half(low(v)), to_half(high(v)));
  }
}
#elif TCF_HALF
template <class V>
TCF_INLINE with_elem<V, uint16_t> to_half(V v) {
  return bits<with_elem<V, uint16_t>>(cast<_Float16>(v));
}
#else
template <class V>
TCF_INLINE with_elem<V, uint16_t> to_half(V v) {
  return to_half_bits(v);
}
#endif

template <class V>
TCF_INLINE V round_half(V v) {
  return from_half(to_half(v));
}
template <int L>
TCF_INLINE vec<float, L> load_half(const uint16_t* p) {
  return from_half(load<uint16_t, L>(p));
}
template <int L>
TCF_INLINE void store_half(uint16_t* p, vec<float, L> v) {
  store<L>(p, to_half(v));
}

}  // namespace tcf
