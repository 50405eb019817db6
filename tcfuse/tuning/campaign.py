"""Every kernel of a model tuned, the time shared among them by what they take.

First each kernel runs once with default knobs, which tells what it takes of a call of the
model.  The dearest comes first, and what one leaves of its time is for those after it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tcfuse.errors import OptionError
from tcfuse.store import key_of, tool_digest
from tcfuse.tuning.budget import Clock
from tcfuse.tuning.candidate import Candidate
from tcfuse.tuning.journal import Journal
from tcfuse.tuning.protocols import Evaluator, Sampler
from tcfuse.tuning.samplers import ELITES, POPULATION, samplers
from tcfuse.tuning.space import Space
from tcfuse.tuning.tune import default_of, measured, tune_subject
from tcfuse.tuning.tuned import (
    FAILED,
    INTERRUPTED,
    UNTUNED,
    State,
    Task,
    Tuned,
    candidate_of,
)
from tcfuse.wisdom.advice import TRIED
from tcfuse.wisdom.database import Database
from tcfuse.wisdom.nearest import nearest
from tcfuse.wisdom.problem import Entry
from tcfuse.wisdom.versions import current_versions, stale

log = logging.getLogger(__name__)

LEAST_S = 3.0  # of tuning a kernel; where there is less, the cheapest ones are not tuned
GENERATIONS = 100
FIRST = 0.5  # of the time for the runs with default knobs, on a machine that is very busy
SEEDS = 3  # candidates that wisdom of near sizes gives

Show = Callable[[State], object]


@dataclass(frozen=True, slots=True)
class Search:
    """How candidates are chosen.

    Attributes:
        sampler: One of ``samplers``.
        population: Candidates of a generation.
        generations: How many there are at most.
        seed: Of random numbers.
        forced: Knobs that are not searched, with their values.
    """

    sampler: str = "genetic"
    population: int = POPULATION
    generations: int = GENERATIONS
    seed: int = 0
    forced: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.sampler not in samplers:
            raise OptionError(f"no sampler {self.sampler!r}; there are {', '.join(samplers)}")

    def made(self, task: Task, seeds: Sequence[Candidate]) -> Sampler:
        """The search for a kernel."""
        return samplers[self.sampler](
            Space.of(task.subject, self.forced),
            self.seed,
            population=self.population,
            generations=self.generations,
            elites=ELITES,
            seeds=seeds,
        )

    def run_of(self, task: Task) -> str:
        """Names all that determines the candidates of a kernel's search."""
        chosen = self.sampler, self.population, self.seed, sorted(self.forced.items())
        sizes = sorted(task.subject.sizes.items())
        versions = sorted(current_versions(task.subject.target).items())
        return key_of(task.problem.key, sizes, chosen, versions, tool_digest())

    @property
    def note(self) -> str:
        """Where an entry comes from, for people."""
        return f"{self.sampler} search, seed {self.seed}"


