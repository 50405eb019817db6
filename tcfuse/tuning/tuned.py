"""What came of tuning one kernel, and what is seen while it is tuned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from tcfuse.cuda_options import CudaOptions
from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.journal import Trial
from tcfuse.wisdom.problem import Entry, Problem
from tcfuse.wisdom.record import cuda_options

KNOWN = "known before"  # an earlier run has tuned the kernel
CONVERGED, BUDGET, INTERRUPTED = "converged", "time", "interrupted"
FAILED = "failed"  # the kernel with default knobs cannot be measured
UNTUNED = "no time"
"""Why a search ended."""


@dataclass(frozen=True, slots=True)
class Task:
    """A kernel that is tuned, and what wisdom about it is filed under.

    Attributes:
        calls: How often a call of the model calls it.
        names: Of the operators that are this kernel.
    """

    subject: Subject
    problem: Problem
    calls: int = 1
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """How fast the candidates of a generation are that could be used: times the default.

    Attributes:
        number: From 1.
        tried: How many there are.
        failed: How many could not be used.
    """

    number: int
    tried: int
    failed: int
    best: float
    median: float
    worst: float

    @classmethod
    def of(cls, number: int, outcomes: Sequence[Outcome]) -> Generation:
        """The generation that those outcomes are of."""
        usable = [outcome.fitness for outcome in outcomes if outcome.fitness] or [0.0]
        failed = sum(not outcome.fitness for outcome in outcomes)
        return cls(number, len(outcomes), failed, max(usable), median(usable), min(usable))


@dataclass(frozen=True, slots=True)
class State:
    """What a search has come to; shown while it runs.

    Attributes:
        name: The kernel's.
        generation: The last one that is complete, if any.
        number: Of the one that is measured now, from 1.
        best: Times the default's speed, so far.
        done: Candidates that were tried.
        failed: Those of them that could not be used.
        elapsed: Seconds.
        seconds: The budget.
        place: Which kernel it is, from 1.
        count: Of how many.
    """

    name: str
    generation: Generation | None = None
    number: int = 0
    best: float = 1.0
    done: int = 0
    failed: int = 0
    elapsed: float = 0.0
    seconds: float = math.inf
    place: int = 1
    count: int = 1


@dataclass(frozen=True, slots=True)
class Tuned:
    """What came of one kernel.

    Attributes:
        entry: What was recorded; ``None`` where nothing could be measured.
        default_us: Microseconds of a call with default knobs.
        spread: Of the ratios that ``entry.speedup`` is the median of.
        trials: What was tried, in order.
        generations: How they went.
        ended: Why the search ended.
        detail: A line about a failure.
    """

    task: Task
    entry: Entry | None
    default_us: float | None
    spread: float = 0.0
    trials: tuple[Trial, ...] = ()
    generations: tuple[Generation, ...] = ()
    ended: str = KNOWN
    detail: str = ""

    @property
    def gain(self) -> float:
        """Times the default's speed."""
        return 1.0 if self.entry is None else self.entry.speedup

    @property
    def tuned_us(self) -> float | None:
        """Microseconds of a call with the best knobs."""
        return None if self.default_us is None else self.default_us / self.gain

    @property
    def total_us(self) -> float:
        """Microseconds that a call of the model spends in it with default knobs."""
        return (self.default_us or 0.0) * self.task.calls

    @property
    def saved_us(self) -> float:
        """Microseconds of a call of the model that the best knobs save."""
        return self.total_us * (1 - 1 / self.gain)

    @property
    def failures(self) -> list[Trial]:
        """The candidates that could not be used."""
        return [trial for trial in self.trials if not trial.outcome.fitness]

    @property
    def failed(self) -> Mapping[str, int]:
        """How many candidates failed in which way."""
        return Counter(trial.outcome.status for trial in self.failures)

    @property
    def convergence(self) -> list[tuple[float, float]]:
        """Seconds, and the best so far as times the default's speed."""
        points, best = [(0.0, 1.0)], 1.0
        for trial in sorted(self.trials, key=lambda trial: trial.at):
            if trial.outcome.fitness > best:
                best = trial.outcome.fitness
                points.append((trial.at, best))
        last = max((trial.at for trial in self.trials), default=0.0)
        return [*points, (last, best)]


def differences(candidate: Candidate) -> dict[str, dict[str, Any]]:
    """What differs from the defaults, as entries of wisdom have it."""
    found = {"mapping": _changed(candidate.mapping, MappingOptions())}
    found["mapping"].pop("numerics", None)  # the run's
    if candidate.cuda is not None:
        found["cuda"] = _changed(candidate.cuda, CudaOptions())
    return {kind: knobs for kind, knobs in found.items() if knobs}


def candidate_of(entry: Entry, numerics: str) -> Candidate:
    """The candidate whose knobs an entry has.

    Raises:
        OptionError: Knobs or values are not known.
    """
    knobs = entry.knobs
    mapping = MappingOptions.of({**knobs.get("mapping", {}), "numerics": numerics})
    if entry.problem.target != "cuda":
        return Candidate(mapping)
    return Candidate(mapping, cuda_options(knobs.get("cuda", {})))


def _changed(options: Any, default: Any) -> dict[str, Any]:
    usual = asdict(default)
    return {name: _plain(v) for name, v in asdict(options).items() if v != usual[name]}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
