// Which memory a kernel may touch, and the shadow memory that goes with it.
#include <link.h>

#include "state.hpp"

namespace tcf_emulator {
static __thread volatile char touched;  // so that the loader has made this thread's shared memory

static int locate(dl_phdr_info* info, size_t, void*) {
  const uintptr_t here = reinterpret_cast<uintptr_t>(&locate);
  uintptr_t begin = ~uintptr_t(0), end = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& h = info->dlpi_phdr[i];
    if (h.p_type != PT_LOAD) continue;
    const uintptr_t from = info->dlpi_addr + h.p_vaddr;
    if (from < begin) begin = from;
    if (from + h.p_memsz > end) end = from + h.p_memsz;
  }
  if (here < begin || here >= end) return 0;
  state.image_base = info->dlpi_addr;
  state.image_begin = begin;
  state.image_end = end;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS) {
      state.shared_begin = static_cast<char*>(info->dlpi_tls_data);
      state.shared_end = state.shared_begin + info->dlpi_phdr[i].p_memsz;
    }
  return 1;
}

void locate_library() {
  touched = 1;
  dl_iterate_phdr(locate, nullptr);
}

static void add_shared(char* begin, size_t bytes) {
  Buffer b = {};
  b.begin = reinterpret_cast<uintptr_t>(begin);
  b.end = b.begin + bytes;
  b.flags = SHARED | UNWRITTEN;
  state.buffers.push(b);
}

static void allocate_shadow(Buffer& b) {
  const size_t bytes = b.end - b.begin;
  if (!(b.flags & SHARED) && !b.sectors.size) b.sectors.zeros(bytes / 32 + 2);
  if (b.flags & (READ_ONLY | UNORDERED) || b.writes.size) return;
  b.granule_log2 = 4;
  b.writes.zeros(bytes / 16 + 1);
  b.reads.zeros(bytes / 16 + 1);
}

// Every element 2^shift times.
template <class T>
static void repeat_each(Array<T>& array, uint32_t shift) {
  Array<T> larger;
  larger.zeros(array.size << shift);
  for (size_t i = 0; i < larger.size; i++) larger[i] = array[i >> shift];
  array.release();
  array = larger;
}

// Smaller accesses need smaller cells.  A cell so far stood for its bytes alike.
void refine(Buffer& b, uint32_t granule_log2) {
  const uint32_t shift = b.granule_log2 - granule_log2;
  repeat_each(b.writes, shift);
  repeat_each(b.reads, shift);
  repeat_each(b.atomics, shift);
  b.granule_log2 = granule_log2;
}

void release_shadow(Buffer& b) {
  b.writes.release();
  b.reads.release();
  b.atomics.release();
}

void begin_checks() {
  end_checks();
  for (const Variable& v : state.shared_variables)
    add_shared(state.shared_begin + v.offset, v.bytes);
  if (state.dynamic_bytes) add_shared(tcf_emulator_dynamic, state.dynamic_bytes);
  for (Buffer& b : state.buffers) {
    allocate_shadow(b);
    for (uint8_t& s : b.sectors) s &= READ_EVER | WRITTEN_EVER;
    b.sectors_requested[0] = b.sectors_requested[1] = 0;
  }
}

// Shared memory ends with the launch.
void end_checks() {
  while (state.buffers.size && state.buffers[state.buffers.size - 1].flags & SHARED)
    release_shadow(state.buffers[--state.buffers.size]);
}

int find_buffer(uintptr_t address, const void* pc) {
  static uint16_t hints[256];  // an instruction mostly stays in one buffer
  uint16_t& hint = hints[reinterpret_cast<uintptr_t>(pc) >> 1 & 255];
  const auto holds = [=](const Buffer& b) { return address >= b.begin && address < b.end; };
  if (hint < state.buffers.size && holds(state.buffers[hint])) return hint;
  for (size_t i = 0; i < state.buffers.size; i++)
    if (holds(state.buffers[i])) return hint = uint16_t(i);
  return -1;
}

int nearest_buffer(uintptr_t address) {
  int nearest = -1;
  uintptr_t least = 1 << 20;
  for (size_t i = 0; i < state.buffers.size; i++) {
    const Buffer& b = state.buffers[i];
    const uintptr_t distance = address < b.begin ? b.begin - address : address - b.end;
    if (distance < least) {
      least = distance;
      nearest = int(i);
    }
  }
  return nearest;
}
}  // namespace tcf_emulator
