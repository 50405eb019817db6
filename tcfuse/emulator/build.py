"""CUDA C++ to a library that runs it: the exact text, compiled as C++ with CUDA's words given.

Two builds of one text.  The fast one is for values.  The traced one calls the emulator before
every access (``-fsanitize=thread`` without its run-time library), and keeps every loop a loop,
so that an access in the text is an access that is counted.
"""

from __future__ import annotations

import platform
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from tcfuse.codegen.device import device_header
from tcfuse.debug import cache_dir, current
from tcfuse.store import key_of
from tcfuse.targets.compilers import is_x86, run
from tcfuse.targets.toolchain import Toolchain

DEVICE_HEADER = "tcf_device.hpp"
COMMON = (
    "-x",
    "c++",
    "-std=c++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffreestanding",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-fno-stack-protector",
    "-fwrapv",
    "-w",
)
FAST = ("-O2", "-g0")
TRACED = ("-O1", "-fsanitize=bounds", "-DTCF_EMULATOR_TRACE")
# Line tables with the calls that were inlined, and nothing else of what a debugger reads.
CLANG = (
    *(
        "-Xclang",
        "-fsanitize=thread",
    ),  # past the driver: zig's builds the run-time library first
    "-gline-tables-only",
    "-gdwarf-4",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-fno-unroll-loops",
    *("-mllvm", "-tsan-instrument-func-entry-exit=0"),
    *("-mllvm", "-tsan-instrument-read-before-write=1"),
)
GCC = (
    "-fsanitize=thread",
    "-g1",
    "-gdwarf-4",
    "-fno-tree-vectorize",
    "-fno-tree-loop-distribute-patterns",
    "--param=tsan-instrument-func-entry-exit=0",
)
# What the library needs of the C library is found in the process that loads it.
LINK = ("-shared", "-nostdlib", "-Wl,-z,undefs", "-Wl,--build-id=none")

_DYNAMIC = re.compile(r"extern\s+__shared__\s+([^;\[\]]*?)(\w+)\s*\[\s*\]\s*;")
_ALIGNMENT = re.compile(r"(?:__align__|alignas)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)")


@dataclass(frozen=True, slots=True)
class Build:
    """What is compiled.

    Attributes:
        texts: CUDA C++; they become one translation unit, so their names must differ.
        symbols: The ``extern "C" __global__`` functions that will be launched.
        traced: Whether accesses are checked and counted.
        contract: Whether a multiplication and an addition may be fused.
        headers: Text of every header that the texts include, by name.
    """

    texts: tuple[str, ...]
    symbols: tuple[str, ...]
    traced: bool
    contract: bool = True
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        texts: str | Sequence[str],
        symbols: Sequence[str],
        *,
        traced: bool,
        contract: bool,
    ) -> Build:
        """The build of some texts, with the device library when one includes it."""
        several = (texts,) if isinstance(texts, str) else tuple(texts)
        included = any(DEVICE_HEADER in text for text in several)
        headers = ((DEVICE_HEADER, device_header()),) if included else ()
        return cls(several, tuple(symbols), traced, contract, headers)

    @property
    def files(self) -> tuple[str, ...]:
        """What reports call each text."""
        if len(self.texts) == 1:
            return ("kernel.cu",)
        return tuple(f"kernel_{number}.cu" for number in range(len(self.texts)))

    @property
    def source(self) -> str:
        """The translation unit."""
        parts = ['#include "surface.hpp"']
        for name, text in zip(self.files, self.texts, strict=True):
            parts += [f'#line 1 "{name}"', with_dynamic_shared(text)]
        parts += [f"TCF_EMULATED_KERNEL({symbol})" for symbol in self.symbols]
        return "\n".join(parts) + "\n"


def with_dynamic_shared(text: str) -> str:
    """``text`` with its arrays of dynamic shared memory as other names of where that is.

    C++ has no word for ``extern __shared__ T name[]``; lines keep their numbers.
    """

    def declared(match: re.Match[str]) -> str:
        element = _ALIGNMENT.sub("", match[1]).strip()
        lines = "\n" * match[0].count("\n")
        return f"extern {element} {match[2]}[] TCF_EMULATED_DYNAMIC;{lines}"

    return _DYNAMIC.sub(declared, text)


