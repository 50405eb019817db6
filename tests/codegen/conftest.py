"""Kernel text compiled for the levels this machine runs."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from tcfuse.codegen.mathlib import prelude
from tcfuse.errors import ToolchainError
from tcfuse.targets.compilers import Level, is_x86, levels
from tcfuse.targets.toolchain import Toolchain, Unit

NEEDED = {
    "v2": {"sse4_1", "sse4_2", "ssse3"},
    "v3": {"avx2", "fma", "f16c"},
    "v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"},
}

Build = Callable[[str, str], ctypes.CDLL]


def runnable() -> list[Level]:
    """The levels whose instructions this processor has."""
    if not is_x86(platform.machine()):
        return list(levels())
    cpuinfo = Path("/proc/cpuinfo")
    flags = set(cpuinfo.read_text().split()) if cpuinfo.exists() else NEEDED["v2"]
    return [level for level in levels() if NEEDED[level.name] <= flags]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory, private_cache: Path) -> Build:
    """``build(text, level)`` is the library of the math library and ``text``, once compiled."""
    try:
        toolchain = Toolchain.default(private_cache)
    except ToolchainError as error:
        pytest.skip(f"no compiler: {error}")
    made: dict[tuple[str, str], ctypes.CDLL] = {}

    def make(text: str, name: str) -> ctypes.CDLL:
        if (text, name) in made:
            return made[text, name]
        if all(level.name != name for level in runnable()):
            pytest.skip(f"this processor does not run level {name}")
        units = [Unit("test.cpp", prelude() + text, level) for level in runnable()]
        for level, data in zip(runnable(), toolchain.compile(units), strict=True):
            path = tmp_path_factory.mktemp("mathlib") / f"{level.name}.so"
            toolchain.link([data], path)  # which fails when a symbol is missing
            made[text, level.name] = ctypes.CDLL(str(path))
        return made[text, name]

    return make
