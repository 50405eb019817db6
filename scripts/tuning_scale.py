"""How the tuner scales: candidates a minute of 1 to 256 workers, and what limits it.

``python -m scripts.tuning_scale --record`` tunes one kernel with one worker of this machine, a
core, and writes what each candidate took to docs/tuning_scale.csv; a cluster of workers
that do nothing tells what messages take.  Without flags the loop of the tuner is simulated from
that table, for several populations, and docs/tuning_scale.svg is drawn.  ``--check 1 2`` tries
the recorded candidates with so many workers and prints the simulation beside it.  What is
simulated: ``scripts.tuning_simulation``.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from scripts.tuning_scale_report import WORKERS, drawn, table
from scripts.tuning_simulation import Costs, Row, Trial, simulated
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
POPULATIONS = (POPULATION, 64, 256, 1024)
STEADY = 0  # stands for a search without generations
BUDGET_S = 300.0  # of one kernel: ``--time-budget 5m``

KERNEL = """
def layer(float(M, K) X, float(K, N) W, float(N) B) -> (Y) {
  P(m, n) +=! X(m, k) * W(k, n)
  Y(m, n) = fmax(P(m, n) + B(n), 0.0)
}
"""
SIZES = {"M": 64, "K": 256, "N": 128}


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
        n_workers=8, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
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
