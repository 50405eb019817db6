"""What is given to workers, what comes back, and what all of them know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from tcfuse.tuning.candidate import Candidate, Outcome, Subject


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker does at a time.

    Attributes:
        subject: What is tuned.
        candidates: What is tried; mostly one.
        incumbent: The best so far, which runs beside it.
        confirms: Whether the candidates are measured for longer, beside each other; see
            ``protocols.Evaluator``.
        asks: Whether only the text of the candidate is wanted: an outcome that says ``made``.
        known: What came of texts that other workers have measured.
    """

    subject: Subject
    candidates: tuple[Candidate, ...]
    incumbent: Candidate
    confirms: bool = False
    asks: bool = False
    known: tuple[Outcome, ...] = ()


Outcomes: TypeAlias = Sequence[tuple[Candidate, Outcome]]


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker is gone, and has not said what came of its task."""

    why: str


class Known:
    """What came of each text of a subject, told to every worker once.

    Many candidates have the same text; only the first worker that has it measures it.
    """

    def __init__(self) -> None:
        self._subject: Subject | None = None
        self._outcomes: dict[str, Outcome] = {}
        self._told: dict[str, int] = {}

    def add(self, subject: Subject, outcome: Outcome) -> None:
        """Keep an outcome."""
        if subject != self._subject:
            self._subject = subject
            self._outcomes.clear()
            self._told.clear()
        if outcome.source:
            self._outcomes.setdefault(outcome.source, outcome)

    def of(self, subject: Subject, source: str) -> Outcome | None:
        """What came of a text, which another subject may have too, at other sizes."""
        return self._outcomes.get(source) if subject == self._subject else None

    def news(self, worker: str, subject: Subject) -> tuple[Outcome, ...]:
        """What a worker has not been told."""
        if subject != self._subject:
            return ()
        told = self._told.get(worker, 0)
        self._told[worker] = len(self._outcomes)
        return tuple(self._outcomes.values())[told:]

    def forget(self, worker: str) -> None:
        """The worker is gone; another of its name knows nothing."""
        self._told.pop(worker, None)


def to_record(task: Task) -> dict[str, Any]:
    """A task as it is sent: its knobs are JSON, its subject is pickled."""
    return {
        "subject": task.subject,
        "candidates": [candidate.to_record() for candidate in task.candidates],
        "incumbent": task.incumbent.to_record(),
        "confirms": task.confirms,
        "asks": task.asks,
        "known": [asdict(outcome) for outcome in task.known],
    }


def of_record(record: Mapping[str, Any]) -> Task:
    """The task that ``to_record`` describes."""
    return Task(
        record["subject"],
        tuple(Candidate.of_record(knobs) for knobs in record["candidates"]),
        Candidate.of_record(record["incumbent"]),
        record["confirms"],
        record["asks"],
        tuple(Outcome(**outcome) for outcome in record["known"]),
    )
