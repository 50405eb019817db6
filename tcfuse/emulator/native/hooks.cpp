// Every access of a kernel comes here.
//
// Kernels are compiled with -fsanitize=thread, which calls a function (__tsan_read4 and its like)
// before every access, and -fsanitize=bounds, which calls one for an index outside its array.
// Those functions are here; the sanitizers' own libraries are not linked.
#include "state.hpp"

namespace tcf_emulator {
constexpr size_t LONGEST_LOG = 8192;  // accesses of a thread that wait to be counted

static bool on_own_stack(const void* p) {
  const char* stack = state.stacks + current->number * STACK_BYTES;
  return p >= stack && p < stack + STACK_BYTES;
}

static Subject subject_of(uintptr_t a, size_t bytes, Access kind, const void* pc, int number) {
  const bool reads = kind == Access::READ;
  const Finding beyond = reads ? Finding::OUT_OF_BOUNDS_READ : Finding::OUT_OF_BOUNDS_WRITE;
  if (number < 0) {
    const int near = nearest_buffer(a);
    fail(beyond, here(pc), {}, near, near < 0 ? 0 : int64_t(a - state.buffers[near].begin), bytes);
  }
  Buffer& b = state.buffers[number];
  const int64_t offset = int64_t(a - b.begin);
  if (a + bytes > b.end) fail(beyond, here(pc), {}, number, offset, bytes);
  if (!reads && b.flags & READ_ONLY)
    fail(Finding::WRITE_TO_READ_ONLY, here(pc), {}, number, offset, bytes);
  if (a % bytes) fail(Finding::MISALIGNED, here(pc), {}, number, offset, bytes);
  return {b, number, offset, bytes};
}

static void check(uintptr_t a, size_t bytes, Access kind, const void* pc) {
  const int number = find_buffer(a, pc);
  const bool constant = a >= state.image_begin && a + bytes <= state.image_end;
  if (number < 0 && kind == Access::READ && constant) return;  // __constant__, tables
  const Subject s = subject_of(a, bytes, kind, pc, number);
  record({s.offset, in_library(pc), uint16_t(number), uint8_t(bytes), uint8_t(kind)});
  if (s.buffer.writes.size) check_cells(s, kind, in_library(pc));
}

void access(const void* p, size_t bytes, Access kind, const void* pc) {
  if (!current || on_own_stack(p)) return;
  state.busy = true;
  check(reinterpret_cast<uintptr_t>(p), bytes, kind, pc);
  // Others run before the log grows too long; lanes that do the same stop at the same place.
  if (state.logs[current->number].size >= LONGEST_LOG) wait(Status::READY, pc);
  state.busy = false;
  if (state.expired) fail(Finding::TIME_LIMIT, here(pc));
}

// Bytes whose alignment the compiler does not promise: in the largest pieces that are aligned.
static void access_bytes(const void* p, size_t bytes, Access kind, const void* pc) {
  const char* at = static_cast<const char*>(p);
  while (bytes) {
    size_t piece = 16;
    while (piece > bytes || reinterpret_cast<uintptr_t>(at) % piece) piece /= 2;
    access(at, piece, kind, pc);
    at += piece;
    bytes -= piece;
  }
}
}  // namespace tcf_emulator

using tcf_emulator::Access;

extern "C" {
#define HOOKS(bytes)                                                                         \
  void __tsan_read##bytes(void* p) {                                                         \
    tcf_emulator::access(p, bytes, Access::READ, __builtin_return_address(0));               \
  }                                                                                          \
  void __tsan_write##bytes(void* p) {                                                        \
    tcf_emulator::access(p, bytes, Access::WRITE, __builtin_return_address(0));              \
  }                                                                                          \
  void __tsan_unaligned_read##bytes(void* p) {                                               \
    tcf_emulator::access_bytes(p, bytes, Access::READ, __builtin_return_address(0));         \
  }                                                                                          \
  void __tsan_unaligned_write##bytes(void* p) {                                              \
    tcf_emulator::access_bytes(p, bytes, Access::WRITE, __builtin_return_address(0));        \
  }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void* p, size_t bytes) {
  tcf_emulator::access_bytes(p, bytes, Access::READ, __builtin_return_address(0));
}
void __tsan_write_range(void* p, size_t bytes) {
  tcf_emulator::access_bytes(p, bytes, Access::WRITE, __builtin_return_address(0));
}
void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  tcf_emulator::access_bytes(from, bytes, Access::READ, __builtin_return_address(0));
  tcf_emulator::access_bytes(to, bytes, Access::WRITE, __builtin_return_address(0));
  return memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  tcf_emulator::access_bytes(from, bytes, Access::READ, __builtin_return_address(0));
  tcf_emulator::access_bytes(to, bytes, Access::WRITE, __builtin_return_address(0));
  return memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, size_t bytes) {
  tcf_emulator::access_bytes(to, bytes, Access::WRITE, __builtin_return_address(0));
  return memset(to, value, bytes);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}

// An index outside the array it is used on, which may well be memory of the next array.
void __ubsan_handle_out_of_bounds(void*, void*) {
  using namespace tcf_emulator;
  state.busy = true;
  fail(Finding::ARRAY_INDEX, here(__builtin_return_address(0)));
}
}
