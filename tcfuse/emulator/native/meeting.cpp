// Lanes of a warp that wait for each other: __syncwarp, shuffles, votes.
#include "state.hpp"

namespace tcf_emulator {
uint32_t own_clock() { return state.warps[current->warp].clock[current->lane][current->lane]; }

bool lane_is_ordered(unsigned lane, uint32_t clock) {
  return clock <= state.warps[current->warp].clock[current->lane][lane];
}

// After a __syncwarp every lane of it has waited for what any of them had waited for.
static void order_lanes(Warp& w, unsigned lanes) {
  uint32_t merged[32] = {};
  for (unsigned l = 0; l < 32; l++)
    if (lanes >> l & 1)
      for (unsigned k = 0; k < 32; k++)
        if (w.clock[l][k] > merged[k]) merged[k] = w.clock[l][k];
  for (unsigned l = 0; l < 32; l++)
    if (lanes >> l & 1) {
      memcpy(w.clock[l], merged, sizeof merged);
      w.clock[l][l]++;
    }
}

// The answers of a meeting, once all its lanes are there.
static void finish(Fiber* warp, Warp& w, unsigned lanes, Operation operation) {
  uint64_t answer[32];
  unsigned yes = 0;
  for (unsigned l = 0; l < 32; l++)
    if (lanes >> l & 1 && warp[l].value) yes |= 1u << l;
  for (unsigned l = 0; l < 32; l++) {
    if (!(lanes >> l & 1)) continue;
    const unsigned source = warp[l].source;
    switch (operation) {
      case Operation::SYNC: answer[l] = 0; break;
      case Operation::SHUFFLE: answer[l] = lanes >> source & 1 ? warp[source].value : ~0ull; break;
      case Operation::BALLOT: answer[l] = yes; break;
      case Operation::MATRIX: answer[l] = warp[l].value; break;
    }
  }
  if (operation == Operation::SYNC) order_lanes(w, lanes);
  for (unsigned l = 0; l < 32; l++)
    if (lanes >> l & 1) {
      warp[l].value = answer[l];
      warp[l].status = Status::READY;
    }
  w.waiting &= ~lanes;
}

// Ends the meeting of `mask` if all its live lanes have come.
static bool complete(unsigned warp, unsigned mask) {
  Warp& w = state.warps[warp];
  const unsigned lanes = mask & w.live;
  if (!lanes || (w.waiting & lanes) != lanes) return false;
  Fiber* first = &state.fibers[warp * 32];
  const Fiber* some = nullptr;
  for (unsigned l = 0; l < 32; l++) {
    if (!(lanes >> l & 1)) continue;
    if (first[l].mask != mask) return false;
    if (!some) some = &first[l];
    if (first[l].operation != some->operation)
      fail(Finding::WARP_DIVERGENCE, who(first[l]), who(*some));
  }
  finish(first, w, lanes, some->operation);
  return true;
}

void complete_meetings(unsigned warp) {
  Fiber* first = &state.fibers[warp * 32];
  Warp& w = state.warps[warp];
  for (unsigned l = 0; l < 32; l++)
    if (w.waiting >> l & 1) complete(warp, first[l].mask);
}

uint64_t meet(Operation operation, unsigned mask, uint64_t value, unsigned source) {
  const void* pc = __builtin_return_address(0);
  Fiber* self = current;
  if (operation == Operation::MATRIX && state.warps[self->warp].live != ALL_LANES)
    fail(Finding::WARP_DEADLOCK, here(pc));
  if (!(mask >> self->lane & 1)) fail(Finding::LANE_OUTSIDE_MASK, here(pc));
  self->operation = operation;
  self->mask = mask;
  self->value = value;
  self->source = source;
  self->pc = pc;
  self->status = Status::AT_MEETING;
  state.warps[self->warp].waiting |= 1u << self->lane;
  complete(self->warp, mask);
  // The last to come waits as well, so that the lanes go on side by side.
  wait(self->status, pc);
  return self->value;
}

uint64_t given_by(unsigned lane) { return state.fibers[current->warp * 32 + lane].value; }
}  // namespace tcf_emulator
