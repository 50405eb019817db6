"""Candidates to libraries: isl in a process that may be killed, the C++ compiler bounded too.

Nothing goes to the cache but what all candidates share: of a thousand candidates one is used,
and building that one again takes a moment.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from tcfuse.cuda_options import CudaOptions
from tcfuse.debug import cache_dir, current
from tcfuse.isolation import SECONDS, Worker
from tcfuse.mapping_options import MappingOptions
from tcfuse.ort.direct import machine_level
from tcfuse.ort.library import DIRECT, kernel_unit, shell_units
from tcfuse.ort.operators import Naming
from tcfuse.store import key_of
from tcfuse.targets.base import CudaSource, KernelSource
from tcfuse.targets.compilers import Compiler, Level
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tuning.candidate import Candidate, Subject
from tcfuse.tuning.messages import Contender

ISL_S = 10  # of processor time, for what is no default
CXX_S = 30  # of processor time
CXX_KIB = 8 << 20  # of address space
NAME = "candidate"
NAMING = Naming(ports=True)
_BOUNDED = f'ulimit -t {CXX_S}; ulimit -v {CXX_KIB}; exec "$@"'


class Compile(Protocol):
    """Makes the text of a candidate; may be called by several threads."""

    def __call__(self, subject: Subject, candidate: Candidate) -> KernelSource | CudaSource:
        """The kernel.

        Raises:
            UnsupportedError: There is no such kernel.
        """
        ...


@dataclass(slots=True)
class Compiling:
    """``Compile`` by isl, in a process for each thread that asks."""

    seconds: int = ISL_S
    _workers: dict[int, Worker] = field(default_factory=dict)

    def __call__(self, subject: Subject, candidate: Candidate) -> KernelSource | CudaSource:
        """The kernel.

        Raises:
            UnsupportedError: The target cannot do this, or not within the time and memory.
        """
        worker = self._workers.setdefault(threading.get_ident(), Worker())
        usual = _is_default(subject, candidate)  # which everything else is held against
        worker.seconds = SECONDS if usual else self.seconds
        texts = worker.compile(
            subject.definition,
            subject.interface,
            subject.name,
            options_of(subject, candidate),
            None,
            (candidate.cuda or CudaOptions()) if subject.target == "cuda" else None,
        )
        return texts.source

    def interrupt(self) -> None:
        """End what is being compiled."""
        for worker in list(self._workers.values()):
            worker.interrupt()

    def stop(self) -> None:
        """End every process."""
        for worker in self._workers.values():
            worker.stop()
        self._workers.clear()


def options_of(subject: Subject, candidate: Candidate) -> MappingOptions:
    """The knobs of a candidate, with the subject's numerics."""
    return replace(candidate.mapping, numerics=subject.numerics)


def _is_default(subject: Subject, candidate: Candidate) -> bool:
    """Whether nobody chose a knob."""
    usual = MappingOptions(numerics=subject.numerics)
    return options_of(subject, candidate) == usual and candidate.cuda in (None, CudaOptions())


def digest_of(kernel: KernelSource | CudaSource) -> str:
    """Names what a kernel is, whatever it is called."""
    plain = replace(kernel, name=NAME)
    return key_of(str(plain).replace(kernel.name, NAME))


def _anonymous(kernel: KernelSource) -> KernelSource:
    """The kernel under the name that all candidates have."""
    phases = tuple(
        replace(phase, symbol=phase.symbol.replace(kernel.name, NAME))
        for phase in kernel.phases
    )
    text = kernel.text.replace(kernel.name, NAME)
    return replace(kernel, name=NAME, text=text, phases=phases)


@dataclass(slots=True)
class Building:
    """Libraries of one kernel each, for this machine.

    Attributes:
        folder: Where they go.
    """

    folder: Path
    _shared: Toolchain | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def build(self, kernel: KernelSource, numerics: str, digest: str) -> Contender:
        """The library of a kernel.

        Raises:
            ToolchainError: There is no compiler, or it failed.
        """
        level, shared = self._tools()
        own = replace(shared, compiler=_bounded(shared.compiler), cache=None)
        contract = "off" if numerics == "strict" else "fast"
        kernel = _anonymous(kernel)  # so that many candidates have one table
        objects = own.compile([kernel_unit(kernel, level, contract)])
        with self._lock:  # the first compiles them, the others find them
            objects += shared.compile(shell_units([kernel], [level], NAMING, DIRECT))
        path = self.folder / f"{digest}.so"
        own.link(objects, path)
        return Contender(path, replace(kernel, text="", tc=""))

    def _tools(self) -> tuple[Level, Toolchain]:
        with self._lock:
            level = machine_level()
            if self._shared is None:
                self._shared = Toolchain.default(cache_dir(), current().cxx)
            return level, self._shared


def _bounded(compiler: Compiler) -> Compiler:
    """The compiler within a time and a memory of its own."""
    return replace(compiler, argv=("/bin/sh", "-c", _BOUNDED, "sh", *compiler.argv))
