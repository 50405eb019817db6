"""Kernels that take as long as a formula says, and evaluators that are interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.tuned import Task
from tcfuse.wisdom.problem import Problem

DEFAULT = MappingOptions()


def task(subject: Subject, *, calls: int = 1) -> Task:
    """A kernel to tune, filed under its text."""
    problem = Problem(subject.definition, (64,), "cpu", "a device", "default", 1)
    return Task(subject, problem, calls, (subject.name,))


def micros(candidate: Candidate) -> float:
    """Faster with more unrolling and narrow tiles, slower with blocks of rows."""
    mapping = candidate.mapping
    gain = 1 + 0.05 * (mapping.unroll.bit_length() - 1) - 0.02 * mapping.block
    gain += 0.2 * (mapping.tile[:1] == (8,))
    return 100.0 / max(gain, 0.1)


@dataclass
class FakeEvaluator:
    """Outcomes by ``micros``, and of what it was asked.

    Attributes:
        fails: What of a candidate fails, as a status; empty: it works.
        before: Called before each candidate with how many were measured.
    """

    micros: Callable[[Candidate], float] = micros
    fails: Callable[[Candidate], str] = lambda candidate: ""
    before: Callable[[int], object] = lambda count: None
    confirmed: Callable[[Candidate], float] | None = None
    asked: list[Candidate] = field(default_factory=list)
    confirmations: list[tuple[Candidate, ...]] = field(default_factory=list)
    closed: int = 0

    def evaluate(
        self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
    ) -> Iterator[tuple[Candidate, Outcome]]:
        try:
            for candidate in candidates:
                self.before(len(self.asked))
                self.asked.append(candidate)
                yield candidate, self._outcome(candidate, self.micros)
        finally:
            self.closed += 1

    def confirm(
        self, subject: Subject, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[Candidate, Outcome]]:
        self.confirmations.append(tuple(candidates))
        for candidate in candidates:
            yield candidate, self._outcome(candidate, self.confirmed or self.micros)

    def close(self) -> None:
        pass

    def _outcome(self, candidate: Candidate, micros: Callable[[Candidate], float]) -> Outcome:
        if status := self.fails(candidate):
            return Outcome(status, detail="as planned")
        us = micros(candidate)
        usual = self.micros(Candidate())
        return Outcome("ok", us, usual / us, 0.01, source=str(us), seconds=0.01)


class FakeRows:
    """Rows of journals in memory."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str]] = []

    def record_trial(self, run: str, candidate: str, outcome: str) -> bool:
        self.rows.append((run, candidate, outcome))
        return True

    def trials(self, run: str) -> list[tuple[str, str]]:
        return [row[1:] for row in self.rows if row[0] == run]

    def forget_trials(self, run: str) -> bool:
        self.rows = [row for row in self.rows if row[0] != run]
        return True


class KilledError(Exception):
    """The process is no more."""


def killing(after: int, error: type[BaseException] = KilledError) -> Callable[[int], Any]:
    """Raises once so many candidates were measured."""

    def before(count: int) -> None:
        if count == after:
            raise error

    return before
