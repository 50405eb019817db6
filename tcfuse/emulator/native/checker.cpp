// Shadow memory: races, and reads of what was never written.
//
// Two accesses of one place, one of them a write, are a race unless something orders them: the
// thread itself; a barrier between them (they have other intervals); a __syncwarp between them
// that both lanes took part in (the lanes' clocks say so); or both are atomic.  Blocks of one
// launch are never ordered, launches always are.  So a report tells of the program, not of the
// schedule that happened to run.
#include "state.hpp"

namespace tcf_emulator {
void begin_interval() {
  state.interval++;
  state.warp_sharers.clear();
}

static bool is_ordered(const Place& then, bool shared) {  // before the running thread
  if (!then.pc || then.block < state.first_block) return true;
  if (then.block != state.block) return shared;
  if (then.interval != state.interval || then.thread == current->number) return true;
  if (then.thread / 32 != current->warp) return false;
  return lane_is_ordered(then.thread % 32, then.clock);
}

static void race(Finding kind, const Subject& s, const Place& now, const Place& then) {
  report(kind, where(now.block, now.thread, now.pc), where(then.block, then.thread, then.pc),
         s.number, s.offset, s.bytes);
}

// One of the accesses that are not ordered before the running thread, if any.
static bool racing(const Sharers& all, bool shared, Place& found) {
  const Place* const some[] = {&all.first, &all.second, &all.foreign};
  for (const Place* p : some)
    if (!is_ordered(*p, shared)) return found = *p, true;
  if (!all.lanes || all.first.interval != state.interval) return false;
  const WarpSharers& warp = state.warp_sharers[all.lanes - 1];
  for (unsigned l = 0; l < 32; l++) {
    if (!(warp.mask >> l & 1)) continue;
    found = all.first;
    found.thread = uint16_t(all.first.thread / 32 * 32 + l);
    found.clock = warp.clock[l];
    found.pc = warp.pc[l];
    if (!is_ordered(found, shared)) return true;
  }
  return false;
}

static void note_lane(WarpSharers& warp, const Place& p) {
  const unsigned lane = p.thread % 32;
  warp.mask |= 1u << lane;
  warp.clock[lane] = p.clock;
  warp.pc[lane] = p.pc;
}

static void note(Sharers& all, const Place& now) {
  if (all.first.block != now.block || all.first.interval != now.interval) {
    if (all.first.pc && all.first.block != now.block) all.foreign = all.first;
    all.first = now;
    all.second = {};
    all.lanes = 0;
  } else if (all.first.thread == now.thread) {
    all.first = now;
  } else if (all.first.thread / 32 != now.thread / 32) {
    all.second = now;
  } else {
    if (!all.lanes) {
      state.warp_sharers.push({});
      all.lanes = uint32_t(state.warp_sharers.size);
    }
    note_lane(state.warp_sharers[all.lanes - 1], now);
  }
}

static bool is_written(const Buffer& b, size_t cell) {
  const Place& plain = b.writes[cell];
  const Place atomic = b.atomics.size ? b.atomics[cell].first : Place{};
  if (b.flags & SHARED) return plain.block == state.block || atomic.block == state.block;
  return plain.pc || atomic.pc;
}

static void check_cell(const Subject& s, size_t cell, Access kind, const Place& now) {
  Buffer& b = s.buffer;
  const bool shared = b.flags & SHARED;
  if (kind != Access::WRITE && b.flags & UNWRITTEN && !is_written(b, cell))
    report(Finding::UNINITIALISED, where(now.block, now.thread, now.pc), {}, s.number, s.offset,
           s.bytes);
  const bool reads = kind == Access::READ;
  const Finding after_write = reads ? Finding::RACE_READ_AFTER_WRITE : Finding::RACE_WRITE_WRITE;
  Place other;
  if (!is_ordered(b.writes[cell], shared)) race(after_write, s, now, b.writes[cell]);
  if (kind != Access::ATOMIC && b.atomics.size && racing(b.atomics[cell], shared, other))
    race(after_write, s, now, other);
  if (!reads && racing(b.reads[cell], shared, other))
    race(Finding::RACE_WRITE_AFTER_READ, s, now, other);
  switch (kind) {
    case Access::READ: note(b.reads[cell], now); break;
    case Access::WRITE: b.writes[cell] = now; break;
    case Access::ATOMIC: note(b.atomics[cell], now); break;
  }
}

void check_cells(const Subject& s, Access kind, uint32_t pc) {
  Buffer& b = s.buffer;
  while ((s.offset | int64_t(s.bytes)) & ((1u << b.granule_log2) - 1))
    refine(b, b.granule_log2 - 1);
  if (kind == Access::ATOMIC && !b.atomics.size) b.atomics.zeros(b.writes.size);
  const Place now = {state.block, state.interval, own_clock(), pc, uint16_t(current->number)};
  const size_t last = size_t(s.offset + int64_t(s.bytes) - 1) >> b.granule_log2;
  for (size_t i = size_t(s.offset) >> b.granule_log2; i <= last; i++) check_cell(s, i, kind, now);
}
}  // namespace tcf_emulator