@dataclass(slots=True)
class Campaign:
    """Kernels that are tuned one after the other.

    Attributes:
        tasks: The kernels.
        search: How.
        evaluator: Measures.
        database: Keeps journals and entries.
        seconds: For all of them.
        show: Called with every outcome.
        again: Tune also what was tuned before.
    """

    tasks: Sequence[Task]
    search: Search
    evaluator: Evaluator
    database: Database
    seconds: float = math.inf
    show: Show = lambda state: None
    again: bool = False
    _journals: dict[str, Journal] = field(default_factory=dict)

    def run(self) -> Iterator[Tuned]:
        """What comes of each kernel, as soon as it is known; an interrupt ends it well."""
        for task in self.tasks:
            journal = Journal(self.database, self.search.run_of(task))
            if self.again and journal.ended:
                journal.forget()
            self._journals[task.problem.key] = journal
        clock = Clock(self.seconds, sum(j.used for j in self._journals.values()))
        known = {task.problem.key: self._known(task) for task in self.tasks}
        yield from (_as_known(t, e) for t in self.tasks if (e := known[t.problem.key]))
        waiting = [task for task in self.tasks if known[task.problem.key] is None]
        try:
            waiting = self._by_time(waiting, clock)
        except KeyboardInterrupt:
            yield from (Tuned(task, None, None, ended=UNTUNED) for task in waiting)
            return
        for place, task in enumerate(waiting):
            takes = [self._takes(other) for other in waiting[place:]]
            begun = self.journal(task).seeds is not None  # and may lack the confirmation alone
            if not takes[0] or (clock.left < LEAST_S and not begun):
                yield self._untuned(task)
                continue
            share = max(clock.left * takes[0] / sum(takes), LEAST_S)
            tuned = self._tuned(task, min(share, clock.left), place, len(waiting))
            yield tuned
            if tuned.ended == INTERRUPTED:
                yield from map(self._untuned, waiting[place + 1 :])
                return

    def _untuned(self, task: Task) -> Tuned:
        """A kernel for which there is no time, or that cannot be measured."""
        usual = self.journal(task).known(default_of(task))
        if usual is not None and usual.micros is None:
            detail = f"with default knobs: {usual.status}: {usual.detail}"
            return Tuned(task, None, None, ended=FAILED, detail=detail)
        return Tuned(task, None, usual.micros if usual else None, ended=UNTUNED)

    def journal(self, task: Task) -> Journal:
        """What is known of a kernel's search."""
        return self._journals[task.problem.key]

    def _known(self, task: Task) -> Entry | None:
        """What an earlier run has found; ``None`` if it did not come to an end."""
        journal = self.journal(task)
        if self.again or (journal.seeds is not None and not journal.ended):
            return None
        now = current_versions(task.subject.target)
        entries = self.database.top(task.problem)
        tuned = (e for e in entries if e.note != TRIED and not stale(e.versions, now))
        return next(tuned, None)

    def _by_time(self, tasks: Sequence[Task], clock: Clock) -> list[Task]:
        """The kernels by what they take of a call, after a run of each with default knobs."""
        first = clock.elapsed
        for place, task in enumerate(tasks):
            if clock.elapsed - first <= FIRST * (clock.seconds - first):
                self._shown(State(task.subject.name, seconds=self.seconds), place, len(tasks))
                journal = self.journal(task)
                lap = Clock(math.inf, journal.used)
                measured(task, default_of(task), self.evaluator, journal, lap)
        return sorted(tasks, key=lambda task: (-self._takes(task), task.subject.name))

    def _takes(self, task: Task) -> float:
        """Microseconds of a call of the model; 0 where that is not known."""
        outcome = self.journal(task).known(default_of(task))
        return (outcome.micros or 0.0) * task.calls if outcome else 0.0

    def _tuned(self, task: Task, seconds: float, place: int, count: int) -> Tuned:
        """One kernel tuned, and what was found recorded."""
        journal = self.journal(task)
        clock = Clock(journal.used + seconds, journal.used)
        seeds = journal.begin(self._seeds(task))
        tuned = tune_subject(
            task,
            self.search.made(task, seeds),
            self.evaluator,
            journal,
            clock,
            current_versions(task.subject.target),
            lambda state: self._shown(state, place, count),
            self.search.note,
            self.search.forced,
        )
        self._record(tuned)
        return tuned

    def _seeds(self, task: Task) -> list[Candidate]:
        """Candidates to start from: what wisdom knows of this kernel, or at near sizes."""
        found: list[Candidate] = []
        problem = task.problem
        for entry in [
            *self.database.top(problem),
            *nearest(problem, self.database.family(problem)),
        ]:
            try:
                candidate = candidate_of(entry, task.subject.numerics)
            except OptionError:
                continue  # knobs of another version
            if candidate not in found:
                found.append(candidate)
        return found[:SEEDS]

    def _record(self, tuned: Tuned) -> None:
        """Keep what was found, in the place of what the same versions found before."""
        entry = tuned.entry
        if entry is None or (tuned.ended == INTERRUPTED and not entry.knobs):
            return
        kept = self.database.record(entry)
        if kept and tuned.ended != INTERRUPTED:
            older = self.database.top(entry.problem)
            same = [e for e in older if e.versions == entry.versions and e.key != entry.key]
            self.database.forget(same)

    def _shown(self, state: State, place: int, count: int) -> None:
        self.show(replace(state, place=place + 1, count=count))


def _as_known(task: Task, entry: Entry) -> Tuned:
    """A kernel that an earlier run tuned."""
    return Tuned(task, entry, entry.micros * entry.speedup)
