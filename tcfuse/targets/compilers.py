"""Which C++ compiler turns kernels into machine code: zig from PyPI, or the system's.

Kernels need C++17 and GNU vector extensions (a vector ternary, ``__builtin_convertvector``); a
system compiler counts only after it has compiled a probe that uses them.
"""

from __future__ import annotations

import functools
import importlib.util
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tcfuse.debug import environment
from tcfuse.errors import ToolchainError

SYSTEM_COMPILERS = ("c++", "g++", "clang++")
TIMEOUT_S = 600

PROBE = """
typedef float F __attribute__((vector_size(16)));
typedef int I __attribute__((vector_size(16)));
F choose(F a, F b) {
  if constexpr (sizeof(F) == 16) return a < b ? a : __builtin_convertvector((I)b, F);
}
"""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler.

    Attributes:
        kind: ``zig``, ``gcc`` or ``clang``: how its flags are spelled.
        argv: The command that the flags follow.
        version: Part of every cache key.
    """

    kind: str
    argv: tuple[str, ...]
    version: str

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"


@dataclass(frozen=True, slots=True)
class Level:
    """An instruction set that kernels are compiled for.

    Attributes:
        name: Also what ``tcfuse.level`` and the symbols call it.
        position: Its place in the operator shell's table.
        number: ``TCF_LEVEL`` in the source.
        lanes: Floats in a vector register, ``TCF_LANES`` in the source.
        march: What ``-march=`` names it, in gcc's spelling; empty for the machine's baseline.
        registers: Vector registers, at least.
    """

    name: str
    position: int
    number: int
    lanes: int
    march: str
    registers: int = 16


X86_LEVELS = (
    Level("v2", 0, 2, 4, "x86-64-v2"),
    Level("v3", 1, 3, 8, "x86-64-v3"),
    Level("v4", 2, 4, 16, "x86-64-v4", 32),
)
X86_BASELINE = Level("baseline", 0, 1, 4, "x86-64")
OTHER_LEVELS = (Level("base", 0, 0, 4, "", 32),)


def is_x86(machine: str) -> bool:
    """Whether ``machine`` (as ``platform.machine()`` names it) is x86-64."""
    return machine.lower() in ("x86_64", "amd64")


def levels(machine: str | None = None) -> tuple[Level, ...]:
    """The levels kernels are compiled for on a machine; this one when none is named."""
    return X86_LEVELS if is_x86(machine or platform.machine()) else OTHER_LEVELS


def baseline(machine: str | None = None) -> Level:
    """What every machine of the architecture runs; the operator shell is compiled for it."""
    return X86_BASELINE if is_x86(machine or platform.machine()) else OTHER_LEVELS[0]


def find_compiler(wanted: str | None = None) -> Compiler:
    """The compiler to use: the one wanted, else zig when installed, else the system's.

    Args:
        wanted: ``zig``, or the command of a C++ compiler.

    Raises:
        ToolchainError: There is none, or the one wanted cannot be used.
    """
    if wanted not in (None, "", "zig"):
        return _probed(tuple(shlex.split(wanted)))
    if (zig := find_zig()) is not None:
        return zig
    if wanted == "zig":
        raise ToolchainError("zig is not installed; pip install ziglang")
    if found := system_compilers():
        return found[0]
    raise ToolchainError("no C++ compiler was found; pip install ziglang, or install g++ 12")


def find_zig() -> Compiler | None:
    """The zig of the PyPI package ``ziglang``; ``None`` when that is not installed."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    # The program beside the package starts faster than `python -m ziglang`, which execs it.
    program = Path(spec.origin).parent / "zig"
    command = (str(program),) if program.is_file() else (sys.executable, "-m", "ziglang")
    return Compiler("zig", (*command, "c++"), metadata.version("ziglang"))


def system_compilers() -> tuple[Compiler, ...]:
    """Every usable compiler on PATH."""
    found: dict[str, Compiler] = {}
    for name in SYSTEM_COMPILERS:
        if (path := shutil.which(name)) is None:
            continue
        try:
            found.setdefault(str(Path(path).resolve()), _probed((path,)))
        except ToolchainError:
            continue
    return tuple(found.values())


@functools.lru_cache(maxsize=16)
def _probed(command: tuple[str, ...]) -> Compiler:
    """The compiler behind ``command``, after it has compiled the probe."""
    banner = run((*command, "--version")).splitlines() or [""]
    kind = "clang" if "clang" in banner[0].lower() else "gcc"
    if Path(command[0]).name.startswith("zig"):
        kind = "zig"
    march = "x86_64_v3" if kind == "zig" else "x86-64-v3"
    flags = ["-x", "c++", "-std=c++17", "-ffreestanding"]
    flags += [f"-march={march}"] if is_x86(platform.machine()) else []
    with tempfile.TemporaryDirectory(prefix="tcfuse-probe-") as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(PROBE, encoding="utf-8")
        run((*command, *flags, "-c", str(source), "-o", str(source.with_suffix(".o"))))
    return Compiler(kind, command, banner[0].strip())


def run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """What a command prints on standard output.

    Args:
        command: Program and arguments.
        variables: What the command finds in its environment besides ours.

    Raises:
        ToolchainError: It is missing, fails, or runs for more than ten minutes.
    """
    given = [f"{name}={value}" for name, value in (variables or {}).items()]
    shown = shlex.join(("env", *given, *command) if given else command)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
            env=environment(variables or {}),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"{command[0]} cannot be run: {error}", shown) from error
    if done.returncode != 0:
        first = next((x for x in done.stderr.splitlines() if "error" in x), "no message")
        raise ToolchainError(
            f"{Path(command[0]).name} failed with status {done.returncode}: {first.strip()}",
            shown,
            done.stdout + done.stderr,
        )
    return done.stdout
