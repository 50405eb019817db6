// Runs the threads of a block as fibers, each until it must wait, and blocks one after the other.
#include <sys/mman.h>

#include "guard.hpp"
#include "state.hpp"
#include "switch.hpp"

namespace tcf_emulator {
State state;
Fiber* current = nullptr;

constexpr uint64_t CANARY = 0x7463667573650a0dull;  // at the far end of every stack

static uint64_t& canary(unsigned fiber) {
  return *reinterpret_cast<uint64_t*>(state.stacks + fiber * STACK_BYTES);
}

uint3 thread_index() { return current->index; }
uint3 block_index() { return state.block_index; }
dim3 block_size() { return state.block_size; }
dim3 grid_size() { return state.grid; }
unsigned lane_index() { return current->lane; }

void wait(Status status, const void* pc) {
  Fiber* self = current;
  self->status = status;
  self->pc = pc;
  if (canary(self->number) != CANARY) fail(Finding::STACK_OVERFLOW, here(pc));
  state.busy = true;  // until this thread runs again
  tcf_emulator_switch(&self->stack_pointer, state.scheduler_stack_pointer);
  state.busy = false;
}

void stop() {
  state.stopped = true;
  tcf_emulator_switch(&current->stack_pointer, state.scheduler_stack_pointer);
  abort();
}

int barrier(const char* file, int line, int vote) {
  Fiber* self = current;
  self->file = file;
  self->line = line;
  self->vote = vote;
  wait(Status::AT_BARRIER, __builtin_return_address(0));
  return self->vote;
}

static void thread_main() {
  state.busy = false;
  state.call.invoke(state.call);
  Fiber* self = current;
  state.warps[self->warp].live &= ~(1u << self->lane);
  complete_meetings(self->warp);  // threads that returned are not waited for
  wait(Status::DONE, nullptr);
  abort();
}

void release_stacks() {
  if (state.stacks) munmap(state.stacks, state.stack_count * STACK_BYTES);
  state.stacks = nullptr;
  state.stack_count = 0;
}

static void start_fiber(unsigned i) {
  const dim3& size = state.block_size;
  Fiber& f = state.fibers[i];
  f = {};
  f.index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
  f.number = i;
  f.warp = i / 32;
  f.lane = i % 32;
  f.status = Status::READY;
  canary(i) = CANARY;
  // Tops of stacks a power of two apart would all fall into the same sets of the cache (2x
  // slower): each is shifted by another amount.
  char* top = state.stacks + (i + 1) * STACK_BYTES - 64 - i * 7 % 61 * 256;
  f.stack_pointer = prepare_stack(top, thread_main);
  state.warps[f.warp].live |= 1u << f.lane;
}

static void start_block() {
  const unsigned threads = state.block_size.x * state.block_size.y * state.block_size.z;
  state.fibers.zeros(threads);
  if (TRACED) prepare_logs(threads);
  state.warps.zeros((threads + 31) / 32);
  for (Warp& w : state.warps)
    for (unsigned l = 0; l < 32; l++) w.clock[l][l] = 1;
  state.block++;
  state.blocks++;
  begin_interval();
  if (state.stack_count < threads) {
    release_stacks();
    void* memory = mmap(nullptr, threads * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    state.stacks = static_cast<char*>(memory);
    state.stack_count = threads;
  }
  // Not a number, and no values of the block before: forgotten initialisation shows.
  memset(state.shared_begin, 0xff, size_t(state.shared_end - state.shared_begin));
  memset(tcf_emulator_dynamic, 0xff, state.dynamic_bytes);
  for (unsigned i = 0; i < threads; i++) start_fiber(i);
}

// A live lane that `f` waits for in vain.
static const Fiber* missing_lane(const Fiber& f) {
  const Warp& w = state.warps[f.warp];
  for (unsigned l = 0; l < 32; l++) {
    if (!(f.mask & w.live & 1u << l)) continue;
    const Fiber& other = state.fibers[f.warp * 32 + l];
    if (other.status != Status::AT_MEETING || other.mask != f.mask) return &other;
  }
  return nullptr;
}

static void give_up(Finding kind, const Fiber& f, const Fiber* other) {
  report(kind, who(f), other ? who(*other) : Who{});
  state.stopped = true;
}

// All live threads wait: let them pass the barrier, or say why none can go on.
static void release_barrier() {
  const Fiber* first = nullptr;
  int votes = 0;
  for (const Fiber& f : state.fibers) {
    if (f.status == Status::AT_MEETING)
      return give_up(Finding::WARP_DEADLOCK, f, missing_lane(f));
    if (f.status != Status::AT_BARRIER) continue;
    if (!first) first = &f;
    if (f.line != first->line || strcmp(f.file, first->file) != 0)
      return give_up(Finding::BARRIER_DIVERGENCE, f, first);
    // A function that waits, called from two places, or one call that was copied: lines tell.
    if (TRACED && f.pc != first->pc)
      report(Finding::BARRIER_DIVERGENCE, who(f), who(*first));
    votes += f.vote;
  }
  if (TRACED) count_all_requests();
  for (Fiber& f : state.fibers)
    if (f.status == Status::AT_BARRIER) {
      f.status = Status::READY;
      f.vote = votes;
    }
  begin_interval();
  state.barriers++;
}

// Runs the lanes of a warp until all of them wait; how many returned.
static unsigned run_warp(unsigned warp, bool& any) {
  const unsigned first = warp * 32, left = unsigned(state.fibers.size) - first;
  const unsigned lanes = left < 32 ? left : 32;
  unsigned returned = 0;
  for (bool again = true; again;) {
    again = false;
    for (unsigned k = 0; k < lanes; k++) {
      Fiber& f = state.fibers[first + (state.seed & 1 ? lanes - 1 - k : k)];
      if (f.status != Status::READY) continue;
      current = &f;
      state.switches++;
      tcf_emulator_switch(&state.scheduler_stack_pointer, f.stack_pointer);
      if (state.expired && !state.stopped) give_up(Finding::TIME_LIMIT, f, nullptr);
      if (state.stopped) return returned;
      any = again = true;
      returned += f.status == Status::DONE;
    }
    if (TRACED && again) count_requests(warp);
  }
  return returned;
}

// The seed chooses the order of warps, of lanes (odd: the last one first) and of blocks.
static void order_warps(Array<unsigned>& order) {
  order.clear();
  for (unsigned i = 0; i < state.warps.size; i++) order.push(i);
  uint64_t random = state.seed;
  for (unsigned i = unsigned(order.size); state.seed && i > 1; i--) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    const unsigned j = unsigned(random >> 33) % i, moved = order[i - 1];
    order[i - 1] = order[j];
    order[j] = moved;
  }
}

static void run_block(Array<unsigned>& order) {
  start_block();
  order_warps(order);
  for (size_t left = state.fibers.size; left;) {
    bool any = false;
    for (unsigned warp : order) {
      left -= run_warp(warp, any);
      if (state.stopped) return;
    }
    if (left && !any) release_barrier();
    if (state.stopped) return;
  }
  if (TRACED) count_all_requests();
}

int launch(const Call& call, dim3 grid, dim3 block, unsigned shared_bytes) {
  state.call = call;
  state.grid = grid;
  state.block_size = block;
  state.dynamic_bytes = shared_bytes;
  state.stopped = state.expired = false;
  state.busy = true;
  state.first_block = ++state.block + 1;
  const uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  if (!blocks || !threads || threads > 1024 || shared_bytes > MOST_DYNAMIC) {
    report(Finding::LAUNCH, {}, {});
    return 1;
  }
  locate_library();
  if (TRACED) begin_checks();
  Array<unsigned> order;
  {
    Guard guard;
    for (uint64_t i = 0; i < blocks && !state.stopped; i++) {
      const uint64_t j = state.seed & 1 ? blocks - 1 - i : i;
      state.block_index = {unsigned(j % grid.x), unsigned(j / grid.x % grid.y),
                           unsigned(j / grid.x / grid.y)};
      run_block(order);
    }
  }
  order.release();
  current = nullptr;
  if (TRACED) end_checks();
  return state.stopped ? 1 : state.reports.size ? 2 : 0;
}
}  // namespace tcf_emulator
