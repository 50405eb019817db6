// What the parts of the emulator share.  There is one of everything: a library runs one launch
// at a time, on one thread of the operating system.
#pragma once
#include "containers.hpp"
#include "surface.hpp"

namespace tcf_emulator {
// ---- threads

enum class Status : uint8_t { READY, AT_BARRIER, AT_MEETING, DONE };

struct Fiber {
  uint3 index;
  unsigned number, warp, lane;
  Status status;
  void* stack_pointer;
  const void* pc;       // where it waits, or where its last access was
  const char* file;     // of the barrier it waits at
  int line;
  int vote;             // given to the barrier; then the block's answer
  Operation operation;  // of the meeting it waits at
  unsigned mask, source;
  uint64_t value;       // given to the meeting; then its answer
};

// Lanes are ordered by barriers and by __syncwarp.  clock[l][l] counts the __syncwarp of lane l;
// clock[l][k] is up to which of its own lane l has waited for lane k.
struct Warp {
  unsigned live, waiting;  // lanes that have not returned; those of them AT_MEETING
  uint32_t clock[32][32];
};

// ---- memory

struct Place {  // an access by a thread, as shadow memory keeps it
  uint32_t block, interval, clock, pc;
  uint16_t thread;
};
// Accesses of one granule that need no order among themselves: reads, or atomic operations.
struct Sharers {
  Place first, second;  // second: of another warp than first, in the same interval
  Place foreign;        // of an earlier block of the launch
  uint32_t lanes;       // which of first's warp, when several: 1 + index of a WarpSharers
};
struct WarpSharers {
  uint32_t mask, clock[32], pc[32];
};

enum BufferFlags : uint32_t {
  READ_ONLY = 1,
  UNWRITTEN = 2,   // what it holds at first means nothing
  UNORDERED = 4,   // any thread may store there at any time
  SHARED = 8,
};
struct Variable { size_t offset, bytes; };  // in static shared memory
enum SectorFlags : uint8_t { READ_NOW = 1, WRITTEN_NOW = 2, READ_EVER = 4, WRITTEN_EVER = 8 };

struct Buffer {
  uintptr_t begin, end;
  uint32_t flags;
  uint32_t granule_log2;  // of the bytes of one shadow cell: what accesses so far allow
  Array<Place> writes;
  Array<Sharers> reads;
  Array<Sharers> atomics;  // none until there is one
  Array<uint8_t> sectors;  // of 32 bytes
  uint64_t sectors_requested[2];  // by reads and by writes
};

// ---- what comes out; native_interface.py and report.py have the same layouts and numbers

enum class Finding : uint32_t {
  RACE_WRITE_WRITE, RACE_READ_AFTER_WRITE, RACE_WRITE_AFTER_READ, UNINITIALISED,
  OUT_OF_BOUNDS_READ, OUT_OF_BOUNDS_WRITE, WRITE_TO_READ_ONLY, MISALIGNED,
  ARRAY_INDEX, BARRIER_DIVERGENCE, WARP_DIVERGENCE, WARP_DEADLOCK, LANE_OUTSIDE_MASK,
  SEGMENTATION_FAULT, ARITHMETIC_FAULT, STACK_OVERFLOW, TIME_LIMIT, LAUNCH,
};
struct Who {
  uint64_t pc;       // address in the library; 0: nobody
  const char* file;  // of the barrier where it waits
  uint32_t line, block[3], thread[3];
};
struct Report {
  Finding kind;
  int32_t buffer;  // -1: none
  int64_t offset;  // from its beginning
  uint64_t bytes, count;
  Who who, other;  // other.pc is 0 when there is none
};
struct Site {
  uint64_t pc;
  uint32_t shared, kind, bytes;
  int32_t buffer;
  uint64_t requests, lanes, transactions, ideal;
};

struct Logged {  // one access, until the lanes of its warp have all got as far
  int64_t offset;
  uint32_t pc;
  uint16_t buffer;
  uint8_t bytes, kind;
};

struct State {
  // launch
  Call call;
  dim3 grid, block_size;
  uint32_t seed;
  bool stopped;
  volatile bool busy;     // the emulator itself runs, not the kernel
  volatile bool expired;  // the time limit has passed
  // scheduler
  Array<Fiber> fibers;
  Array<Warp> warps;
  void* scheduler_stack_pointer;
  char* stacks;
  size_t stack_count;
  uint64_t switches, barriers, blocks;
  // memory
  char *shared_begin, *shared_end;  // static shared memory of this library
  uint32_t dynamic_bytes;
  uintptr_t image_base, image_begin, image_end;
  // Numbers that are never used again: of the running block, of the first one of the launch, of
  // the stretch between two barriers.
  uint32_t block, first_block, interval;
  uint3 block_index;
  Array<Buffer> buffers;  // of the caller, then those in shared memory
  Array<Variable> shared_variables;
  Array<WarpSharers> warp_sharers;
  Array<Array<Logged>> logs;  // of each fiber
  Array<Report> reports;
  Index report_index;
  Array<Site> sites;
  Index site_index;
};
extern State state;
extern Fiber* current;

#ifdef TCF_EMULATOR_TRACE
constexpr bool TRACED = true;
#else
constexpr bool TRACED = false;
#endif
constexpr size_t STACK_BYTES = 128 << 10;
constexpr size_t MOST_DYNAMIC = 256 << 10;

inline uint32_t in_library(const void* pc) {
  return pc ? uint32_t(reinterpret_cast<uintptr_t>(pc) - state.image_base) : 0;
}

// scheduler.cpp
void wait(Status, const void* pc);
[[noreturn]] void stop();  // ends the launch; its threads are dropped
void release_stacks();
// meeting.cpp
void complete_meetings(unsigned warp);
uint32_t own_clock();
bool lane_is_ordered(unsigned lane, uint32_t clock);  // before the running thread, in its warp
// memory.cpp
void locate_library();
void begin_checks();
void end_checks();
void refine(Buffer&, uint32_t granule_log2);
void release_shadow(Buffer&);
int find_buffer(uintptr_t address, const void* pc);  // -1: none
int nearest_buffer(uintptr_t address);
// checker.cpp
struct Subject { Buffer& buffer; int number; int64_t offset; size_t bytes; };
void begin_interval();
void check_cells(const Subject&, Access, uint32_t pc);
// counters.cpp
void prepare_logs(size_t threads);
void record(const Logged&);
void count_requests(unsigned warp);
void count_all_requests();
void release_logs();
// report.cpp
Who here(const void* pc);
Who where(uint32_t block, uint32_t thread, uint32_t pc);
Who who(const Fiber&);
void report(Finding, const Who&, const Who& other, int buffer = -1, int64_t offset = 0,
            uint64_t bytes = 0);
[[noreturn]] void fail(Finding, const Who&, const Who& other = {}, int buffer = -1,
                       int64_t offset = 0, uint64_t bytes = 0);
}  // namespace tcf_emulator
