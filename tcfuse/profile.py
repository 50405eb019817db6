"""Where the time of a run goes, phase by phase; free where nobody asks.

A phase is entered in one place of the program.  What it spends is its own: a phase entered
inside another takes over until it is left.  Only the thread that began the recording has
phases, so the walls of a profile add up to the run; what other threads and processes do
meanwhile counts as processor time alone, and what the first waits for as the wall of where it
waits.

Processes that have ended are compilers, whose time is ``COMPILER``'s wherever they are waited
for.  A process that goes on tells what it spent itself (``spent``, ``take``).
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeAlias, TypeVar

COMPILER = "C++ compiler"
ISL = "isl process"
OTHER = "other"
PHASES = (
    *("start", "load", "plan", "cache", "compose", ISL),
    *("dependences", "schedule", "mapping", "proof", "code generation"),
    *(COMPILER, "GPU compiler", "verification", "gate", "rewrite", "save", OTHER),
)


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of one phase: by the clock, and of processors."""

    wall_s: float = 0.0
    processor_s: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall_s + other.wall_s, self.processor_s + other.processor_s)


class Tally(NamedTuple):
    """How many things a phase made, and how many it found in the cache."""

    made: int
    cached: int


P = ParamSpec("P")
R = TypeVar("R")
Spending: TypeAlias = Mapping[str, Spent]
NOTHING = Spent()


@dataclass(frozen=True, slots=True)
class Profile:
    """What a run spent.

    Attributes:
        spent: By phase, in the order of the run; phases that did not occur are missing.
        tallies: By phase, of those that make what the cache keeps.
        n_kernels: Different kernels in the run, from the cache or not.
    """

    spent: Spending
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    n_kernels: int = 0

    @property
    def total(self) -> Spent:
        """Of the whole run."""
        return sum(self.spent.values(), NOTHING)

    @property
    def known(self) -> float:
        """The share of the time by the clock that has a phase."""
        wall_s = self.total.wall_s
        return 1.0 - self.spent.get(OTHER, NOTHING).wall_s / wall_s if wall_s else 1.0

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Phases as text: name, seconds, share, seconds of processors, made, from the cache."""
        all_s = max(self.total.wall_s, 1e-9)
        for name, spent in {**self.spent, "total": self.total}.items():
            share = f"{100 * spent.wall_s / all_s:.1f}"
            counts = tuple(map(str, self.tallies.get(name, ("", ""))))
            yield (name, f"{spent.wall_s:.3f}", share, f"{spent.processor_s:.3f}", *counts)

    def __str__(self) -> str:
        """A table, and what a kernel took."""
        lines = [("phase", "wall s", "%", "processor s", "made", "cached"), *self.rows()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            f"{line[0]:{widths[0]}}  "
            + "  ".join(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))
            for line in lines
        ]
        if self.n_kernels:
            total, n = self.total, self.n_kernels
            each = (
                f"{total.wall_s / n:.2f} s each ({total.processor_s / n:.2f} s of processors)"
            )
            text.append(f"{n} different kernels, {each}")
        return "\n".join(line.rstrip() for line in text)


@dataclass(slots=True, eq=False)
class Recording:
    """A profile in the making."""

    _spent: dict[str, Spent] = field(default_factory=dict)
    _tallies: dict[str, Tally] = field(default_factory=dict)
    _kernels: set[str] = field(default_factory=set)
    _inside: list[str] = field(default_factory=lambda: [OTHER])
    _last: tuple[float, float, float] = field(default_factory=lambda: _clocks())

    def result(self) -> Profile:
        """The profile so far."""
        self._settle()
        order = {name: k for k, name in enumerate(PHASES)}
        names = sorted(self._spent, key=lambda name: order.get(name, len(order)))
        spent = {name: self._spent[name] for name in names}
        return Profile(spent, dict(self._tallies), len(self._kernels))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """What happens inside is spent on ``name``."""
        self._settle()
        self._inside.append(name)
        try:
            yield
        finally:
            self._settle()
            self._inside.pop()

    def take(self, spent: Spending) -> None:
        """Enter what another process spent while this thread waited for it."""
        self._settle()
        waited = 0.0
        for name, seconds in spent.items():
            self.add(name, seconds)
            waited += seconds.wall_s
        self.add(self._inside[-1], Spent(-waited, 0.0))

    def tally(self, name: str, made: int, cached: int) -> None:
        """Count what phase ``name`` made or found."""
        before = self._tallies.get(name, Tally(0, 0))
        self._tallies[name] = Tally(before.made + made, before.cached + cached)

    def kernel(self, name: str) -> None:
        """Count a kernel, equal ones once."""
        self._kernels.add(name)

    def _settle(self) -> None:
        """Charge what passed since the last time to the phase that is on."""
        now, last = _clocks(), self._last
        wall_s, own_s, children_s = (a - b for a, b in zip(now, last, strict=True))
        self.add(self._inside[-1], Spent(wall_s, own_s))
        if children_s:
            self.add(COMPILER, Spent(0.0, children_s))
        self._last = now

    def add(self, name: str, spent: Spent) -> None:
        """Enter what was spent on ``name`` besides."""
        self._spent[name] = self._spent.get(name, NOTHING) + spent


_RECORDING: ContextVar[Recording | None] = ContextVar("recording", default=None)
_OFF: AbstractContextManager[None] = nullcontext()


@contextmanager
def profiling() -> Iterator[Recording]:
    """Record what this thread does inside; ``Recording.result`` tells what it spent."""
    made = Recording()
    token = _RECORDING.set(made)
    try:
        yield made
    finally:
        _RECORDING.reset(token)


def current() -> Recording | None:
    """The recording this thread is in."""
    return _RECORDING.get()


def phase(name: str) -> AbstractContextManager[None]:
    """A context whose time is spent on ``name``."""
    made = _RECORDING.get()
    return _OFF if made is None else made.phase(name)


def timed(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function a phase."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with phase(name):
                return function(*args, **kwargs)

        return call

    return decorated


def tally(name: str, *, made: int = 0, cached: int = 0) -> None:
    """Count what phase ``name`` made, and what it found in the cache."""
    if (recording := _RECORDING.get()) is not None:
        recording.tally(name, made, cached)


def found(name: str, cached: object) -> None:
    """Count one thing that phase ``name`` found in the cache, unless it is ``None``."""
    tally(name, **({"made": 1} if cached is None else {"cached": 1}))


def kernel(name: str) -> None:
    """Count a kernel of this run, equal ones once."""
    if (made := _RECORDING.get()) is not None:
        made.kernel(name)


def since_start() -> Spent:
    """What this process spent until now: starting and importing, when asked early."""
    processor_s = time.process_time()
    with contextlib.suppress(OSError, ValueError, IndexError):  # Linux alone tells
        began = Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[19]
        ticks = int(began) / os.sysconf("SC_CLK_TCK")
        wall_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks
        return Spent(max(wall_s, 0.0), processor_s)
    return Spent(processor_s, processor_s)


def _clocks() -> tuple[float, float, float]:
    """Seconds: by the clock, of this process's threads, and of its children that have ended."""
    return time.perf_counter(), time.process_time(), _children_s()


def _children_s() -> float:
    try:
        import resource  # not on every system
    except ImportError:
        return 0.0
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
