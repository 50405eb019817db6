"""Kernel text compiled for the levels this machine runs."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from tcfuse.codegen.device import device_header
from tcfuse.codegen.mathlib import prelude
from tcfuse.errors import ToolchainError
from tcfuse.targets.compilers import Level, is_x86, levels
from tcfuse.targets.toolchain import Toolchain, Unit

NEEDED = {
    "v2": {"sse4_1", "sse4_2", "ssse3"},
    "v3": {"avx2", "fma", "f16c"},
    "v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"},
}

DEVICE = "device"  # what `build` calls the device library
UNCONTRACTED = "uncontracted"  # and the CPU's, fusing only where the library says so
CUDA_WORDS = """
#define TCF_EMULATED 1
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
namespace tcf_emulator {
template <class W> static W read(const W* p) { return *p; }
template <class W> static void write(W* p, W word) { *p = word; }
}
static struct { unsigned x; } threadIdx;
template <class T> T __shfl_xor_sync(unsigned, T v, int, int) { return v; }
template <class T> T __shfl_sync(unsigned, T v, int, int) { return v; }
static int __any_sync(unsigned, int p) { return p; }
static int __all_sync(unsigned, int p) { return p; }
static void __syncwarp(unsigned) {}
static void __syncthreads() {}
static int __syncthreads_or(int p) { return p; }
static int __syncthreads_and(int p) { return p; }
"""  # enough for one thread at a time

Build = Callable[[str, str], ctypes.CDLL]


def runnable() -> list[Level]:
    """The levels whose instructions this processor has."""
    if not is_x86(platform.machine()):
        return list(levels())
    cpuinfo = Path("/proc/cpuinfo")
    flags = set(cpuinfo.read_text().split()) if cpuinfo.exists() else NEEDED["v2"]
    return [level for level in levels() if NEEDED[level.name] <= flags]


def fused() -> Level:
    """The first level with fused multiplication and addition that runs here."""
    for level in runnable():
        if level.name not in ("v2", "baseline"):
            return level
    pytest.skip("this processor has no fused multiplication and addition")


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory, private_cache: Path) -> Build:
    """``build(text, level)`` is the library of the math library and ``text``, once compiled.

    The device library fuses where the math library does if there is the instruction: so it and
    what it is compared with are compiled for a level that has it.
    """
    try:
        toolchain = Toolchain.default(private_cache)
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    made: dict[tuple[str, str], ctypes.CDLL] = {}

    def make(text: str, name: str) -> ctypes.CDLL:
        if (text, name) in made:
            return made[text, name]
        if name in (DEVICE, UNCONTRACTED):
            library = CUDA_WORDS + device_header() if name == DEVICE else prelude()
            units = {name: Unit("test.cpp", library + text, fused(), contract="off")}
        elif any(level.name == name for level in runnable()):
            units = {x.name: Unit("test.cpp", prelude() + text, x) for x in runnable()}
        else:
            pytest.skip(f"this processor does not run level {name}")
        for key, data in zip(units, toolchain.compile(list(units.values())), strict=True):
            path = tmp_path_factory.mktemp("mathlib") / f"{key}.so"
            toolchain.link([data], path)  # which fails when a symbol is missing
            made[text, key] = ctypes.CDLL(str(path))
        return made[text, name]

    return make
