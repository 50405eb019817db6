// Loads and stores of packs.
namespace tcf {

// The number or structure of numbers of so many bytes that one instruction moves.
template <int Bytes> struct word_of;
template <> struct word_of<1> { typedef uint8_t type; };
template <> struct word_of<2> { typedef uint16_t type; };
template <> struct word_of<4> { typedef uint32_t type; };
template <> struct word_of<8> { typedef uint2 type; };
template <> struct word_of<16> { typedef uint4 type; };

// One access of a whole word; a C++ compiler may split the copy of a structure.
template <class W>
TCF_INLINE W read_word(const W* p) {
#ifdef TCF_EMULATED
  return tcf_emulator::read(p);
#else
  return *p;
#endif
}
template <class W>
TCF_INLINE void write_word(W* p, W word) {
#ifdef TCF_EMULATED
  tcf_emulator::write(p, word);
#else
  *p = word;
#endif
}

// A pack of the size of whole words.
template <class T, int L>
struct words {
  static constexpr int bytes = int(sizeof(T)) * L;
  static constexpr int each = bytes < most_bytes ? bytes : most_bytes;
  static constexpr int count = bytes / each;
  typedef typename word_of<each>::type word;
  word of[count];
};

// At p, which must be aligned to the pack's size, to 16 bytes for what is larger: then it is one
// instruction, or one for every 16 bytes.
template <class T, int L>
TCF_INLINE vec<T, L> load(const T* p) {
  if constexpr (L == 1) {
    return *p;
  } else {
    typedef words<T, L> W;
    W all;
    TCF_UNROLL
    for (int i = 0; i < W::count; i++) all.of[i] = read_word((const typename W::word*)p + i);
    return bits<pack<T, L>>(all);
  }
}
template <int L, class T>
TCF_INLINE void store(T* p, vec<T, L> v) {
  if constexpr (L == 1) {
    *p = v;
  } else {
    typedef words<T, L> W;
    W all = bits<W>(v);
    TCF_UNROLL
    for (int i = 0; i < W::count; i++) write_word((typename W::word*)p + i, all.of[i]);
  }
}

template <class T, int L>
TCF_INLINE vec<T, L> load_strided(const T* p, int64_t stride) {
  vec<T, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, p[i * stride]);
  return v;
}
template <int L, class T>
TCF_INLINE void store_strided(T* p, int64_t stride, vec<T, L> v) {
  TCF_UNROLL
  for (int i = 0; i < L; i++) p[i * stride] = lane(v, i);
}
// The first n lanes, touching nothing beyond them.
template <int L, class T>
TCF_INLINE void store_strided_first(T* p, int64_t stride, vec<T, L> v, int64_t n) {
  TCF_UNROLL
  for (int i = 0; i < L; i++)
    if (i < n) p[i * stride] = lane(v, i);
}
// The others are fill.
template <class T, int L>
TCF_INLINE vec<T, L> load_first(const T* p, int64_t n, T fill) {
  vec<T, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, i < n ? p[i] : fill);
  return v;
}
template <int L, class T>
TCF_INLINE void store_first(T* p, vec<T, L> v, int64_t n) {
  store_strided_first<L>(p, 1, v, n);
}

// Entries of a table that has one for each 8-bit number.
template <class T, int L>
TCF_INLINE vec<T, L> lookup(const T* table, vec<uint8_t, L> index) {
  vec<T, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, table[lane(index, i)]);
  return v;
}
template <class T, int L>
TCF_INLINE vec<T, L> gather(const T* base, vec<int64_t, L> index) {
  vec<T, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, base[lane(index, i)]);
  return v;
}
// base[index] where m holds; the other lanes read nothing and are zero.
template <class T, int L>
TCF_INLINE vec<T, L> gather_if(const T* base, vec<int64_t, L> index, mask<L> m) {
  vec<T, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, lane(m, i) ? base[lane(index, i)] : T(0));
  return v;
}
// The same for neighbours: p[i] in lane i.
template <class T, int L>
TCF_INLINE vec<T, L> load_where(const T* p, mask<L> m) {
  vec<T, L> v;
  TCF_UNROLL
  for (int i = 0; i < L; i++) set_lane(v, i, lane(m, i) ? p[i] : T(0));
  return v;
}

}  // namespace tcf
