"""Candidates measured on this machine, each compiled and run in processes of its own.

A candidate becomes text (isl in a process that is killed when it takes too long), then a
library (the C++ compiler, bounded too), then it is checked and timed in a process that was
forked for it.  The next candidates are built meanwhile, but only one is timed at a time.
Whatever one does costs one line.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from tcfuse.errors import UnsupportedError
from tcfuse.tuning.building import Compile, Compiling
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.making import Built, Making
from tcfuse.tuning.messages import MOST_POINTS, Contender, Job, Limits, Report, Setup
from tcfuse.tuning.process import Measuring
from tcfuse.tuning.racing import CONFIRM, RUNS, Race
from tcfuse.tuning.timed import TIMED, outcome_of

log = logging.getLogger(__name__)

REFERENCE_S = 60.0  # for checking the kernel with default knobs
LEAST_CHECK_S = 2.0
PATIENCE = 5  # times what checking the kernel with default knobs took
DRIFT = 0.10


@dataclass(slots=True)
class LocalEvaluator:
    """``protocols.Evaluator`` for the CPU of this machine.

    Attributes:
        workers: Candidates that are built at the same time.
        race: How long each is timed.
        most_points: Instances of statements up to which outputs are held against float64.
        compile: Makes the text of a candidate.
    """

    workers: int = 1
    race: Race = field(default_factory=Race)
    most_points: int = MOST_POINTS
    compile: Compile = field(default_factory=Compiling)
    _session: _Session | None = None

    def evaluate(
        self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """The outcome of each candidate as soon as there is one, in any order.

        Raises:
            UnsupportedError: The kernel with default knobs cannot be measured.
        """
        return self._of(subject).evaluate(candidates, incumbent, self.race)

    def confirm(
        self, subject: Subject, candidates: Sequence[Candidate], rules: Race = CONFIRM
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """A longer run of all candidates beside each other and the kernel with default knobs.

        Raises:
            UnsupportedError: The kernel with default knobs cannot be measured.
        """
        return iter(self._of(subject).confirm(candidates, rules))

    def learn(self, subject: Subject, outcomes: Sequence[Outcome]) -> None:
        """Do not measure texts again that others have measured on such a machine.

        Raises:
            UnsupportedError: The kernel with default knobs cannot be measured.
        """
        self._of(subject).learned.update((outcome.source, outcome) for outcome in outcomes)

    def made(self, subject: Subject, candidate: Candidate) -> Outcome:
        """Whether there is such a kernel, and its text; the outcome where that is known.

        Raises:
            UnsupportedError: The kernel with default knobs cannot be measured.
        """
        return self._of(subject).made(candidate)

    def drift(self) -> float:
        """How far apart the reference's times were, relative to their median."""
        return 0.0 if self._session is None else self._session.drift()

    def close(self) -> None:
        """End every process."""
        if self._session is not None:
            self._session.close()
            self._session = None
        if isinstance(self.compile, Compiling):
            self.compile.stop()

    def _of(self, subject: Subject) -> _Session:
        if self._session is None or self._session.subject != subject:
            if self._session is not None:
                self._session.close()
            self._session = _Session.start(subject, self)
        return self._session


