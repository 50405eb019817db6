"""The loop for one kernel: candidates proposed, measured, told; the best confirmed and kept.

What comes of a candidate is in the journal before anything else happens, so an interrupt costs
nothing that was measured and a killed search goes on.  The best of many noisy figures looks
better than it is: the last few are measured once more beside the default, for longer, and what
does not win by more than noise is not kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import UnsupportedError
from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.budget import Clock
from tcfuse.tuning.candidate import Candidate, Outcome
from tcfuse.tuning.journal import Journal, Trial, text_of
from tcfuse.tuning.plainest import plainest
from tcfuse.tuning.protocols import Evaluator, Sampler
from tcfuse.tuning.tuned import (
    BUDGET,
    CONVERGED,
    FAILED,
    INTERRUPTED,
    Generation,
    State,
    Task,
    Tuned,
    differences,
)
from tcfuse.wisdom.problem import Entry

log = logging.getLogger(__name__)

CONFIRMED = 3  # candidates that are measured once more
REFINED = 3  # times that the best is tried without each of its knobs, while it gets better
RESERVE = 0.15  # of the time for each of both, at most
RESERVE_S = 5.0
NOISE = 0.01  # a gain of less is none, however often it is measured
ERRORS = 2.0  # standard errors within which a gain is none

Show = Callable[[State], object]


def tune_subject(
    task: Task,
    sampler: Sampler,
    evaluator: Evaluator,
    journal: Journal,
    clock: Clock,
    versions: Mapping[str, str],
    show: Show = lambda state: None,
    note: str = "",
    forced: Collection[str] = (),
) -> Tuned:
    """Search, confirm; the entry is not recorded yet.

    Args:
        task: The kernel.
        sampler: Proposes candidates; the journal's are told to it again.
        evaluator: Measures them.
        journal: What is known of this search; everything that is measured goes there.
        clock: How much time there is.
        versions: Of an entry.
        show: Called with every outcome.
        note: Of an entry: where it comes from.
        forced: Knobs that somebody chose, as a space names them; they stay.
    """
    loop = _Loop(task, evaluator, journal, clock, show, forced)
    try:
        first = measured(task, loop.default, evaluator, journal, clock)
    except KeyboardInterrupt:
        return loop.result(None, INTERRUPTED)
    if first.micros is None:
        journal.end(FAILED)
        return loop.result(None, FAILED, f"with default knobs: {first.status}: {first.detail}")
    try:
        ended = loop.search(sampler)
        loop.refine()
    except KeyboardInterrupt:
        ended = INTERRUPTED
    except UnsupportedError as error:  # what could be measured once cannot be any more
        return loop.result(None, FAILED, str(error))
    try:
        winner, outcome = loop.confirmed()
    except UnsupportedError as error:
        return loop.result(None, FAILED, str(error))
    if ended != INTERRUPTED:
        with suppress(KeyboardInterrupt):  # what was found is there already
            winner = loop.plainest(winner)
        journal.end(ended)
    entry = Entry(
        task.problem,
        differences(winner),
        outcome.speedup or 1.0,
        outcome.micros or first.micros,
        outcome.predicted,
        versions,
        note,
    )
    return loop.result(entry, ended, spread=outcome.spread or 0.0)


@dataclass(slots=True)
class _Loop:
    """The state of one search."""

    task: Task
    evaluator: Evaluator
    journal: Journal
    clock: Clock
    show: Show
    forced: Collection[str] = ()
    generations: list[Generation] = field(default_factory=list)

    @property
    def default(self) -> Candidate:
        return default_of(self.task)

    def search(self, sampler: Sampler) -> str:
        """Generation by generation, until there is a reason to stop: that reason."""
        while not sampler.converged:
            if self._late(2):
                return BUDGET
            if not (asked := list(sampler.ask())):
                break
            fresh = [c for c in asked if self.journal.known(c) is None]
            self._show()
            with closing(self._evaluated(fresh)) as outcomes:
                for _ in outcomes:
                    self._show()
                    if self._late(2):
                        break
            told = [(c, known) for c in asked if (known := self.journal.known(c)) is not None]
            sampler.tell(told)
            came = [outcome for _, outcome in told]
            self.generations.append(Generation.of(len(self.generations) + 1, came))
            self._show()
        return BUDGET if self._late(2) else CONVERGED

    def confirmed(self) -> tuple[Candidate, Outcome]:
        """The fastest of the best few when they run beside the default for longer.

        It is the default where none wins by more than noise.
        """
        default = self.default
        usual = self.journal.known(default) or Outcome("ok")
        usual = Outcome("ok", usual.micros, 1.0, predicted=usual.predicted)
        rivals = self._best(default)
        if not rivals:
            return default, usual
        found = dict(self.evaluator.confirm(self.task.subject, rivals))
        winner = max(found, key=lambda c: found[c].fitness, default=default)
        return (winner, found[winner]) if _wins(found.get(winner)) else (default, usual)

    def refine(self) -> None:
        """Try the best without each of its knobs: some do nothing, and some harm."""
        seen: set[Candidate] = set()
        for _ in range(REFINED):
            best = next(iter(self._best(self.default)), self.default)
            if best in seen:
                return
            seen.add(best)
            self.plainest(best, reserves=1)

    def plainest(self, candidate: Candidate, *, reserves: int = 0) -> Candidate:
        """The same kernel with fewer knobs, if it can be had in the time."""
        ask = partial(self.sources, reserves=reserves)
        return plainest(candidate, self.source(candidate), ask, self.forced)

    def source(self, candidate: Candidate) -> str:
        """The digest of a candidate's kernel; empty where it has none."""
        known = self.journal.known(candidate)
        return known.source if known is not None else ""

    def sources(self, candidates: Sequence[Candidate], *, reserves: int) -> list[str]:
        """The same of several, which are tried where they were not, while there is time."""
        fresh = [c for c in candidates if self.journal.known(c) is None]
        if fresh and not self._late(reserves):
            with closing(self._evaluated(fresh)) as outcomes:
                for _ in outcomes:
                    self._show()
                    if self._late(reserves):
                        break
        return [self.source(candidate) for candidate in candidates]

    def result(
        self, entry: Entry | None, ended: str, detail: str = "", spread: float = 0.0
    ) -> Tuned:
        usual = self.journal.known(self.default)
        return Tuned(
            self.task,
            entry,
            usual.micros if usual else None,
            spread,
            tuple(self.journal),
            tuple(self.generations),
            ended,
            detail,
        )

    def _late(self, reserves: int) -> bool:
        """Whether only the time for what comes later is left."""
        one = min(RESERVE * self.clock.seconds, RESERVE_S)
        return self.clock.left <= reserves * one

    def _evaluated(self, candidates: Sequence[Candidate]) -> Generator[Outcome]:
        """Measure candidates; each outcome is in the journal when it comes."""
        incumbent = next(iter(self._best(self.default)), self.default)
        bound = self.evaluator, self.journal, self.clock
        return evaluated(self.task, candidates, incumbent, *bound)

    def _best(self, default: Candidate) -> list[Candidate]:
        """The best few that seem to be faster than the default, one of each kernel text."""
        usual = self.journal.known(default)
        seen = {usual.source} if usual and usual.source else set()
        best: list[Candidate] = []
        for trial in sorted(self.journal, key=_rank):
            outcome = trial.outcome
            if outcome.fitness <= 1 or len(best) == CONFIRMED:
                break
            if trial.candidate != default and outcome.source not in seen:
                best.append(trial.candidate)
                seen |= {outcome.source} - {""}
        return best

    def _show(self) -> None:
        outcomes = [trial.outcome for trial in self.journal]
        self.show(
            State(
                self.task.subject.name,
                self.generations[-1] if self.generations else None,
                len(self.generations) + 1,
                max((outcome.fitness for outcome in outcomes), default=1.0),
                len(outcomes),
                sum(not outcome.fitness for outcome in outcomes),
                self.clock.elapsed,
                self.clock.seconds,
            )
        )


