// What CUDA C++ takes for granted, for a C++ compiler: included before a kernel's text.
//
// The threads of a block are fibers on one thread of the operating system; blocks run one after
// the other.  Whatever here waits or touches memory is a real call (never inlined), so that its
// return address lies in the kernel: that is how source lines are found.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define TCF_EMULATED 1
#define TCF_EMULATED_CALL __attribute__((noinline, visibility("hidden")))
// Calls that stay as many as in the text, for the sake of their lines.
#ifdef __clang__
#define TCF_EMULATED_UNMERGED __attribute__((nomerge))
#else
#define TCF_EMULATED_UNMERGED
#endif
// A function whose own accesses are not the kernel's.
#define TCF_EMULATED_OWN __attribute__((noinline, no_sanitize("thread")))
#ifdef TCF_EMULATOR_TRACE
#define TCF_EMULATED_ACCESS(p, bytes, kind) \
  tcf_emulator::access(p, bytes, tcf_emulator::Access::kind, __builtin_return_address(0))
#else
#define TCF_EMULATED_ACCESS(p, bytes, kind) (void)0
#endif

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

namespace tcf_emulator {
constexpr unsigned ALL_LANES = ~0u;

enum class Operation : uint8_t { SYNC, SHUFFLE, BALLOT, MATRIX };

// They do not change while a thread runs, so the compiler may ask once.
TCF_EMULATED_CALL __attribute__((const)) uint3 thread_index();
TCF_EMULATED_CALL __attribute__((const)) uint3 block_index();
TCF_EMULATED_CALL __attribute__((const)) dim3 block_size();
TCF_EMULATED_CALL __attribute__((const)) dim3 grid_size();
TCF_EMULATED_CALL __attribute__((const)) unsigned lane_index();

// The barrier a thread waits at is known by its place in the source, since the optimiser copies
// and merges calls.  Returns how many threads gave a `vote` other than 0.
TCF_EMULATED_CALL TCF_EMULATED_UNMERGED int barrier(const char* file, int line, int vote);

// Wait for the lanes of `mask` in an operation of the same kind.
// SHUFFLE: the value that lane `source` gave; all bits set when that lane is not there.
// BALLOT: the lanes whose value is not 0.  MATRIX: the caller's own value; given_by tells those
// of other lanes until they next meet.
TCF_EMULATED_CALL TCF_EMULATED_UNMERGED uint64_t meet(Operation, unsigned mask,
                                                      uint64_t value, unsigned source);
TCF_EMULATED_CALL uint64_t given_by(unsigned lane);

// Check and count an access of the kernel at `pc`; only traced builds have it.
enum class Access : uint8_t { READ, WRITE, ATOMIC };
TCF_EMULATED_CALL void access(const void* p, size_t bytes, Access, const void* pc);

// Run a kernel; `arguments` points to the values of its parameters, as for cuLaunchKernel.
struct Call { void (*invoke)(const Call&); void* kernel; void** arguments; };
TCF_EMULATED_CALL int launch(const Call&, dim3 grid, dim3 block, unsigned shared_bytes);

template <class... P>
struct Invocation {
  // Braces evaluate from left to right, which the arguments of a call do not.
  TCF_EMULATED_OWN Invocation(void (*kernel)(P...), P... values) { kernel(values...); }
  TCF_EMULATED_OWN static void invoke(const Call& call) {
    int next = 0;
    (void)next;
    Invocation{reinterpret_cast<void (*)(P...)>(call.kernel),
               *static_cast<P*>(call.arguments[next++])...};
  }
};
}  // namespace tcf_emulator

// Dynamic shared memory of the running block, and what makes an array another name of it.
extern "C" __attribute__((visibility("hidden"))) char tcf_emulator_dynamic[];
#define TCF_EMULATED_DYNAMIC __asm__("tcf_emulator_dynamic") __attribute__((visibility("hidden")))

#define __global__
#define __device__
#define __host__
#define __constant__ static
// Thread-local storage is the one kind of static memory whose bounds the loader tells and which
// templates may define as well.
#define __shared__ static __thread
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define threadIdx (tcf_emulator::thread_index())
#define blockIdx (tcf_emulator::block_index())
#define blockDim (tcf_emulator::block_size())
#define gridDim (tcf_emulator::grid_size())
#define warpSize 32
#define __CUDA_ARCH__ 900
#define __CUDACC__ 1

inline __attribute__((always_inline)) void __syncthreads(
    const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tcf_emulator::barrier(file, line, 0);
}
inline __attribute__((always_inline)) int __syncthreads_count(
    int vote, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return tcf_emulator::barrier(file, line, vote != 0);
}
inline __attribute__((always_inline)) int __syncthreads_or(
    int vote, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return tcf_emulator::barrier(file, line, vote != 0) != 0;
}
inline __attribute__((always_inline)) int __syncthreads_and(
    int vote, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return tcf_emulator::barrier(file, line, vote == 0) == 0;
}
// One thread of the operating system: memory is always consistent.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

#include "warp.hpp"
#include "vectors.hpp"
#include "intrinsics.hpp"
#include "matrix.hpp"

#define TCF_EMULATED_KERNEL(kernel)                                                             \
  extern "C" __attribute__((visibility("default"))) int tcf_emulate_##kernel(                   \
      unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,             \
      unsigned shared_bytes, void** arguments) {                                                \
    return tcf_emulator::start(kernel, dim3(gx, gy, gz), dim3(bx, by, bz), shared_bytes,        \
                               arguments);                                                      \
  }

namespace tcf_emulator {
template <class... P>
inline int start(void (*kernel)(P...), dim3 grid, dim3 block, unsigned shared_bytes,
                 void** arguments) {
  const Call call{&Invocation<P...>::invoke, reinterpret_cast<void*>(kernel), arguments};
  return launch(call, grid, block, shared_bytes);
}
}  // namespace tcf_emulator
