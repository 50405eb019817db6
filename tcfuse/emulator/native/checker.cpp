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
  state.lane_reads.clear();
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

// One of the readers of a cell that are not ordered before the running thread, if any.
static bool racing_reader(const Readers& r, bool shared, Place& found) {
  const Place* const some[] = {&r.first, &r.second, &r.foreign};
  for (const Place* p : some)
    if (!is_ordered(*p, shared)) return found = *p, true;
  if (!r.lanes || r.first.interval != state.interval) return false;
  const LaneReads& several = state.lane_reads[r.lanes - 1];
  for (unsigned l = 0; l < 32; l++) {
    if (!(several.mask >> l & 1)) continue;
    found = r.first;
    found.thread = uint16_t(r.first.thread / 32 * 32 + l);
    found.clock = several.clock[l];
    found.pc = several.pc[l];
    if (!is_ordered(found, shared)) return true;
  }
  return false;
}

static void note_lane(LaneReads& several, const Place& p) {
  const unsigned lane = p.thread % 32;
  several.mask |= 1u << lane;
  several.clock[lane] = p.clock;
  several.pc[lane] = p.pc;
}

static void note_reader(Readers& r, const Place& now) {
  if (r.first.block != now.block || r.first.interval != now.interval) {
    if (r.first.pc && r.first.block != now.block) r.foreign = r.first;
    r.first = now;
    r.second = {};
    r.lanes = 0;
  } else if (r.first.thread == now.thread) {
    r.first = now;
  } else if (r.first.thread / 32 != now.thread / 32) {
    r.second = now;
  } else {
    if (!r.lanes) {
      state.lane_reads.push({});
      r.lanes = uint32_t(state.lane_reads.size);
    }
    note_lane(state.lane_reads[r.lanes - 1], now);
  }
}

void check_cells(const Subject& s, Access kind, uint32_t pc) {
  const Fiber& self = *current;
  const Place now = {state.block, state.interval, own_clock(), pc, uint16_t(self.number),
                     kind == Access::ATOMIC};
  Buffer& b = s.buffer;
  while (s.offset & ((1u << b.granule_log2) - 1) || s.bytes & ((1u << b.granule_log2) - 1))
    refine(b, b.granule_log2 - 1);
  const bool shared = b.flags & SHARED, writes = kind != Access::READ;
  const size_t last = (s.offset + s.bytes - 1) >> b.granule_log2;
  for (size_t i = s.offset >> b.granule_log2; i <= last; i++) {
    Place& written = b.writes[i];
    Readers& readers = b.reads[i];
    const bool nothing = shared ? written.block != state.block : !written.pc;
    if (kind != Access::WRITE && b.flags & UNWRITTEN && nothing)
      report(Finding::UNINITIALISED, where(now.block, now.thread, now.pc), {}, s.number,
             s.offset, s.bytes);
    if (!is_ordered(written, shared) && !(written.atomic && now.atomic))
      race(writes ? Finding::RACE_WRITE_WRITE : Finding::RACE_READ_AFTER_WRITE, s, now, written);
    if (!writes) {
      note_reader(readers, now);
      continue;
    }
    Place reader;
    if (racing_reader(readers, shared, reader))
      race(Finding::RACE_WRITE_AFTER_READ, s, now, reader);
    written = now;
  }
}
}  // namespace tcf_emulator