def library(build: Build, toolchain: Toolchain | None = None) -> bytes:
    """The shared library of a build, from the cache of objects or compiled.

    Raises:
        ToolchainError: There is no compiler, or a text does not compile.
    """
    if toolchain is None:
        toolchain = Toolchain.default(cache_dir(), current().cxx)
    native = _native_files()
    headers = {**native, **dict(build.headers)}
    flags = _flags(toolchain, traced=build.traced)
    contract = f"-ffp-contract={'fast' if build.contract else 'off'}"
    objects = (
        _compiled(toolchain, (*flags, contract), build.source, headers),
        _compiled(toolchain, _runtime_flags(toolchain, build.traced), "runtime.cpp", native),
    )
    key = key_of("emulator", LINK, toolchain.compiler, *objects)
    return _cached(toolchain, key, lambda folder: _linked(toolchain, objects, folder))


def _compiled(
    toolchain: Toolchain, flags: Sequence[str], source: str, headers: Mapping[str, str]
) -> bytes:
    """The object of one translation unit: a text, or the name of one of the headers."""
    text = headers.get(source, source)

    def compiled(folder: Path) -> Path:
        for name, header in headers.items():
            folder.joinpath(name).write_text(header, encoding="utf-8")
        unit = folder / "unit.cpp"
        unit.write_text(text, encoding="utf-8")
        made = folder / "unit.o"
        _run(toolchain, (*flags, "-I", str(folder), "-c", str(unit), "-o", str(made)), folder)
        return made

    key = key_of("emulator", text, flags, toolchain.compiler, *map(str, headers.items()))
    return _cached(toolchain, key, compiled)


def _linked(toolchain: Toolchain, objects: Sequence[bytes], folder: Path) -> Path:
    """The library of some objects.  The kernels' comes first: so do its shared variables."""
    paths = [folder / f"{number}.o" for number in range(len(objects))]
    for path, data in zip(paths, objects, strict=True):
        path.write_bytes(data)
    made = folder / "library.so"
    _run(toolchain, (*LINK, *map(str, paths), "-o", str(made)), folder)
    return made


def _cached(toolchain: Toolchain, key: str, make: Callable[[Path], Path]) -> bytes:
    """A file's bytes from the cache, or made in a folder of its own."""
    if toolchain.cache is not None and (found := toolchain.cache.get(key)) is not None:
        return found
    with tempfile.TemporaryDirectory(prefix="tcfuse-emulator-") as folder:
        data = make(Path(folder)).read_bytes()
    if toolchain.cache is not None:
        toolchain.cache.put(key, data)
    return data


def _run(toolchain: Toolchain, arguments: Sequence[str], folder: Path) -> None:
    """Run the compiler; zig gets cache folders of its own, so it shares none."""
    compiler = toolchain.compiler
    scopes = ("GLOBAL", "LOCAL") if compiler.kind == "zig" else ()
    run(
        (*compiler.argv, *arguments),
        {f"ZIG_{scope}_CACHE_DIR": str(folder / "zig") for scope in scopes},
    )


def _flags(toolchain: Toolchain, *, traced: bool) -> tuple[str, ...]:
    """How kernels are compiled."""
    kind = toolchain.compiler.kind
    zig = ("-fno-sanitize=undefined",) if kind == "zig" else ()
    if not traced:
        return (*COMMON, *zig, *_march(kind), *FAST)
    return (*COMMON, *zig, *_march(kind), *TRACED, *(GCC if kind == "gcc" else CLANG))


def _runtime_flags(toolchain: Toolchain, traced: bool) -> tuple[str, ...]:
    """How the emulator itself is compiled."""
    zig = ("-fno-sanitize=undefined",) if toolchain.compiler.kind == "zig" else ()
    return (*COMMON, *zig, "-O2", "-g0", *(("-DTCF_EMULATOR_TRACE",) if traced else ()))


def _march(kind: str) -> tuple[str, ...]:
    """Fused multiplication and addition in one instruction, where this machine has it."""
    if not is_x86(platform.machine()) or not _has_fma():
        return ()
    return ("-march=x86_64_v3" if kind == "zig" else "-march=x86-64-v3",)


@cache
def _has_fma() -> bool:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return {"fma", "avx2", "bmi2"} <= set(text.split())


@cache
def _native_files() -> dict[str, str]:
    """The emulator's own C++, by file name."""
    folder = resources.files("tcfuse.emulator").joinpath("native")
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith((".hpp", ".cpp"))
    }
