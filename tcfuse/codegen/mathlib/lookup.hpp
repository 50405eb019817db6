// Entries of tables that have one for each 8-bit number.
//
// A table of bytes lies in registers: four of AVX-512's, in which one permutation looks up 32
// words of 64, or sixteen halves of AVX2's, in which a shuffle looks up 32 bytes of 16.
namespace tcf {

#if defined(__x86_64__) && defined(__has_builtin)
#if TCF_LEVEL >= 4 && __has_builtin(__builtin_ia32_vpermi2varhi512)
#define TCF_TABLE 32  // bytes looked up at once
TCF_INLINE vec<uint8_t, 32> table_bytes(const uint8_t* table, vec<uint8_t, 32> index) {
  typedef vec<uint16_t, 32> words;
  typedef vec<short, 32> numbers;
  words t[4];
  __builtin_memcpy(t, table, sizeof t);
  const words i = __builtin_convertvector(index, words);
  const numbers at = (numbers)(i >> 1);  // of the word; the permutations ignore bit 6
  const words low = (words)__builtin_ia32_vpermi2varhi512((numbers)t[0], at, (numbers)t[1]);
  const words high = (words)__builtin_ia32_vpermi2varhi512((numbers)t[2], at, (numbers)t[3]);
  const words word = i > 127 ? high : low;
  return __builtin_convertvector(word >> ((i & 1) << 3), vec<uint8_t, 32>);
}
#elif TCF_LEVEL == 3 && __has_builtin(__builtin_elementwise_sub_sat)
#define TCF_TABLE 32
TCF_INLINE vec<uint8_t, 32> table_bytes(const uint8_t* table, vec<uint8_t, 32> index) {
  typedef vec<char, 32> bytes;
  typedef vec<uint8_t, 16> part;
  bytes found = {}, before[2] = {};
  // A shuffle gives 0 for a negative index.  Of 16 parts of the table those that an index has
  // reached contribute by what each differs from the one before it.
  bytes at[2] = {(bytes)index, (bytes)(index ^ 0x80)};
  TCF_UNROLL
  for (int k = 0; k < 8; k++) {
    TCF_UNROLL
    for (int half = 0; half < 2; half++) {
      const part p = load<uint8_t, 16>(table + 128 * half + 16 * k);
      const bytes both = (bytes)join(p, p);
      found ^= (bytes)__builtin_ia32_pshufb256(both ^ before[half], at[half]);
      before[half] = both;
      at[half] = (bytes)__builtin_elementwise_sub_sat(at[half], bytes{} + 16);
    }
  }
  return (vec<uint8_t, 32>)found;
}
#endif
#endif

template <class T, int L>
TCF_INLINE vec<T, L> lookup(const T* table, vec<uint8_t, L> index) {
#ifdef TCF_TABLE
  if constexpr (sizeof(T) == 1 && L > TCF_TABLE) {
    return join(lookup<T, L / 2>(table, low(index)), lookup<T, L / 2>(table, high(index)));
  } else if constexpr (sizeof(T) == 1 && L == TCF_TABLE) {
    return (vec<T, L>)table_bytes((const uint8_t*)table, index);
  } else if constexpr (sizeof(T) == 1 && 2 * L == TCF_TABLE) {
    return low(lookup<T, 2 * L>(table, join(index, index)));
  }
#endif
  vec<T, L> v = {};
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, table[lane(index, i)]);
  return v;
}

}  // namespace tcf
