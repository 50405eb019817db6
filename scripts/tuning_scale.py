"""How the tuner scales: candidates a minute of 1 to 256 workers, and what limits it.

``python -m scripts.tuning_scale --record`` tunes one kernel with one worker of this machine, a
core, and writes what each candidate took to docs/tuning_scale.csv; a cluster of workers
that do nothing tells what messages take.  Without flags the loop of the tuner is simulated from
that table, for several populations, and docs/tuning_scale.svg is drawn.  ``--check 1 2`` tries
the recorded candidates with so many workers and prints the simulation beside it.

A worker builds and measures one candidate at a time.  It also makes the kernel with default
knobs once, and that of each new incumbent; a text that one has timed, or is timing, is not
timed again: several workers say what text they have, and are told whether to go on.
The client hands out candidates one after the other, and waits for the last of a generation.
What is lost is named: ``generation`` (waiting for its last candidate), ``message``, ``setup``,
and ``incumbent``.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from statistics import median

from tcfuse.mapping_options import MappingOptions
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.tc.unparse import unparse
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.cluster import evaluator
from tcfuse.tuning.measure import LocalEvaluator
from tcfuse.tuning.protocols import Evaluator, Sampler
from tcfuse.tuning.samplers import ELITES, POPULATION, samplers
from tcfuse.tuning.space import Space
from tcfuse.tuning.workers import WorkersEvaluator

TABLE = Path("docs/tuning_scale.csv")
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
POPULATIONS = (POPULATION, 64, 256, 1024)
STEADY = 0  # stands for a search without generations
BUDGET_S = 300.0  # of one kernel: ``--time-budget 5m``
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e5aa8", "#555")
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 320, 70, 40

KERNEL = """
def layer(float(M, K) X, float(K, N) W, float(N) B) -> (Y) {
  P(m, n) +=! X(m, k) * W(k, n)
  Y(m, n) = fmax(P(m, n) + B(n), 0.0)
}
"""
SIZES = {"M": 64, "K": 256, "N": 128}


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


def subject() -> Subject:
    """The kernel that is tuned."""
    form = kernel_form(check(parse(KERNEL), affine=False))
    return Subject("layer", unparse(form.definition), form.interface, SIZES)


def search() -> Sampler:
    """The search, which asks for the same candidates when it is told the same."""
    return samplers["genetic"](
        Space.of(subject()), 0, population=POPULATION, generations=1000, elites=ELITES
    )


def tuned(measuring: Evaluator, seconds: float) -> Iterator[tuple[float, Outcome]]:
    """A search for so long: when each outcome came, in seconds since the beginning."""
    sampler, begin = search(), time.monotonic()
    known: dict[Candidate, Outcome] = {}
    while True:
        asked = list(sampler.ask())
        fresh = [candidate for candidate in dict.fromkeys(asked) if candidate not in known]
        for candidate, outcome in measuring.evaluate(subject(), fresh, fastest(known)):
            known[candidate] = outcome
            yield time.monotonic() - begin, outcome
            if time.monotonic() - begin > seconds:
                return
        sampler.tell([(candidate, known[candidate]) for candidate in asked])


def again(measuring: Evaluator, trials: Sequence[Trial]) -> tuple[float, float]:
    """Seconds of the recorded search, with the same candidates; of its first generation."""
    sampler, begin, first = search(), time.monotonic(), 0.0
    known: dict[Candidate, Outcome] = {}
    while len(known) < len(trials):
        asked = list(sampler.ask())
        fresh = [candidate for candidate in dict.fromkeys(asked) if candidate not in known]
        fresh = fresh[: len(trials) - len(known)]
        best = fastest(known)
        for candidate in fresh:
            trial = trials[len(known)]
            known[candidate] = Outcome("ok", 1.0, trial.speedup, source=trial.source)
        n_found = sum(1 for _ in measuring.evaluate(subject(), fresh, best))
        if n_found != len(fresh):
            raise AssertionError(f"{n_found} outcomes of {len(fresh)} candidates")
        sampler.tell(
            [(candidate, known[candidate]) for candidate in asked if candidate in known]
        )
        first = first or time.monotonic() - begin
    return time.monotonic() - begin, first


def fastest(known: Mapping[Candidate, Outcome]) -> Candidate:
    """The incumbent; the default while nothing is faster."""
    best = max(known, key=lambda candidate: known[candidate].fitness, default=Candidate())
    return best if best in known and known[best].fitness > 1.0 else Candidate()


def recorded(seconds: float) -> list[Row]:
    """What candidates take with one worker, and what happens beside."""
    measuring = WorkersEvaluator(1, LocalEvaluator)
    try:
        found = list(tuned(measuring, seconds))
    finally:
        measuring.close()
    at, first = found[0]
    beside = [Row("setup", 0.0, round(at - first.seconds, 3)), Row("message", 0.0, messages())]
    return [*beside, *(Row.of(outcome) for _, outcome in found)]


class Nothing:
    """An evaluator that takes no time."""

    def evaluate(
        self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """See ``protocols.Evaluator``."""
        return ((candidate, Outcome("ok")) for candidate in candidates)

    def confirm(
        self, subject: Subject, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """See ``protocols.Evaluator``."""
        return self.evaluate(subject, candidates, Candidate())

    def learn(self, subject: Subject, outcomes: Sequence[Outcome]) -> None:
        """See ``remote.Sharing``."""

    def made(self, subject: Subject, candidate: Candidate) -> Outcome:
        """See ``remote.Sharing``."""
        return Outcome("ok")

    def close(self) -> None:
        """See ``protocols.Evaluator``."""


def messages(n: int = 400) -> float:
    """Seconds that a cluster takes for a candidate that takes none.

    Client, scheduler and workers share a process here, so it is more than what only one of them
    can do at a time.
    """
    import distributed

    from scripts.tuning_scale import Nothing as Named  # where a worker finds it

    with distributed.LocalCluster(
        n_workers=8, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        measuring = evaluator(cluster.scheduler_address, Named)
        asked = [Candidate(MappingOptions(unroll=1 + k)) for k in range(n)]
        list(measuring.evaluate(subject(), asked[:20], Candidate()))
        begin = time.perf_counter()
        list(measuring.evaluate(subject(), asked, Candidate()))
        seconds = (time.perf_counter() - begin) / n
        measuring.close()
    return round(seconds, 5)


def checked(n_workers: int, costs: Costs) -> str:
    """Candidates a minute of a real search and of a simulated one."""
    n = len(costs.trials)
    measuring = WorkersEvaluator(n_workers, LocalEvaluator)
    try:
        real = again(measuring, costs.trials)
    finally:
        measuring.close()
    expected = [
        60 * most / simulated(costs, n_workers, POPULATION, most=most).rate
        for most in (n, POPULATION)
    ]
    rates = [
        f"{60 * n / whole:.0f} a minute, {60 * (n - POPULATION) / (whole - first):.0f} "
        "after the first generation"
        for whole, first in (real, expected)
    ]
    return f"{n_workers} workers: {rates[0]}; simulated: {rates[1]}"


def drawn(found: Sequence[Scaled]) -> str:
    """Candidates a minute over the number of workers, as SVG."""
    rates = [one.rate for one in found]
    first, last = math.log10(WORKERS[0]), math.log10(WORKERS[-1])
    low, high = math.log10(min(rates)), math.log10(max(rates) * 1.3)

    def x(n_workers: int) -> float:
        return LEFT + (math.log10(n_workers) - first) / (last - first) * (WIDTH - LEFT - 30)

    def y(rate: float) -> float:
        return 10 + (HEIGHT - BOTTOM - 10) * (1 - (math.log10(rate) - low) / (high - low))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 20}">',
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT + 20}" fill="white"/>',
    ]
    ticks = [f * 10.0**k for k in range(7) for f in (1, 2, 5)]
    parts += [
        f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - 30}" stroke="#ddd"/>'
        f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:,.0f}</text>'
        for tick in ticks
        if low <= math.log10(tick) <= high
    ]
    parts += [
        f'<text x="{x(n):.1f}" y="{HEIGHT - 12}" text-anchor="middle">{n}</text>'
        for n in WORKERS
    ]
    parts.append(
        f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT + 8}" text-anchor="middle">workers</text>'
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 '
        f'{HEIGHT / 2})">candidates a minute</text>'
    )
    kinds = dict.fromkeys(one.population for one in found)
    for number, (population, colour) in enumerate(zip(kinds, COLOURS, strict=False)):
        own = [one for one in found if one.population == population]
        points = " ".join(f"{x(one.n_workers):.1f},{y(one.rate):.1f}" for one in own)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{LEFT + 20}" y="{30 + 16 * number}" fill="{colour}">{_name(population)}'
            "</text>"
        )
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _name(population: int) -> str:
    return f"population {population}" if population else "no generations"


def table(found: Sequence[Scaled]) -> str:
    """The figures as Markdown."""
    lines = ["| population | workers | candidates a minute | of n times one | limit |"]
    lines.append("|---|---|---|---|---|")
    for one in found:
        alone = next(o.rate for o in found if o.population == one.population)
        share = one.rate / (alone * one.n_workers)
        lost = one.shares.get(one.limit, 0.0)
        limit = f"{one.limit} {lost:.0%}" if lost else one.limit
        cells = (
            _name(one.population),
            one.n_workers,
            f"{one.rate:,.0f}",
            f"{share:.0%}",
            limit,
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    """Record, check, or simulate and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="tune with one worker first")
    parser.add_argument("--check", type=int, nargs="*", default=[], help="numbers of workers")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of the search that is recorded"
    )
    parser.add_argument("--table", type=Path, default=TABLE)
    arguments = parser.parse_args()
    if arguments.record:
        rows = recorded(arguments.seconds)
        with arguments.table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(Row)])
            writer.writerows(map(astuple, rows))
    costs = Costs.read(arguments.table)
    for n_workers in arguments.check:
        print(checked(n_workers, costs), flush=True)
    if arguments.check:
        return
    found = [
        simulated(costs, n_workers, population, BUDGET_S)
        for population in (*POPULATIONS, STEADY)
        for n_workers in WORKERS
    ]
    print(table(found))
    arguments.table.with_suffix(".svg").write_text(drawn(found), encoding="utf-8")


if __name__ == "__main__":
    main()
