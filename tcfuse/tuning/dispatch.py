"""Candidates given out to workers, any of which may die at any moment.

A worker has one task at a time, so that what it measures has its device to itself.  A task
whose worker died is given once more, to another; one that has taken two workers with it is
reported as crashed, so that it costs the run no more of them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeAlias

from tcfuse.errors import WorkerError
from tcfuse.tuning.candidate import Candidate, Outcome, Subject

MOST_DEATHS = 2  # of the workers of one candidate
MOST_IN_A_ROW = 8  # deaths without an answer between: it is not the candidates' fault
SECONDS = 900.0  # the longest that one candidate may take, with all its own time limits
PATIENCE = 60.0  # how long to wait for a worker when there is none
TURN = 0.5  # how often to look for workers that came, and for those that are late


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker does at a time.

    Attributes:
        subject: What is tuned.
        candidates: What is tried; mostly one.
        incumbent: The best so far, which runs beside it.
        confirms: Whether the candidates are measured for longer, beside each other; see
            ``protocols.Evaluator``.
        known: What came of texts that other workers have measured.
    """

    subject: Subject
    candidates: tuple[Candidate, ...]
    incumbent: Candidate
    confirms: bool = False
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


class Workers(Protocol):
    """Processes that have one task at a time, here or elsewhere; known by their names."""

    def idle(self) -> Sequence[str]:
        """Workers that may be given a task now; may start some, never waits for long.

        Raises:
            WorkerError: There is none, and there will not be one.
        """
        ...

    def send(self, worker: str, task: Task) -> None:
        """Give an idle worker a task."""
        ...

    def receive(self, seconds: float) -> Sequence[tuple[str, Outcomes | Lost]]:
        """What came of tasks, of at least one of them unless ``seconds`` pass.

        Raises:
            WorkerError: A task cannot be done by any worker, or none can be reached.
        """
        ...

    def give_up(self, worker: str, *, hangs: bool = False) -> None:
        """Take the task of a worker back; one that hangs is given nothing more."""
        ...


def evaluate(
    workers: Workers,
    subject: Subject,
    candidates: Sequence[Candidate],
    incumbent: Candidate,
    known: Known | None = None,
) -> Iterator[tuple[Candidate, Outcome]]:
    """The outcome of each candidate, once, as soon as there is one.

    Args:
        workers: Who tries them.
        subject: What is tuned.
        candidates: What is tried.
        incumbent: The best so far.
        known: What is known already; what comes is added.

    Raises:
        WorkerError: There is no worker for a while, or they die whatever they are given.
    """
    tasks = [Task(subject, (each,), incumbent) for each in candidates]
    return _given_out(workers, tasks, known or Known())


def confirm(
    workers: Workers, subject: Subject, candidates: Sequence[Candidate]
) -> Iterator[tuple[Candidate, Outcome]]:
    """The outcomes of candidates that one worker measures beside each other.

    Raises:
        WorkerError: As in ``evaluate``.
    """
    task = Task(subject, tuple(candidates), Candidate(), confirms=True)
    return _given_out(workers, [task] if candidates else [], Known())


def _given_out(
    workers: Workers, tasks: Sequence[Task], known: Known
) -> Iterator[tuple[Candidate, Outcome]]:
    round_ = _Round(workers, tasks, known)
    try:
        while round_.unfinished:
            yield from round_.turn()
    finally:  # the caller may have had enough
        round_.close()


class _Round:
    """Tasks that wait, and those that are with a worker."""

    def __init__(self, workers: Workers, tasks: Sequence[Task], known: Known) -> None:
        self._workers = workers
        self._known = known
        self._waiting = deque((task, 0) for task in tasks)
        self._running: dict[str, tuple[Task, int, float]] = {}
        self._deaths_in_a_row = 0
        self._lonely_since: float | None = None

    @property
    def unfinished(self) -> bool:
        return bool(self._waiting or self._running)

    def turn(self) -> Iterator[tuple[Candidate, Outcome]]:
        """Give out what can be given out, and take what comes."""
        self._give_out()
        if not self._running:
            time.sleep(TURN / 10)
            return
        for worker, answer in (*self._workers.receive(TURN), *self._late()):
            task, deaths, _ = self._running.pop(worker)
            if not isinstance(answer, Lost):
                self._deaths_in_a_row = 0
                for _, outcome in answer:
                    self._known.add(task.subject, outcome)
                yield from answer
                continue
            self._known.forget(worker)
            self._count(answer)
            if deaths + 1 < MOST_DEATHS:
                self._waiting.append((task, deaths + 1))  # behind the rest
                continue
            why = f"{MOST_DEATHS} workers were lost while they tried it: {answer.why}"
            for candidate in task.candidates:
                yield candidate, Outcome("crashed", detail=why)

    def _give_out(self) -> None:
        for worker in self._workers.idle():
            if worker in self._running or not self._waiting:
                continue
            task, deaths = self._waiting.popleft()
            self._running[worker] = task, deaths, time.monotonic()
            news = self._known.news(worker, task.subject)
            self._workers.send(worker, replace(task, known=news))
        if self._running:
            self._lonely_since = None
            return
        now = time.monotonic()
        self._lonely_since = self._lonely_since or now
        if self._waiting and now - self._lonely_since > PATIENCE:
            raise WorkerError(f"no worker has come for {PATIENCE:.0f} s")

    def _late(self) -> Iterator[tuple[str, Lost]]:
        """Workers that have not said anything for so long that they are given up."""
        now = time.monotonic()
        for worker, (_, _, since) in list(self._running.items()):
            if now - since > SECONDS:
                self._workers.give_up(worker, hangs=True)
                yield worker, Lost(f"nothing was heard for {SECONDS:.0f} s")

    def _count(self, lost: Lost) -> None:
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= MOST_IN_A_ROW:
            n = self._deaths_in_a_row
            raise WorkerError(f"{n} workers were lost one after the other: {lost.why}")

    def close(self) -> None:
        for worker in self._running:
            self._known.forget(worker)
            self._workers.give_up(worker)
        self._running.clear()


def to_record(task: Task) -> dict[str, Any]:
    """A task as it is sent: its knobs are JSON, its subject is pickled."""
    return {
        "subject": task.subject,
        "candidates": [candidate.to_record() for candidate in task.candidates],
        "incumbent": task.incumbent.to_record(),
        "confirms": task.confirms,
        "known": [asdict(outcome) for outcome in task.known],
    }


def of_record(record: Mapping[str, Any]) -> Task:
    """The task that ``to_record`` describes."""
    return Task(
        record["subject"],
        tuple(Candidate.of_record(knobs) for knobs in record["candidates"]),
        Candidate.of_record(record["incumbent"]),
        record["confirms"],
        tuple(Outcome(**outcome) for outcome in record["known"]),
    )
