// See guard.hpp.
#include "guard.hpp"

#include <ucontext.h>

#include "state.hpp"

namespace tcf_emulator {
alignas(16) static char handler_stack[64 << 10];  // a fiber's own may be what overflowed

static const void* interrupted_at(void* context) {
  const auto* c = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  const uintptr_t pc = uintptr_t(c->uc_mcontext.gregs[16]);  // REG_RIP
#else
  const uintptr_t pc = uintptr_t(c->uc_mcontext.pc);
#endif
  if (pc < state.image_begin || pc >= state.image_end) return nullptr;
  return reinterpret_cast<const void*>(pc + 1);  // as if it were the address of a return
}

// Whether an address is just below the stacks, where the lowest one overflows to.
static bool is_below_stacks(const void* address) {
  const uintptr_t distance = uintptr_t(state.stacks) - uintptr_t(address);
  return distance - 1 < 8 * STACK_BYTES;
}

static void handle(int signal, siginfo_t* info, void* context) {
  if (signal == SIGURG) {
    // A thread that reads, writes or waits is stopped there.  When the signal comes again, the
    // kernel does nothing of the kind.
    if (state.expired && !state.busy) fail(Finding::TIME_LIMIT, here(interrupted_at(context)));
    state.expired = true;
    return;
  }
  if (state.busy || !current) {  // not the kernel's fault
    ::signal(signal, SIG_DFL);
    return;
  }
  const bool address = signal == SIGSEGV || signal == SIGBUS;
  const bool stack = address && is_below_stacks(info->si_addr);
  fail(stack     ? Finding::STACK_OVERFLOW
       : address ? Finding::SEGMENTATION_FAULT
                 : Finding::ARITHMETIC_FAULT,
       here(interrupted_at(context)));
}

Guard::Guard() {
  stack_t stack = {};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof handler_stack;
  sigaltstack(&stack, &stack_before_);
  struct sigaction action = {};
  action.sa_sigaction = handle;
  // A handler that ends the launch never returns: its signal must not stay blocked.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int i = 0; i < COUNT; i++) sigaction(SIGNALS[i], &action, &before_[i]);
}

Guard::~Guard() {
  for (int i = 0; i < COUNT; i++) sigaction(SIGNALS[i], &before_[i], nullptr);
  sigaltstack(&stack_before_, nullptr);
}
}  // namespace tcf_emulator
