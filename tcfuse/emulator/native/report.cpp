// What was found, and the functions that Python calls.
#include "state.hpp"

namespace tcf_emulator {
constexpr size_t MOST_REPORTS = 1000;

static void set_index(uint32_t (&v)[3], unsigned linear, unsigned x, unsigned y) {
  v[0] = linear % x;
  v[1] = linear / x % y;
  v[2] = linear / x / y;
}

Who where(uint32_t block, uint32_t thread, uint32_t pc) {
  Who w = {};
  w.pc = pc;
  // Blocks of a launch run in the order of their numbers, or the other way round.
  const uint32_t blocks = state.grid.x * state.grid.y * state.grid.z;
  const uint32_t nth = block - state.first_block;
  set_index(w.block, state.seed & 1 ? blocks - 1 - nth : nth, state.grid.x, state.grid.y);
  set_index(w.thread, thread, state.block_size.x, state.block_size.y);
  return w;
}
Who here(const void* pc) {
  return where(state.block, current ? current->number : 0, in_library(pc));
}
Who who(const Fiber& f) {
  Who w = where(state.block, f.number, in_library(f.pc));
  if (f.status == Status::AT_BARRIER) {
    w.file = f.file;
    w.line = uint32_t(f.line);
  }
  return w;
}

// Once for each pair of instructions, with a count: the first pair of threads stands for all.
void report(Finding kind, const Who& by, const Who& other, int buffer, int64_t offset,
            uint64_t bytes) {
  const uint64_t key = (by.pc << 32 ^ other.pc << 5) + uint32_t(kind) + 1;
  const uint32_t number = state.report_index.find(key, uint32_t(state.reports.size));
  if (number < state.reports.size) {
    state.reports[number].count++;
  } else if (state.reports.size < MOST_REPORTS) {
    state.reports.push({kind, buffer, offset, bytes, 1, by, other});
  }
}

void fail(Finding kind, const Who& by, const Who& other, int buffer, int64_t offset,
          uint64_t bytes) {
  state.busy = true;
  report(kind, by, other, buffer, offset, bytes);
  stop();
}
}  // namespace tcf_emulator

using namespace tcf_emulator;

#define EXPORT extern "C" __attribute__((visibility("default")))

// Forget the reports and counters, but not what memory holds.
EXPORT void tcf_emulator_next() {
  state.reports.clear();
  state.report_index.clear();
  state.sites.clear();
  state.site_index.clear();
  state.switches = state.barriers = state.blocks = 0;
}
// Forget all buffers too, and give memory back.
EXPORT void tcf_emulator_reset() {
  tcf_emulator_next();
  release_stacks();
  release_logs();
  end_checks();
  for (Buffer& b : state.buffers) {
    release_shadow(b);
    b.sectors.release();
  }
  state.buffers.clear();
}
EXPORT void tcf_emulator_seed(uint32_t seed) { state.seed = seed; }
EXPORT void tcf_emulator_buffer(void* p, size_t bytes, uint32_t flags) {
  Buffer b = {};
  b.begin = reinterpret_cast<uintptr_t>(p);
  b.end = b.begin + bytes;
  b.flags = flags;
  state.buffers.push(b);
}
// A variable in static shared memory, so many bytes after its beginning.
EXPORT void tcf_emulator_shared(size_t offset, size_t bytes) {
  state.shared_variables.push({offset, bytes});
}
EXPORT size_t tcf_emulator_reports(const Report** first) {
  *first = state.reports.data;
  return state.reports.size;
}
EXPORT size_t tcf_emulator_sites(const Site** first) {
  *first = state.sites.data;
  return state.sites.size;
}
// Sectors of a buffer: read and written in this launch, read and written ever, then those that
// requests of this launch asked for, by reads and by writes.
EXPORT void tcf_emulator_traffic(size_t buffer, uint64_t* out) {
  const Buffer& b = state.buffers[buffer];
  for (int k = 0; k < 4; k++) {
    out[k] = 0;
    for (size_t i = 0; i < b.sectors.size; i++) out[k] += b.sectors[i] >> k & 1;
  }
  out[4] = b.sectors_requested[0];
  out[5] = b.sectors_requested[1];
}
EXPORT void tcf_emulator_schedule(uint64_t* out) {
  out[0] = state.switches;
  out[1] = state.barriers;
  out[2] = state.blocks;
}
