"""Kernels as functions of this process: a library of one kernel, called without ONNX Runtime.

The library is compiled for the one instruction set this machine runs best and kept in the
cache.  What is loaded is what was built: the digest of a library's bytes is part of its name.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tcfuse.debug import cache_dir, current
from tcfuse.errors import ToolchainError
from tcfuse.ort.library import DIRECT, build_library, shell_unit
from tcfuse.ort.operators import Naming
from tcfuse.store import key_of, tool_digest, write_atomically
from tcfuse.targets.base import Interface, KernelSource
from tcfuse.targets.compilers import Level, levels
from tcfuse.targets.toolchain import Toolchain

STACK_SCRATCH = 16384  # bytes that a call has without being given any
COMPLAINT_BYTES = 1024
LEVEL = """#include "tcf_cpu.h"
__attribute__((visibility("default"))) int tcf_level(void) { return tcf_cpu_level(); }
"""


class Plan(NamedTuple):
    """What a call with certain input shapes needs.

    Attributes:
        shapes: Of the outputs.
        shared_bytes: Scratch of the call.
        local_bytes: Scratch of each part that runs at the same time.
        parts: For each phase, in how many parts it pays to cut it.
        empty: The outputs have no element, so there is nothing to run.
    """

    shapes: tuple[tuple[int, ...], ...]
    shared_bytes: int
    local_bytes: int
    parts: tuple[int, ...]
    empty: bool

    def parts_of(self, threads: int) -> tuple[int, ...]:
        """In how many parts each phase runs on that many threads; none when all is empty."""
        if self.empty:
            return ()
        return tuple(max(min(threads, n), 1) for n in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class DirectKernel:
    """A kernel that can be called; any number of threads may do so at the same time."""

    interface: Interface
    n_phases: int
    level: int
    library: ctypes.CDLL

    @classmethod
    def of(cls, kernel: KernelSource, library: ctypes.CDLL) -> DirectKernel:
        """The kernel of a library that holds it alone."""
        library.tcf_direct_run.argtypes = [
            *(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
            *(ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64),
        ]
        level = library.tcf_direct_level()
        assert level >= 0, "this machine cannot run a kernel that was compiled for it"
        return cls(kernel.interface, len(kernel.phases), level, library)

    def plan(self, dims: Sequence[int]) -> Plan | None:
        """What a call needs; ``None`` when the shapes do not fit the definition.

        Args:
            dims: The dimensions of all inputs, one after the other.
        """
        ranks = [port.type.rank for port in self.interface.outputs]
        given = (ctypes.c_int64 * len(dims))(*dims)
        found = (ctypes.c_int64 * (sum(ranks) + 2 + self.n_phases))()
        if not self.library.tcf_direct_plan(0, given, found):
            return None
        values = iter(found)
        shapes = tuple(tuple(next(values) for _ in range(rank)) for rank in ranks)
        empty = all(0 in shape for shape in shapes)
        return Plan(shapes, next(values), next(values), tuple(values), empty)

    def complaint(self, dims: Sequence[int]) -> str:
        """Why there is no plan, in a sentence."""
        given = (ctypes.c_int64 * len(dims))(*dims)
        text = ctypes.create_string_buffer(COMPLAINT_BYTES)
        self.library.tcf_direct_complaint(0, given, text, ctypes.c_int64(COMPLAINT_BYTES))
        return text.value.decode(errors="replace")

    def runner(self, dims: Sequence[int], tensors: Sequence[int]) -> Callable[..., int]:
        """A function that runs ``part`` of ``parts`` of the phases ``first`` to ``last``.

        Args:
            dims: The dimensions of all inputs.
            tensors: Addresses of the inputs, then the outputs; the memory must outlive the
                function.

        Returns:
            A function of (shared, local, first, last, part, parts), with addresses of scratch
            or ``None``; it returns 1 when an index was out of range.
        """
        given = struct.pack(f"{len(dims)}q", *dims)  # an array of ctypes takes longer
        addresses = struct.pack(f"{len(tensors)}P", *tensors)
        return functools.partial(self.library.tcf_direct_run, 0, self.level, given, addresses)


@dataclass(frozen=True, slots=True)
class DirectBuild:
    """How the library of one kernel is made, and what it is called in the cache."""

    kernel: KernelSource
    contract: str = "fast"

    @property
    def key(self) -> str:
        """Names everything that determines the library."""
        kernel = self.kernel
        level = machine_level()
        plan = (kernel.phases, kernel.shared_bytes, kernel.local_bytes)
        text = (kernel.name, kernel.text, kernel.interface, kernel.compilation)
        return key_of(*text, *plan, level, self.contract, _tools())

    def load(self) -> tuple[DirectKernel, bool]:
        """The kernel, and whether it had to be built because no earlier run did.

        Raises:
            ToolchainError: There is no compiler, or it failed.
        """
        found = _cached(self.key)
        library = found or _build(self.key, self._build)
        return DirectKernel.of(self.kernel, library), found is None

    def _build(self, toolchain: Toolchain, path: Path) -> None:
        build_library(
            [self.kernel],
            path,
            toolchain,
            contract=self.contract,
            built=[machine_level()],
            naming=Naming(ports=True),
            shell=DIRECT,
        )


@functools.cache
def machine_level() -> Level:
    """The best instruction set of this machine.

    Raises:
        ToolchainError: There is no compiler, or kernels cannot run here.
    """

    def build(toolchain: Toolchain, path: Path) -> None:
        toolchain.link(toolchain.compile([shell_unit("level.c", LEVEL)]), path)

    key = key_of(LEVEL, _tools())
    best = (_cached(key) or _build(key, build)).tcf_level()
    known = [level for level in levels() if level.position <= best]
    if not known:
        raise ToolchainError("kernels need a processor of at least x86-64-v2")
    return known[-1]


def _tools() -> str:
    return key_of(current().cxx, tool_digest())


def _cached(key: str) -> ctypes.CDLL | None:
    """The library of that key, if the cache has it undamaged."""
    folder = cache_dir() / "layers"
    for path in (folder / key[:2]).glob(f"{key}.*.so"):
        if path == _path(folder, key, path.read_bytes()):
            return ctypes.CDLL(str(path))
        path.unlink(missing_ok=True)
    return None


def _build(key: str, build: Callable[[Toolchain, Path], None]) -> ctypes.CDLL:
    """A library, built and kept; a cache that cannot be written costs the cache alone."""
    toolchain = Toolchain.default(cache_dir(), current().cxx)
    with tempfile.TemporaryDirectory(prefix="tcfuse-layer-") as name:
        made = Path(name) / "layer.so"
        build(toolchain, made)
        data = made.read_bytes()
        path = _path(cache_dir() / "layers", key, data)
        try:
            write_atomically(path, data)
        except OSError:
            path = made  # stays mapped when its name is gone
        return ctypes.CDLL(str(path))


def _path(folder: Path, key: str, data: bytes) -> Path:
    return folder / key[:2] / f"{key}.{hashlib.sha256(data).hexdigest()[:32]}.so"
