"""Candidates given out to workers, any of which may die at any moment.

A worker has one task at a time, so that what it measures has its device to itself.  A task
whose worker died is given once more, to another; one that has taken two workers with it is
reported as crashed, so that it costs the run no more of them.

Half of all candidates have a text that another one has.  So where there are several workers,
one says first what text a candidate has: it goes on only where nobody has measured that text,
or is at it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tcfuse.errors import WorkerError
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.tasks import Known, Lost, Outcomes, Task

MOST_DEATHS = 2  # of the workers of one candidate
MOST_IN_A_ROW = 8  # deaths without an answer between: it is not the candidates' fault
SECONDS = 900.0  # the longest that one candidate may take, with all its own time limits
PATIENCE = 60.0  # how long to wait for a worker when there is none
TURN = 0.5  # how often to look for workers that came, and for those that are late


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


@dataclass(frozen=True, slots=True)
class _Turn:
    """A task that waits, or is with a worker.

    Attributes:
        deaths: Of workers that had it.
        since: When it was given out.
        source: The text that is measured; empty where that is not known.
    """

    task: Task
    deaths: int = 0
    since: float = 0.0
    source: str = ""


class _Round:
    """Tasks that wait, and those that are with a worker."""

    def __init__(self, workers: Workers, tasks: Sequence[Task], known: Known) -> None:
        self._workers = workers
        self._known = known
        self._waiting = deque(map(_Turn, tasks))
        self._running: dict[str, _Turn] = {}
        self._alike: dict[str, list[_Turn]] = {}  # by text, while it is measured
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
            turn = self._running.pop(worker)
            if isinstance(answer, Lost):
                yield from self._lost(worker, turn, answer)
            else:
                yield from self._answered(worker, turn, answer)

    def _answered(
        self, worker: str, turn: _Turn, answer: Outcomes
    ) -> Iterator[tuple[Candidate, Outcome]]:
        self._deaths_in_a_row = 0
        for candidate, outcome in answer:
            if outcome.status != "made":
                self._known.add(turn.task.subject, outcome)
                yield candidate, outcome
            elif (known := self._known.of(turn.task.subject, outcome.source)) is not None:
                yield candidate, known
            elif outcome.source in self._alike:
                self._alike[outcome.source].append(turn)
            else:
                if outcome.source:
                    self._alike[outcome.source] = []
                self._send(worker, replace(turn, source=outcome.source), asks=False)
        yield from self._settled(turn.source)

    def _lost(
        self, worker: str, turn: _Turn, lost: Lost
    ) -> Iterator[tuple[Candidate, Outcome]]:
        self._known.forget(worker)
        self._count(lost)
        if turn.deaths + 1 < MOST_DEATHS:
            self._waiting.append(_Turn(turn.task, turn.deaths + 1))  # behind the rest
        else:
            why = f"{MOST_DEATHS} workers were lost while they tried it: {lost.why}"
            for candidate in turn.task.candidates:
                yield candidate, Outcome("crashed", detail=why)
        yield from self._settled(turn.source)

    def _settled(self, source: str) -> Iterator[tuple[Candidate, Outcome]]:
        """Nobody measures that text any more: what becomes of those that have it."""
        for turn in self._alike.pop(source, ()):
            if (known := self._known.of(turn.task.subject, source)) is None:
                self._waiting.append(turn)
                continue
            for candidate in turn.task.candidates:
                yield candidate, known

    def _give_out(self) -> None:
        idle = [name for name in self._workers.idle() if name not in self._running]
        several = len(idle) + len(self._running) > 1
        for worker in idle:
            if not self._waiting:
                break
            turn = self._waiting.popleft()
            self._send(worker, turn, asks=several and not turn.task.confirms)
        if self._running:
            self._lonely_since = None
            return
        now = time.monotonic()
        self._lonely_since = self._lonely_since or now
        if self._waiting and now - self._lonely_since > PATIENCE:
            raise WorkerError(f"no worker has come for {PATIENCE:.0f} s")

    def _send(self, worker: str, turn: _Turn, *, asks: bool) -> None:
        self._running[worker] = replace(turn, since=time.monotonic())
        news = self._known.news(worker, turn.task.subject)
        self._workers.send(worker, replace(turn.task, known=news, asks=asks))

    def _late(self) -> Iterator[tuple[str, Lost]]:
        """Workers that have not said anything for so long that they are given up."""
        now = time.monotonic()
        for worker, turn in list(self._running.items()):
            if now - turn.since > SECONDS:
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
