// While a launch runs, what would end the process ends the launch instead: bad addresses, traps
// of arithmetic, and a kernel that never ends (SIGURG says that its time is over).
#pragma once
#include <signal.h>

namespace tcf_emulator {
class Guard {
 public:
  Guard();
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  static constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGURG};
  static constexpr int COUNT = sizeof(SIGNALS) / sizeof(*SIGNALS);
  struct sigaction before_[COUNT];
  stack_t stack_before_;
};
}  // namespace tcf_emulator
