// What the lanes of a warp do together, and atomics.
#pragma once

namespace tcf_emulator {
// The value of lane `source`, or the caller's own where CUDA says so (`in_range` is false).
template <class T>
inline __attribute__((always_inline)) T shuffle(unsigned mask, T value, unsigned source,
                                                bool in_range) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = meet(Operation::SHUFFLE, mask, bits, in_range ? source & 31 : lane_index());
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline __attribute__((always_inline)) unsigned ballot(unsigned mask, bool predicate) {
  return unsigned(meet(Operation::BALLOT, mask, predicate, 0));
}
}  // namespace tcf_emulator

#define TCF_EMULATED_WARP inline __attribute__((always_inline))

TCF_EMULATED_WARP void __syncwarp(unsigned mask = tcf_emulator::ALL_LANES) {
  tcf_emulator::meet(tcf_emulator::Operation::SYNC, mask, 0, 0);
}
template <class T>
TCF_EMULATED_WARP T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned segment = tcf_emulator::lane_index() & ~(width - 1u);
  return tcf_emulator::shuffle(mask, value, segment | (source & (width - 1u)), true);
}
template <class T>
TCF_EMULATED_WARP T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = tcf_emulator::lane_index();
  return tcf_emulator::shuffle(mask, value, lane - delta, (lane & (width - 1u)) >= delta);
}
template <class T>
TCF_EMULATED_WARP T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = tcf_emulator::lane_index();
  return tcf_emulator::shuffle(mask, value, lane + delta,
                               (lane & (width - 1u)) + delta < unsigned(width));
}
template <class T>
TCF_EMULATED_WARP T __shfl_xor_sync(unsigned mask, T value, int flips, int width = 32) {
  const unsigned lane = tcf_emulator::lane_index(), source = lane ^ flips;
  return tcf_emulator::shuffle(mask, value, source, source / width <= lane / width);
}
TCF_EMULATED_WARP unsigned __ballot_sync(unsigned mask, int predicate) {
  return tcf_emulator::ballot(mask, predicate != 0);
}
TCF_EMULATED_WARP int __any_sync(unsigned mask, int predicate) {
  return tcf_emulator::ballot(mask, predicate != 0) != 0;
}
TCF_EMULATED_WARP int __all_sync(unsigned mask, int predicate) {
  return tcf_emulator::ballot(mask, predicate == 0) == 0;
}
TCF_EMULATED_WARP int __uni_sync(unsigned mask, int predicate) {
  const unsigned yes = tcf_emulator::ballot(mask, predicate != 0);
  return yes == 0 || tcf_emulator::ballot(mask, predicate == 0) == 0;
}

// No other fiber runs during one, so a plain read, change and write is atomic.
#define TCF_EMULATED_ATOMIC(name, result)                    \
  template <class T, class V>                                \
  TCF_EMULATED_OWN inline T name(T* p, V given) {            \
    TCF_EMULATED_ACCESS(p, sizeof(T), ATOMIC);               \
    const T value = T(given), old = *p;                      \
    *p = T(result);                                          \
    return old;                                              \
  }
TCF_EMULATED_ATOMIC(atomicAdd, old + value)
TCF_EMULATED_ATOMIC(atomicSub, old - value)
TCF_EMULATED_ATOMIC(atomicMax, old < value ? value : old)
TCF_EMULATED_ATOMIC(atomicMin, value < old ? value : old)
TCF_EMULATED_ATOMIC(atomicAnd, old & value)
TCF_EMULATED_ATOMIC(atomicOr, old | value)
TCF_EMULATED_ATOMIC(atomicXor, old ^ value)
TCF_EMULATED_ATOMIC(atomicExch, value)
TCF_EMULATED_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
#undef TCF_EMULATED_ATOMIC
template <class T, class V, class W>
TCF_EMULATED_OWN inline T atomicCAS(T* p, V expected, W wanted) {
  TCF_EMULATED_ACCESS(p, sizeof(T), ATOMIC);
  const T old = *p;
  if (old == T(expected)) *p = T(wanted);
  return old;
}
