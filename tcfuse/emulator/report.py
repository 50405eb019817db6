"""What a run in the emulator tells: findings, counters of accesses, traffic of buffers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from tcfuse.emulator.build import DEVICE_HEADER
from tcfuse.emulator.lines import Place


class Finding(IntEnum):
    """What can be wrong; in the order of ``native/state.hpp``."""

    RACE_WRITE_WRITE = 0
    RACE_READ_AFTER_WRITE = 1
    RACE_WRITE_AFTER_READ = 2
    UNINITIALISED = 3
    OUT_OF_BOUNDS_READ = 4
    OUT_OF_BOUNDS_WRITE = 5
    WRITE_TO_READ_ONLY = 6
    MISALIGNED = 7
    ARRAY_INDEX = 8
    BARRIER_DIVERGENCE = 9
    WARP_DIVERGENCE = 10
    WARP_DEADLOCK = 11
    LANE_OUTSIDE_MASK = 12
    SEGMENTATION_FAULT = 13
    ARITHMETIC_FAULT = 14
    STACK_OVERFLOW = 15
    TIME_LIMIT = 16
    LAUNCH = 17

    @property
    def is_race(self) -> bool:
        """Whether two threads use one place without an order."""
        return self <= Finding.RACE_WRITE_AFTER_READ

    @property
    def sentence(self) -> str:
        """What happened."""
        return _SENTENCES[self]


_SENTENCES = {
    Finding.RACE_WRITE_WRITE: "race: two threads write",
    Finding.RACE_READ_AFTER_WRITE: "race: reads what another thread writes",
    Finding.RACE_WRITE_AFTER_READ: "race: writes what another thread reads",
    Finding.UNINITIALISED: "reads what was never written",
    Finding.OUT_OF_BOUNDS_READ: "reads out of bounds",
    Finding.OUT_OF_BOUNDS_WRITE: "writes out of bounds",
    Finding.WRITE_TO_READ_ONLY: "writes to an input",
    Finding.MISALIGNED: "accesses an address that is not a multiple of the access's size",
    Finding.ARRAY_INDEX: "indexes an array outside its bounds",
    Finding.BARRIER_DIVERGENCE: "threads of one block wait at different barriers",
    Finding.WARP_DIVERGENCE: "lanes of one mask meet in different operations",
    Finding.WARP_DEADLOCK: "waits for lanes that never come",
    Finding.LANE_OUTSIDE_MASK: "a lane takes part that the mask does not name",
    Finding.SEGMENTATION_FAULT: "accesses an address that does not exist",
    Finding.ARITHMETIC_FAULT: "divides by zero, overflows in a division, or traps",
    Finding.STACK_OVERFLOW: "uses more stack than the emulator gives a thread",
    Finding.TIME_LIMIT: "runs longer than the time limit",
    Finding.LAUNCH: "is launched with no threads, too many, or too much shared memory",
}


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread, and where in the source it was."""

    place: Place
    block: tuple[int, int, int]
    thread: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.place} block {_index(self.block)} thread {_index(self.thread)}"


@dataclass(frozen=True, slots=True)
class Report:
    """Something wrong, once for each pair of instructions.

    Attributes:
        kernel: Symbol of the launch.
        buffer: Name of the memory; empty when it is not about memory.
        offset: Of the access from the buffer's beginning, in bytes.
        bytes: Of the access.
        by: The thread that did it last; the first pair of threads is told.
        other: The other one, if there is one.
        count: How often.
    """

    kind: Finding
    kernel: str
    buffer: str
    offset: int
    bytes: int
    by: Thread
    other: Thread | None
    count: int

    def __str__(self) -> str:
        parts = [f"{self.by.place}: {self.kernel} {self.kind.sentence}"]
        if self.buffer:
            parts.append(f"{self.bytes} bytes at {self.buffer}[byte {self.offset}]")
        threads = str(self.by).split(" ", 1)[1]
        parts.append(f"{threads} and {self.other}" if self.other else threads)
        times = f" ({self.count} times)" if self.count > 1 else ""
        lines = ", ".join(map(str, self.by.place.inside))
        return ", ".join(parts) + times + (f"; inside {DEVICE_HEADER}:{lines}" if lines else "")


@dataclass(frozen=True, slots=True)
class Site:
    """The counters of one access in the source.

    Attributes:
        space: ``global`` or ``shared``.
        operation: ``read``, ``write`` or ``atomic``.
        bytes: That one thread moves.
        buffer: Name of the memory it was first seen to use.
        requests: How often a warp did it.
        lanes: How often a thread did it.
        transactions: Sectors of 32 bytes (global memory), wavefronts (shared memory).
        ideal: As few transactions as the same addresses, packed, would need.
    """

    place: Place
    space: str
    operation: str
    bytes: int
    buffer: str
    requests: int
    lanes: int
    transactions: int
    ideal: int

    @property
    def per_request(self) -> float:
        """Transactions of one request, on average."""
        return self.transactions / self.requests

    @property
    def factor(self) -> float:
        """Transactions over the ideal; 1 is best."""
        return self.transactions / self.ideal


@dataclass(frozen=True, slots=True)
class Traffic:
    """What moved between a buffer and the kernel, in bytes of whole sectors.

    Attributes:
        bytes: Size of the buffer.
        read: Sectors that this launch reads, each counted once.
        written: Sectors that it writes, each counted once.
        read_ever: As ``read``, of all launches so far.
        written_ever: As ``written``, of all launches so far.
        read_requested: Every request's sectors: what no cache would save.
        written_requested: The same of writes.
    """

    buffer: str
    bytes: int
    read: int
    written: int
    read_ever: int
    written_ever: int
    read_requested: int
    written_requested: int


def merged(sites: Iterable[Site]) -> tuple[Site, ...]:
    """The sites with one for each access in the source: compilers copy instructions."""
    found: dict[tuple[Place, str, str, int, str], list[Site]] = {}
    for s in sites:
        found.setdefault((s.place, s.space, s.operation, s.bytes, s.buffer), []).append(s)
    return tuple(
        Site(
            *key,
            sum(s.requests for s in same),
            sum(s.lanes for s in same),
            sum(s.transactions for s in same),
            sum(s.ideal for s in same),
        )
        for key, same in sorted(found.items())
    )


def site_rows(sites: Sequence[Site]) -> list[tuple[str, ...]]:
    """A table of sites, below ``SITE_HEADER``."""
    return [
        (
            str(s.place),
            s.buffer,
            f"{s.space} {s.operation}",
            str(s.bytes),
            str(s.requests),
            f"{s.per_request:.2f}",
            f"{s.ideal / s.requests:.2f}",
            f"{s.factor:.2f}",
        )
        for s in sites
    ]


SITE_HEADER = ("line", "memory", "access", "bytes", "requests", "each", "ideal", "factor")


def _index(v: tuple[int, int, int]) -> str:
    """``7`` when only x is used, ``(7, 0, 1)`` otherwise."""
    return str(v[0]) if v[1:] == (0, 0) else str(v)
