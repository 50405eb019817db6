// Tensor cores: warps multiply small matrices whose elements their lanes hold.
//
// Layouts of the fragments: PTX ISA, "Matrix fragments for mma.m16n8k8", "... m16n8k16" and
// "ldmatrix".  Products are exact; they are added in double and rounded once, where hardware adds
// in an order and a precision of its own.
#pragma once

namespace tcf_emulator {
// What every lane of the warp gives; all of them must call it.
template <class T>
TCF_EMULATED_OWN inline void all_lanes(const T& mine, T (&all)[32]) {
  // Lanes are fibers of one process, so addresses say enough while nobody goes on.
  meet(Operation::MATRIX, ALL_LANES, uint64_t(&mine), 0);
  for (unsigned l = 0; l < 32; l++) all[l] = *reinterpret_cast<const T*>(given_by(l));
  meet(Operation::MATRIX, ALL_LANES, uint64_t(&mine), 0);
}

struct half_element {
  static TCF_EMULATED_OWN float value(uint32_t pair, int i) {
    const uint32_t h = pair >> 16 * i & 0xffff;
    // An exponent of 5 bits is biased by 15, one of 8 bits by 127; this scales denormals as well.
    float f = __builtin_bit_cast(float, (h & 0x7fff) << 13) * 0x1p112f;
    uint32_t bits = __builtin_bit_cast(uint32_t, f);
    if ((h & 0x7c00) == 0x7c00) bits |= 0x7f800000;  // infinity, not a number
    return __builtin_bit_cast(float, bits | (h & 0x8000) << 16);
  }
};
struct bfloat_element {
  static TCF_EMULATED_OWN float value(uint32_t pair, int i) {
    return __builtin_bit_cast(float, i ? pair & 0xffff0000 : pair << 16);
  }
};

template <int A, int B>
struct Fragments { uint32_t a[A], b[B]; };

// d = a * b + c, 16 x 8 elements, K at a time; c and d may be the same array.  Element(row, k)
// of a and element(k, column) of b are read from what all lanes hold.
template <int K, class F, class ElementA, class ElementB>
TCF_EMULATED_OWN inline void multiply(float (&d)[4], const F& mine, const float (&c)[4],
                                      ElementA a, ElementB b) {
  F all[32];
  all_lanes(mine, all);
  const unsigned group = lane_index() / 4, pair = lane_index() % 4;
  for (int i = 0; i < 4; i++) {
    const unsigned row = group + i / 2 * 8, column = pair * 2 + i % 2;
    double sum = c[i];
    for (int k = 0; k < K; k++) sum += double(a(all, row, k)) * b(all, k, column);
    d[i] = float(sum);
  }
}

// mma.sync.aligned.m16n8k{8,16}.row.col.f32.{f16,bf16}.{f16,bf16}.f32
template <class Element, int A, int B>
TCF_EMULATED_OWN inline void mma_pairs(float (&d)[4], const uint32_t (&a)[A],
                                       const uint32_t (&b)[B], const float (&c)[4]) {
  static_assert(A == 2 * B && (B == 1 || B == 2), "m16n8k8 or m16n8k16");
  typedef Fragments<A, B> F;
  F mine;
  for (int i = 0; i < A; i++) mine.a[i] = a[i];
  for (int i = 0; i < B; i++) mine.b[i] = b[i];
  multiply<8 * B>(
      d, mine, c,
      [](const F* all, unsigned row, int k) {
        return Element::value(all[row % 8 * 4 + k % 8 / 2].a[row / 8 + k / 8 * 2], k % 2);
      },
      [](const F* all, int k, unsigned column) {
        return Element::value(all[column * 4 + k % 8 / 2].b[k / 8], k % 2);
      });
}
// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32: the lowest 13 bits do not take part.
TCF_EMULATED_OWN inline void mma_tf32(float (&d)[4], const uint32_t (&a)[4],
                                      const uint32_t (&b)[2], const float (&c)[4]) {
  typedef Fragments<4, 2> F;
  const F mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  multiply<8>(
      d, mine, c,
      [](const F* all, unsigned row, int k) {
        return __builtin_bit_cast(float, all[row % 8 * 4 + k % 4].a[row / 8 + k / 4 * 2] & ~0x1fffu);
      },
      [](const F* all, int k, unsigned column) {
        return __builtin_bit_cast(float, all[column * 4 + k % 4].b[k / 4] & ~0x1fffu);
      });
}

// ldmatrix.sync.aligned.m8n8.x{N}[.trans].shared.b16: lane l gives the address of row l % 8 of
// matrix l / 8.
template <bool TRANSPOSED, int N>
TCF_EMULATED_OWN inline void ldmatrix(uint32_t (&r)[N], const void* row) {
  struct Row { uint16_t element[8]; };
  const unsigned lane = lane_index();
  Row mine = {}, all[32];
  if (lane < 8 * N) {
    TCF_EMULATED_ACCESS(row, sizeof(Row), READ);
    mine = *static_cast<const Row*>(row);
  }
  all_lanes(mine, all);
  for (int i = 0; i < N; i++) {
    uint32_t pair = 0;
    for (unsigned e = 0; e < 2; e++) {
      const unsigned x = lane / 4, y = lane % 4 * 2 + e;
      const Row& from = all[8 * i + (TRANSPOSED ? y : x)];
      pair |= uint32_t(from.element[TRANSPOSED ? x : y]) << 16 * e;
    }
    r[i] = pair;
  }
}
}  // namespace tcf_emulator
