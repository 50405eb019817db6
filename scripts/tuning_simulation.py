"""The tuner's loop without kernels: how many candidates a minute so many workers would try.

A worker builds and measures one candidate at a time.  It also makes the kernel with default
knobs once, and that of each new incumbent; a text that one has timed, or is timing, is not
timed again: several workers say what text they have, and are told whether to go on.
The client hands out candidates one after the other, and waits for the last of a generation.
What is lost is named: ``generation`` (waiting for its last candidate), ``message``, ``setup``,
and ``incumbent``.
"""

from __future__ import annotations

import csv
import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import median

from tcfuse.tuning.candidate import Outcome


@dataclass(frozen=True, slots=True)
class Row:
    """What one candidate took: ``candidate``; or what happens beside: ``setup``, ``message``.

    Units:
        ``building``, ``measuring``: seconds.
    """

    what: str
    building: float
    measuring: float
    speedup: float = 0.0
    source: str = ""

    @classmethod
    def of(cls, outcome: Outcome) -> Row:
        """The row of an outcome."""
        measuring = round(outcome.seconds - outcome.building, 4)
        speedup = round(outcome.fitness, 3)
        return cls("candidate", outcome.building, measuring, speedup, outcome.source[:8])


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate of a simulation.

    Units:
        ``text_s``, ``library_s``, ``measuring_s``: seconds; the last two only where the text is
        new to the worker.
    """

    source: str
    text_s: float
    library_s: float
    measuring_s: float
    speedup: float


@dataclass(frozen=True, slots=True)
class Costs:
    """What a simulation is made of.

    Attributes:
        trials: Candidates in the order in which they were tried.
        setup_s: Of a worker, before its first candidate.
        message_s: Of the client for a candidate, during which it does nothing else.
    """

    trials: Sequence[Trial]
    setup_s: float
    message_s: float

    @classmethod
    def read(cls, path: Path) -> Costs:
        """What a table holds."""
        kinds = dict.fromkeys((field.name for field in fields(Row)), float)
        kinds |= {"what": str, "source": str}
        with path.open(encoding="utf-8", newline="") as file:
            rows = [
                Row(**{name: kinds[name](value) for name, value in row.items()})
                for row in csv.DictReader(file)
            ]
        beside = {row.what: row.building + row.measuring for row in rows}
        tried = [row for row in rows if row.what == "candidate"]
        return cls(trials_of(tried), beside["setup"], beside["message"])

    def trial(self, number: int) -> Trial:
        """The recorded ones again and again; each time they are other kernels."""
        turn, place = divmod(number, len(self.trials))
        found = self.trials[place]
        if turn == 0:
            return found
        return replace(found, speedup=0.0, source=f"{found.source}, {turn}")


def trials_of(rows: Sequence[Row]) -> list[Trial]:
    """Trials of the rows of candidates.

    Where a text is known only it is made, and no library: so the median of those rows tells
    what a text takes.
    """
    first: dict[str, Row] = {}
    again = []
    for row in rows:
        if first.setdefault(row.source, row) is not row:
            again.append(row.building)
    usual = median(again) if again else 0.0
    found = []
    for row in rows:
        new = first[row.source]
        library_s = max(new.building - usual, 0.0)
        text_s = row.building - library_s if new is row else row.building
        found.append(Trial(row.source, text_s, library_s, new.measuring, row.speedup))
    return found


@dataclass(frozen=True, slots=True)
class Scaled:
    """What so many workers do in the time.

    Attributes:
        rate: Candidates a minute.
        shares: Of the workers' time, by what they spend it on.
    """

    n_workers: int
    population: int
    rate: float
    shares: dict[str, float]

    @property
    def limit(self) -> str:
        """What takes most of the time that is not spent on candidates."""
        lost = {what: s for what, s in self.shares.items() if what not in ("build", "measure")}
        what = max(lost, key=lambda name: lost[name])
        return what if lost[what] > 0.02 else "nothing"


def simulated(
    costs: Costs,
    n_workers: int,
    population: int,
    budget_s: float = math.inf,
    most: float = math.inf,
) -> Scaled:
    """The tuner's loop for one kernel, for so long or so many candidates."""
    loop = _Loop(costs, n_workers)
    n_done, best = 0, 1.0
    while loop.now < budget_s and n_done < most:
        n_next = int(min(population or n_workers, most - n_done))
        generation = [costs.trial(n_done + n) for n in range(n_next)]
        for trial in generation:
            loop.give_out(trial)
        n_done += len(generation)
        fastest = max(generation, key=lambda trial: trial.speedup)
        if fastest.speedup > best:
            best, loop.incumbent = fastest.speedup, fastest
        if population:
            loop.wait()
        else:
            loop.now = min(loop.free)[0]
    end = max(loop.free)[0]
    total = sum(loop.spent.values())
    shares = {what: seconds / total for what, seconds in loop.spent.items()}
    return Scaled(n_workers, population, 60 * n_done / end, shares)


class _Loop:
    """Workers, each of which is free again at some time."""

    def __init__(self, costs: Costs, n_workers: int) -> None:
        self.costs = costs
        self.free = [(0.0, worker) for worker in range(n_workers)]
        self.libraries: list[set[str]] = [set() for _ in range(n_workers)]
        self.known: set[str] = set()  # or is measured by somebody
        self.now = 0.0
        self.client = 0.0
        self.incumbent: Trial | None = None
        self.spent: Counter[str] = Counter()

    def give_out(self, trial: Trial) -> None:
        """A candidate to the worker that is free first."""
        since, worker = heapq.heappop(self.free)
        ready = max(since, self.now)
        end = self.client = max(self.client, ready) + self.costs.message_s
        self._spend("message", end - ready)
        libraries = self.libraries[worker]
        if not libraries:
            libraries.add("")
            end += self._spend("setup", self.costs.setup_s)
        if (best := self.incumbent) is not None and best.source not in libraries:
            libraries.add(best.source)
            end += self._spend("incumbent", best.text_s + best.library_s)
        end += self._spend("build", trial.text_s)
        if trial.source not in self.known:
            self.known.add(trial.source)
            libraries.add(trial.source)
            if self.free:  # there are other workers, so this one asks first
                self.client += self.costs.message_s
                end += self._spend("message", self.costs.message_s)
            end += self._spend("build", trial.library_s)
            end += self._spend("measure", trial.measuring_s)
        heapq.heappush(self.free, (end, worker))

    def wait(self) -> None:
        """Until all workers are free: the next generation follows from what they found."""
        self.now = max(since for since, _ in self.free)
        for since, _ in self.free:
            self._spend("generation", self.now - since)
        self.free = [(self.now, worker) for _, worker in self.free]

    def _spend(self, what: str, seconds: float) -> float:
        self.spent[what] += seconds
        return seconds
