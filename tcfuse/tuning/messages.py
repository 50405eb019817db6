"""What the tuner and the process that measures for it tell each other.

What goes there is pickled, as it comes from us.  What comes back is JSON: it was written beside
a kernel that may have overwritten anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tcfuse.interface import Interface
from tcfuse.targets.base import KernelSource
from tcfuse.tuning.racing import Race

MOST_POINTS = 5_000_000  # of all statements; float64 takes about a second for them


@dataclass(frozen=True, slots=True)
class Setup:
    """What stays the same for every candidate of a subject.

    Attributes:
        definition: Its text.
        interface: Its signature.
        sizes: Value of each size name.
        threads: How many may work on a call.
        most_points: Instances of statements up to which float64 answers are computed.
    """

    definition: str
    interface: Interface
    sizes: dict[str, int]
    threads: int
    most_points: int = MOST_POINTS


@dataclass(frozen=True, slots=True)
class Contender:
    """A kernel that was built.

    Attributes:
        library: Holds it alone.
        kernel: What it is; its text is not needed any more.
    """

    library: Path
    kernel: KernelSource


@dataclass(frozen=True, slots=True)
class Limits:
    """What a candidate may take.

    Attributes:
        check_s: Seconds by the clock until its outputs have been checked.
        race_s: Seconds by the clock for timing.
        memory: Bytes that it may take beside what is there before it starts.
    """

    check_s: float = 10.0
    race_s: float = 10.0
    memory: int = 2 << 30


@dataclass(frozen=True, slots=True)
class Job:
    """Kernels to run in a process of their own.

    Attributes:
        contenders: The first is the kernel with default knobs, the last the one in question.
        race: How they are timed; ``None``: the one in question is the reference, whose
            outputs others are held against.
        limits: What they may take.
        checked: How many of them are checked first, from the end.
        usual_s: Seconds of processors for the first run of the reference; 0: not known.
        turn: Which of several runs alike this is: in each one memory lies elsewhere.
    """

    contenders: tuple[Contender, ...]
    race: Race | None
    limits: Limits
    checked: int = 1
    usual_s: float = 0.0
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a job.

    Attributes:
        status: One of ``candidate.STATUSES``.
        detail: A line about a failure.
        times: Seconds a call of each contender, by round.
        check_s: Seconds that checking took.
        run_s: Seconds of processors for the first run of the contender in question.
        note: How outputs are checked, of the reference alone.
    """

    status: str
    detail: str = ""
    times: tuple[tuple[float, ...], ...] = ()
    check_s: float = 0.0
    run_s: float = 0.0
    note: str = ""
