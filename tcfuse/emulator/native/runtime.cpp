// The emulator, as one translation unit: it is compiled once for each compiler, then kept.
#include "checker.cpp"
#include "counters.cpp"
#include "guard.cpp"
#include "hooks.cpp"
#include "meeting.cpp"
#include "memory.cpp"
#include "report.cpp"
#include "scheduler.cpp"

extern "C" {
alignas(1024) char tcf_emulator_dynamic[tcf_emulator::MOST_DYNAMIC];
}
