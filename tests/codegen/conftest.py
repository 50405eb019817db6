"""Kernel text compiled for the levels this machine runs."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from tcfuse import emulator
from tcfuse.codegen.device import device_header
from tcfuse.codegen.prelude import kernel_prelude
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
            library, include = kernel_prelude(), None
            if name == DEVICE:  # whose functions of one thread need nothing but the words
                include = Path(emulator.__path__[0]) / "native"
                library = '#include "surface.hpp"\n' + device_header()
            unit = Unit("test.cpp", library + text, fused(), contract="off", include=include)
            units = {name: unit}
        elif any(level.name == name for level in runnable()):
            units = {x.name: Unit("test.cpp", kernel_prelude() + text, x) for x in runnable()}
        else:
            pytest.skip(f"this processor does not run level {name}")
        for key, data in zip(units, toolchain.compile(list(units.values())), strict=True):
            path = tmp_path_factory.mktemp("mathlib") / f"{key}.so"
            toolchain.link([data], path)  # which fails when a symbol is missing
            made[text, key] = ctypes.CDLL(str(path))
        return made[text, name]

    return make