@dataclass(slots=True)
class _Session:
    """One subject's processes and what is known of its candidates."""

    subject: Subject
    making: Making
    measuring: Measuring
    folder: tempfile.TemporaryDirectory[str]
    pool: ThreadPoolExecutor
    reference: Built = field(default_factory=Built)
    limits: Limits = field(default_factory=Limits)
    usual_s: float = 0.0
    built: dict[tuple[Candidate, bool], Future[Built]] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    learned: dict[str, Outcome] = field(default_factory=dict)
    reference_s: list[float] = field(default_factory=list)
    warned: bool = False

    @classmethod
    def start(cls, subject: Subject, evaluator: LocalEvaluator) -> _Session:
        """Everything that candidates are held against.

        Raises:
            UnsupportedError: The kernel with default knobs cannot be measured.
        """
        setup = Setup(
            subject.definition,
            subject.interface,
            dict(subject.sizes),
            subject.threads,
            evaluator.most_points,
        )
        measuring = Measuring(setup)
        measuring.start()
        folder = tempfile.TemporaryDirectory(prefix="tcfuse-tune-")
        session = cls(
            subject,
            Making(subject, evaluator.compile, Path(folder.name)),
            measuring,
            folder,
            ThreadPoolExecutor(evaluator.workers, thread_name_prefix="tcfuse-build"),
        )
        try:
            session._measure_reference(evaluator.race)
        except BaseException:
            session.close()
            raise
        return session

    def _measure_reference(self, rules: Race) -> None:
        self.reference = self._build(Candidate()).result()
        if (failed := self.reference.failed) is not None:
            raise UnsupportedError(f"there is no kernel with default knobs: {failed.detail}")
        assert self.reference.contender is not None
        limits = Limits(REFERENCE_S, memory=self.limits.memory)
        report = self.measuring.run(Job((self.reference.contender,), None, limits))
        if report.status != "ok":
            sentence = f"{report.status}: {report.detail}"
            raise UnsupportedError(f"the kernel with default knobs cannot be used: {sentence}")
        check_s = max(LEAST_CHECK_S, PATIENCE * report.check_s)
        self.usual_s = report.run_s
        self.limits = replace(limits, check_s=check_s, race_s=check_s + 10.0)
        twice = self.measuring.run(Job((self.reference.contender,) * 2, rules, self.limits))
        itself = self._read([twice], 1, self.reference.source)
        self.outcomes[itself.source] = replace(itself, speedup=1.0)
        how = report.note.split()
        if how[0] != "float64":
            log.info("%s: %s", self.subject.name, _ANSWERS[how[0]])

    def evaluate(
        self, candidates: Sequence[Candidate], incumbent: Candidate, rules: Race
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """``LocalEvaluator.evaluate``."""
        best = self._build(incumbent)
        asked = dict.fromkeys(candidates)
        futures = {self._build(each, wanted=not self.learned): each for each in asked}
        try:
            for future in as_completed(futures):
                begin = time.perf_counter()
                built = future.result()
                outcome = self._outcome(built, best.result(), rules)
                seconds = built.seconds + time.perf_counter() - begin
                building = round(built.seconds, 4)
                yield (
                    futures[future],
                    replace(outcome, seconds=round(seconds, 4), building=building),
                )
        finally:
            for future in futures:
                future.cancel()
            self.built = {c: f for c, f in self.built.items() if not f.cancelled()}

    def _outcome(self, built: Built, best: Built, rules: Race) -> Outcome:
        if built.failed is not None:
            return built.failed
        if (known := self._known(built.source)) is not None:
            return known
        assert built.contender is not None
        assert self.reference.contender is not None
        beside = [self.reference.contender]
        if best.contender is not None and best.source not in (
            self.reference.source,
            built.source,
        ):
            beside.append(best.contender)
        contenders = (*beside, built.contender)
        job = Job(contenders, rules, self.limits, usual_s=self.usual_s)
        report = self.measuring.run(job)
        outcome = self._read([report], -1, built.source)
        self.outcomes[built.source] = outcome
        return outcome

    def confirm(
        self, candidates: Sequence[Candidate], rules: Race
    ) -> list[tuple[Candidate, Outcome]]:
        """``LocalEvaluator.confirm``."""
        built = {c: self._build(c) for c in candidates}
        made = {c: future.result() for c, future in built.items()}
        usable = {b.source: b.contender for b in made.values() if b.contender is not None}
        usable.pop(self.reference.source, None)
        found = self._confirmed(usable, rules)
        found[self.reference.source] = self.outcomes[self.reference.source]
        return [(c, b.failed or found[b.source]) for c, b in made.items()]

    def _confirmed(self, usable: Mapping[str, Contender], rules: Race) -> dict[str, Outcome]:
        """All of them in one process; each alone where one of them fails there."""
        assert self.reference.contender is not None
        rest = tuple(usable.values())
        if not rest:
            return {}
        limits = replace(self.limits, check_s=len(rest) * self.limits.check_s)
        job = Job((self.reference.contender, *rest), rules, limits, len(rest))
        reports = [self.measuring.run(replace(job, turn=turn)) for turn in range(RUNS)]
        failed = [report for report in reports if report.status not in TIMED]
        if not failed:
            return {
                source: self._read(reports, k, source) for k, source in enumerate(usable, 1)
            }
        if len(rest) == 1:
            return {source: self._read(failed, 1, source) for source in usable}
        found: dict[str, Outcome] = {}
        for source, contender in usable.items():
            found |= self._confirmed({source: contender}, rules)
        return found

    def _read(self, reports: Sequence[Report], position: int, source: str) -> Outcome:
        """The outcome of the contender at that position, of one run or several alike."""
        for report in reports:
            if report.times and len(report.times[0]) > 1:
                self.reference_s.append(median(report.times[0]))
                self._warn()
        return outcome_of(reports, position, source)

    def drift(self) -> float:
        """``LocalEvaluator.drift``."""
        times = self.reference_s
        return (max(times) - min(times)) / median(times) if times else 0.0

    def _warn(self) -> None:
        if not self.warned and (drift := self.drift()) > DRIFT:
            self.warned = True
            log.warning(
                "%s: the machine drifts: the same kernel took %.0f %% more or less time in "
                "this session; ratios are paired",
                self.subject.name,
                100 * drift,
            )

    def made(self, candidate: Candidate) -> Outcome:
        """``LocalEvaluator.made``."""
        built = self.pool.submit(self.making.text, candidate).result()
        if built.failed is not None:
            return built.failed
        return self._known(built.source) or Outcome("made", source=built.source)

    def _known(self, source: str) -> Outcome | None:
        """What came of a text, here or elsewhere."""
        return self.outcomes.get(source) or self.learned.get(source)

    def _build(self, candidate: Candidate, *, wanted: bool = True) -> Future[Built]:
        """A library, but where only the outcome is wanted and others know it."""
        key = candidate, wanted
        if key not in self.built:
            known = frozenset() if wanted else self.learned.keys()
            self.built[key] = self.pool.submit(self.making.library, candidate, known)
        return self.built[key]

    def close(self) -> None:
        """End every process."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        if isinstance(self.making.compile, Compiling):
            self.making.compile.interrupt()
        self.measuring.stop()
        self.pool.shutdown(wait=True)
        if isinstance(
            self.making.compile, Compiling
        ):  # the next session has processes of its own
            self.making.compile.stop()
        self.folder.cleanup()


_ANSWERS = {
    "default": "too large for float64: outputs are held against those of the default knobs",
    "near": "outputs may be as far from float64 as those of the default knobs",
}
