"""What this processor can do at most: multiply and add, and move bytes.

Both run beside the kernels, in the same rounds.  The peak is a loop of independent fused
multiply-adds on registers, in vectors of the newest instructions that the processor has.  The
copy moves as many bytes as the kernel has to, half of them read and half written, so that data
that fit into a cache are held against the speed of that cache.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tcfuse.targets.compilers import Level, is_x86, levels
from tcfuse.targets.toolchain import Toolchain, Unit

CHAINS = 12  # as many as hide the latency of two units with five cycles
TURNS = 100_000
NEEDED = {
    "v2": {"sse4_2", "ssse3"},
    "v3": {"avx2", "fma", "f16c"},
    "v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"},
}
PEAK = """
typedef float V __attribute__((vector_size(4 * TCF_LANES)));
extern "C" __attribute__((visibility("default"))) float peak(long turns, float a, float b) {
  V x = {}, y = {}, v[CHAINS] = {};
  x += a; y += b;
  for (int k = 0; k < CHAINS; ++k) v[k] = x + (float)k;
  for (long t = 0; t < turns; ++t) {
    for (int k = 0; k < CHAINS; ++k) v[k] = v[k] * x + y;
    for (int k = 0; k < CHAINS; ++k) __asm__ volatile("" : "+" REGISTER(v[k]));
  }
  V sum = {};
  for (int k = 0; k < CHAINS; ++k) sum += v[k];
  return sum[0];
}
"""


@dataclass(frozen=True)
class Peak:
    """A call that does a known number of operations.

    Attributes:
        flops: Additions and multiplications in one call.
    """

    call: Callable[[], object]
    flops: int
    level: str


def newest_level() -> Level:
    """The newest instruction set kernels are compiled for that this processor has."""
    cpuinfo = Path("/proc/cpuinfo")
    if not is_x86(platform.machine()) or not cpuinfo.exists():
        return levels()[0]
    flags = set(cpuinfo.read_text(encoding="utf-8").split())
    return [level for level in levels() if NEEDED[level.name] <= flags][-1]


def measure_peak(folder: Path) -> Peak:
    """The loop of multiply-adds, compiled into ``folder``."""
    level = newest_level()
    register = '"v"' if is_x86(platform.machine()) else '"w"'
    text = PEAK.replace("CHAINS", str(CHAINS)).replace("REGISTER(", f"{register} (")
    toolchain = Toolchain.default()
    library = folder / "peak.so"
    toolchain.link(toolchain.compile([Unit("peak.cpp", text, level)]), library)
    function = ctypes.CDLL(str(library)).peak
    function.argtypes = (ctypes.c_long, ctypes.c_float, ctypes.c_float)
    function.restype = ctypes.c_float
    flops = 2 * CHAINS * level.lanes * TURNS
    return Peak(lambda: function(TURNS, 0.5, 0.25), flops, level.name)


def copying(n_bytes: int) -> Callable[[], object]:
    """A call that reads half of ``n_bytes`` and writes as many."""
    source = np.ones(max(n_bytes // 8, 1), np.float32)
    target = np.empty_like(source)
    return lambda: np.copyto(target, source)


def processor() -> str:
    """The processor's name."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
