"""Launches of compiled kernels, and what each of them did."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Self, TypeAlias

import numpy as np

from tcfuse.emulator.lines import Lines, Place
from tcfuse.emulator.memory import DeviceMemory
from tcfuse.emulator.native_interface import NativeLibrary, NativeReport, NativeSite, NativeWho
from tcfuse.emulator.report import Finding, Report, Site, Thread, Traffic, merged
from tcfuse.types import Array

Argument: TypeAlias = "Array | np.generic | int"
Dimensions: TypeAlias = "int | tuple[int, ...]"

TIME_LIMIT_S = 300.0
SECTOR = 32  # bytes
OPERATIONS = ("read", "write", "atomic")

# Launches catch signals of the process: of all programs, one runs at a time.
_RUNNING = threading.Lock()


@dataclass(frozen=True)
class Run:
    """What one launch did.

    Attributes:
        symbol: The kernel.
        finished: Whether it ran to its end; else the last report says why not.
        reports: Everything that is wrong; only traced builds see most of it.
        buffers: Traffic of each array argument; empty unless traced.
        blocks: Blocks that ran.
        barriers: ``__syncthreads`` that all threads of a block passed.
        switches: Changes from one thread to another.
    """

    symbol: str
    finished: bool
    reports: tuple[Report, ...]
    buffers: tuple[Traffic, ...]
    blocks: int
    barriers: int
    switches: int
    _names: tuple[str, ...]
    _sites: tuple[NativeSite, ...]
    _lines: Lines

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """Counters of every access in the source, in its order; empty unless traced."""
        return merged(
            Site(
                self._lines.place(s.pc - 1),
                "shared" if s.shared else "global",
                OPERATIONS[s.kind],
                s.bytes,
                self._names[s.buffer],
                s.requests,
                s.lanes,
                s.transactions,
                s.ideal,
            )
            for s in self._sites
        )


@dataclass(frozen=True)
class Loaded:
    """A library that is loaded, with what is known of it.

    Attributes:
        traced: Whether it checks and counts accesses.
        shared: Names of its variables in static shared memory.
        lock: Held by the launches that use it.
    """

    native: NativeLibrary
    lines: Lines
    traced: bool
    shared: tuple[str, ...]
    lock: threading.Lock


class Launches:
    """Launches with the same arguments: what one writes, the next ones read.

    Attributes:
        names: What reports call the arguments.
        flags: Of each argument; ``native_interface`` has them.
    """

    def __init__(
        self,
        loaded: Loaded,
        args: Sequence[Argument],
        names: Sequence[str],
        flags: Sequence[int],
        alignments: Sequence[int],
    ) -> None:
        self._loaded = loaded
        arrays = {i: a for i, a in enumerate(args) if isinstance(a, np.ndarray)}
        self._memory = DeviceMemory.of(list(arrays.values()), [alignments[i] for i in arrays])
        pointers = dict(zip(arrays, self._memory.addresses, strict=True))
        self._values = [_value(a, pointers.get(i)) for i, a in enumerate(args)]
        self._flags = [flags[i] for i in arrays]
        dynamic = (*loaded.shared, "dynamic shared memory")
        self._names = (*(names[i] for i in arrays), *dynamic)

    def __enter__(self) -> Self:
        self._loaded.lock.acquire()
        native = self._loaded.native
        native.reset()
        sizes = (array.nbytes for array in self._memory.host)
        for address, size, flag in zip(self._memory.addresses, sizes, self._flags, strict=True):
            native.add_buffer(address, size, flag)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._memory.copy_back()
            self._loaded.native.reset()
        finally:
            self._loaded.lock.release()

    def launch(
        self,
        symbol: str,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        seed: int = 0,
        limit_s: float = TIME_LIMIT_S,
    ) -> Run:
        """Run one kernel; the arguments are as for ``Program.run``."""
        loaded, native = self._loaded, self._loaded.native
        native.next_launch(seed)
        addresses = [value.ctypes.data for value in self._values]
        with _RUNNING, _TimeLimit(limit_s):
            finished = native.launch(
                symbol, _three(grid), _three(block), shared_bytes, addresses
            )
        traced = loaded.traced
        blocks = native.schedule()
        return Run(
            symbol,
            finished,
            tuple(self._report(symbol, r) for r in native.reports() if not self._is_copy(r)),
            tuple(self._traffic(i) for i in range(len(self._flags))) if traced else (),
            blocks=blocks[2],
            barriers=blocks[1],
            switches=blocks[0],
            _names=self._names,
            _sites=tuple(native.sites()),
            _lines=loaded.lines,
        )

    def _report(self, symbol: str, r: NativeReport) -> Report:
        other = self._thread(r.other) if r.other.pc else None
        name = self._names[r.buffer] if r.buffer >= 0 else ""
        by = self._thread(r.who)
        return Report(Finding(r.kind), symbol, name, r.offset, r.bytes, by, other, r.count)

    def _is_copy(self, r: NativeReport) -> bool:
        """Whether two barriers are one in the source, of which the compiler made two."""
        a, b = r.who, r.other
        if r.kind != Finding.BARRIER_DIVERGENCE or (a.file, a.line) != (b.file, b.line):
            return False
        here, there = (self._loaded.lines.place(who.pc - 1) for who in (a, b))
        same = (here.file, here.line, here.inside) == (there.file, there.line, there.inside)
        return same or not (here.line and there.line)

    def _thread(self, who: NativeWho) -> Thread:
        place = self._loaded.lines.place(who.pc - 1)
        if not place.line and who.line:
            place = Place(PurePath(who.file.decode()).name, who.line, 0)
        (bx, by, bz), (tx, ty, tz) = who.block, who.thread
        return Thread(place, (bx, by, bz), (tx, ty, tz))

    def _traffic(self, number: int) -> Traffic:
        size = self._memory.host[number].nbytes
        read, written, read_ever, written_ever, *asked = (
            SECTOR * n for n in self._loaded.native.traffic(number)
        )
        return Traffic(
            self._names[number], size, read, written, read_ever, written_ever, *asked
        )


class _TimeLimit:
    """Stops the launch that the current thread runs, after some time."""

    def __init__(self, seconds: float) -> None:
        self._thread = threading.get_ident()
        self._over = threading.Event()
        self._seconds = seconds
        self._watch = threading.Thread(target=self._stop, daemon=True)

    def __enter__(self) -> None:
        self._watch.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()

    def _stop(self) -> None:
        wait = self._seconds
        while not self._over.wait(wait):
            signal.pthread_kill(self._thread, signal.SIGURG)  # ignored once the launch is over
            wait = 0.1


def _value(argument: Argument, pointer: int | None) -> Array:
    """The value of a parameter, in an array of its own that kernels read it from."""
    if pointer is not None:
        return np.array(pointer, np.uint64)
    if isinstance(argument, np.generic):
        return np.array(argument)
    return np.array(argument, np.int64)


def _three(dimensions: Dimensions) -> tuple[int, int, int]:
    given = (dimensions,) if isinstance(dimensions, int) else dimensions
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z