def measured(
    task: Task, candidate: Candidate, evaluator: Evaluator, journal: Journal, clock: Clock
) -> Outcome:
    """What comes of one candidate, from the journal if it was tried."""
    if (known := journal.known(candidate)) is None:
        default = default_of(task)
        try:
            for outcome in evaluated(task, [candidate], default, evaluator, journal, clock):
                known = outcome
        except UnsupportedError as error:
            known = Outcome("refused", detail=str(error))
            journal.note(candidate, known, clock.elapsed)
    return known or Outcome("crashed", detail="nothing was heard of it")


def evaluated(
    task: Task,
    candidates: Sequence[Candidate],
    incumbent: Candidate,
    evaluator: Evaluator,
    journal: Journal,
    clock: Clock,
) -> Generator[Outcome]:
    """Measure candidates; each outcome is in the journal when it comes."""
    if not candidates:
        return
    outcomes = evaluator.evaluate(task.subject, candidates, incumbent)
    try:
        for candidate, outcome in outcomes:
            journal.note(candidate, outcome, clock.elapsed)
            if not outcome.fitness:
                log.info("%s: %s", task.subject.name, failure(candidate, outcome))
            yield outcome
    finally:
        if isinstance(outcomes, Generator):
            outcomes.close()  # ends what is still running


def _rank(trial: Trial) -> tuple[float, str]:
    return -trial.outcome.fitness, text_of(trial.candidate)


def _wins(outcome: Outcome | None) -> bool:
    """Whether a candidate is faster than the default by more than noise: two errors or more."""
    if outcome is None:
        return False
    return outcome.fitness > 1 + max(NOISE, ERRORS * (outcome.error or 0.0))


def failure(candidate: Candidate, outcome: Outcome) -> str:
    """A line about a candidate that cannot be used."""
    knobs = {name: v for kind in differences(candidate).values() for name, v in kind.items()}
    told = ", ".join(f"{name}={value}" for name, value in knobs.items()) or "default knobs"
    return " ".join(f"{outcome.status}: {told}: {outcome.detail}".split()).rstrip(": ")


def default_of(task: Task) -> Candidate:
    """The knobs that nobody chose."""
    mapping = MappingOptions(numerics=task.subject.numerics)
    return Candidate(mapping, CudaOptions() if task.subject.target == "cuda" else None)
