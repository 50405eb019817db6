"""What tuning gains: default knobs, the genetic search's and random search's, in one run.

``python -m scripts.tuning_table [--shared DIR] [--seconds 60] [--part K/N] [--sizes N]``

The kernels are those of the papers at the papers' sizes and, with ``--shared``, those of the 21
small graphs of ``DIR/bench``, all of them taken.  Each is tuned twice on one thread for as many
seconds, by the genetic search and by random search, which know nothing of each other nor of
wisdom.  Then the three run in turn for longer, and that is what the table shows.

Every kernel is a line of ``--csv`` as soon as it is done; a run that was stopped goes on with
the same command.  ``--part 0/2`` and ``--part 1/2`` may run at the same time, each on a core of
its own (``taskset -c 0 python ...``).  ``--summary`` only prints what is there.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import importlib
import logging
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from op_library import papers
from scripts.paper_kernels.cases import cases
from tcfuse.commands.progress import print_table
from tcfuse.debug import cache_dir
from tcfuse.errors import TcfuseError
from tcfuse.forms import Form
from tcfuse.options import OptimizeOptions
from tcfuse.tc.fixing import check_with_sizes
from tcfuse.tc.parser import parse_file
from tcfuse.tuning.budget import Clock
from tcfuse.tuning.campaign import Search
from tcfuse.tuning.candidate import Candidate
from tcfuse.tuning.journal import Journal
from tcfuse.tuning.measure import LocalEvaluator
from tcfuse.tuning.report import knobs_of
from tcfuse.tuning.subjects import subjects_of_definitions, tasks_of_form
from tcfuse.tuning.tune import default_of, tune_subject
from tcfuse.tuning.tuned import INTERRUPTED, Task, Tuned, candidate_of
from tcfuse.wisdom.database import Database
from tcfuse.wisdom.versions import current_versions

SEARCHES = ("genetic", "random")
HEADER = (
    "kernel",
    "default us",
    "genetic",
    "random",
    "genetic/random",
    "error",
    "tried",
    "failed",
    "genetic's knobs",
)


@dataclass(frozen=True)
class Row:
    """What was measured of one kernel; ``genetic`` and ``random``: times the default's speed.

    Attributes:
        error: The larger standard error of both, relative.
        load: Of the machine when it ended.
    """

    kernel: str
    default_us: float
    genetic: float
    random: float
    error: float
    genetic_tried: int
    genetic_failed: int
    random_tried: int
    random_failed: int
    genetic_knobs: str
    random_knobs: str
    seconds: float
    load: float
    note: str = ""

    @classmethod
    def read(cls, record: dict[str, str]) -> Row:
        """The row of a line of the table."""
        kinds: dict[str, Any] = {"int": int, "float": float, "str": str}
        return cls(**{f.name: kinds[str(f.type)](record[f.name]) for f in fields(cls)})

    @property
    def cells(self) -> tuple[str, ...]:
        """The row for people."""
        return (
            self.kernel,
            f"{self.default_us:.1f}",
            f"{self.genetic:.3f}",
            f"{self.random:.3f}",
            f"{self.genetic / self.random:.3f}",
            f"{self.error:.1%}",
            f"{self.genetic_tried}/{self.random_tried}",
            f"{self.genetic_failed}/{self.random_failed}",
            self.genetic_knobs,
        )


# ---------------------------------------------------------------------- kernels


def kernels(shared: Path | None, most: int) -> list[tuple[str, Task]]:
    """Each kernel once, first all of them at one of their sizes, then at another one."""
    seen: set[str] = set()
    rounds: list[list[tuple[str, Task]]] = []
    counts: dict[str, int] = {}
    for name, task in (*paper_kernels(), *(micro_kernels(shared) if shared else ())):
        if task.problem.key in seen:
            continue
        seen.add(task.problem.key)
        place = counts[task.problem.family] = counts.get(task.problem.family, -1) + 1
        if place == len(rounds):
            rounds.append([])
        rounds[place].append((name, task))
    return [kernel for found in rounds[:most] for kernel in found]


def paper_kernels() -> Iterator[tuple[str, Task]]:
    """The kernels of the papers, made for their sizes."""
    for case in cases(quick=False):
        for step in case.steps:
            written = parse_file(papers.text(step.kernel), step.kernel)
            definition = [d for d in written if d.name == step.definition]
            checked = check_with_sizes(definition, step.sizes)
            sizes = " ".join(f"{name}={value}" for name, value in step.sizes.items())
            for task in subjects_of_definitions(checked, step.sizes).tasks:
                yield f"{step.definition} {sizes}", task


def micro_kernels(shared: Path) -> Iterator[tuple[str, Task]]:
    """The kernels of the small graphs."""
    import onnx

    sys.dont_write_bytecode = True  # leave that folder as it is
    sys.path.insert(0, str(shared / "bench"))
    models = importlib.import_module("micro_models")
    for name in models.BENCHES:
        model = onnx.load_from_string(models.to_onnx(name, models.make(name)))
        options = OptimizeOptions(target="cpu", gate=False, verify=False, use_wisdom=False)
        tasks = tasks_of_form(Form.plain(model), options)
        for place, task in enumerate(tasks, 1):
            yield f"micro {name}" + (f" {place}" if len(tasks) > 1 else ""), task


# ---------------------------------------------------------------------- measuring


def measured(name: str, task: Task, seconds: float, database: Database, turn: int) -> Row:
    """Tune a kernel by both searches, and run what they found in turn.

    Raises:
        KeyboardInterrupt: Somebody has had enough.
    """
    order = SEARCHES if turn % 2 == 0 else SEARCHES[::-1]
    found = {search: tuned(task, search, seconds, database) for search in order}
    speeds, error, note = compared(task, found)
    micros = [t.default_us for t in found.values() if t.default_us is not None]
    return Row(
        name,
        min(micros, default=math.nan),
        speeds["genetic"],
        speeds["random"],
        error,
        *(count(t) for s in SEARCHES for t in [found[s]] for count in (_tried, _failed)),
        *(knobs_of(found[search]) for search in SEARCHES),
        seconds,
        round(os.getloadavg()[0], 2),
        note or " ".join(t.detail for t in found.values() if t.detail),
    )


def _tried(tuned: Tuned) -> int:
    return len(tuned.trials)


def _failed(tuned: Tuned) -> int:
    return len(tuned.failures)


def tuned(task: Task, name: str, seconds: float, database: Database) -> Tuned:
    """One search, which goes on where an earlier run was stopped."""
    search = Search(name, generations=100_000)
    journal = Journal(database, f"table {seconds:g} {search.run_of(task)}")
    seeds = journal.begin([])
    evaluator = LocalEvaluator()
    try:
        found = tune_subject(
            task,
            search.made(task, seeds),
            evaluator,
            journal,
            Clock(seconds, journal.used),
            current_versions("cpu"),
        )
    finally:
        evaluator.close()
    if found.ended == INTERRUPTED:
        raise KeyboardInterrupt
    return found


def compared(task: Task, found: dict[str, Tuned]) -> tuple[dict[str, float], float, str]:
    """Times the default's speed of each search's best in one run, and their standard error."""
    default = default_of(task)
    best: dict[str, Candidate] = {}
    for name, each in found.items():
        if each.entry is not None and each.entry.knobs:
            best[name] = candidate_of(each.entry, task.subject.numerics)
    rivals = [c for c in dict.fromkeys(best.values()) if c != default]
    evaluator = LocalEvaluator()
    try:
        outcomes = dict(evaluator.confirm(task.subject, rivals)) if rivals else {}
    finally:
        evaluator.close()
    failed = [f"{o.status}: {o.detail}" for o in outcomes.values() if not o.fitness]
    speeds = dict.fromkeys(SEARCHES, 1.0)
    for name, candidate in best.items():
        speeds[name] = outcomes[candidate].fitness or math.nan
    error = max((o.error or 0.0 for o in outcomes.values()), default=0.0)
    return speeds, error, " ".join(failed)


# ---------------------------------------------------------------------- the table


def rows_of(path: Path) -> list[Row]:
    """The lines that are there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [Row.read(record) for record in csv.DictReader(file)]


def append(path: Path, row: Row) -> None:
    """One more line; several processes may write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", newline="") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        writer = csv.DictWriter(file, [f.name for f in fields(Row)], lineterminator="\n")
        if file.seek(0, os.SEEK_END) == 0:
            writer.writeheader()
        writer.writerow(asdict(row))


def geometric(numbers: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Means over all kernels, those of the papers and the small graphs."""
    groups = {
        "all": list(rows),
        "papers": [r for r in rows if not r.kernel.startswith("micro ")],
        "micro": [r for r in rows if r.kernel.startswith("micro ")],
    }
    for name, own in groups.items():
        usable = [r for r in own if r.genetic > 0 and r.random > 0]
        if not usable:
            continue
        gain, control = ([getattr(r, s) for r in usable] for s in SEARCHES)
        slower = [r.kernel for r in usable if r.genetic < 1 - max(0.01, 2 * r.error)]
        yield (
            f"{name}: {len(usable)} kernels, tuned/default {geometric(gain):.3f}, "
            f"random/default {geometric(control):.3f}, tuned/random "
            f"{geometric(gain) / geometric(control):.3f}, slower than the default by more "
            f"than noise: {', '.join(slower) or 'none'}"
        )


def show(path: Path, markdown: Path | None) -> None:
    """Print the table, and write it as Markdown where that is wanted."""
    rows = sorted(rows_of(path), key=lambda r: (r.kernel.startswith("micro "), r.kernel))
    print_table(HEADER, [row.cells for row in rows])
    lines = list(summary(rows))
    print("\n".join(lines))
    if markdown is not None:
        table = [HEADER, ("---",) * len(HEADER), *(row.cells for row in rows)]
        text = "\n".join(f"| {' | '.join(line)} |" for line in table)
        markdown.write_text(f"{text}\n\n" + "\n\n".join(lines) + "\n", encoding="utf-8")


def part_of(text: str) -> tuple[int, int]:
    """``"0/2"``: from which kernel on, and every how many-th.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    part, _, count = text.partition("/")
    if not (part.isdigit() and count.isdigit() and int(part) < int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N with K below N, as 0/2")
    return int(part), int(count)


def main() -> int:
    """Exit status: 0 done, 130 stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, metavar="DIR", help="has bench/micro_models.py")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each search")
    parser.add_argument(
        "--part", type=part_of, default="0/1", metavar="K/N", help="every N-th kernel"
    )
    parser.add_argument("--sizes", type=int, default=9, help="of one kernel, at most so many")
    parser.add_argument("--only", default="", metavar="NAME", help="kernels with it in them")
    parser.add_argument("--csv", type=Path, default=Path("docs/tuning.csv"))
    parser.add_argument("--state", type=Path, help="folder of journals; default: the cache")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true", help="name the kernels and stop")
    parser.add_argument("--summary", action="store_true", help="print what is there and stop")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    if not options.summary:
        if options.shared and not (options.shared / "bench" / "micro_models.py").exists():
            parser.error(f"{options.shared} has no bench/micro_models.py")
        part, count = options.part
        chosen = [k for k in kernels(options.shared, options.sizes) if options.only in k[0]][
            part::count
        ]
        if options.list:
            print("\n".join(name for name, _ in chosen))
            return 0
        try:
            work(chosen, options)
        except KeyboardInterrupt:
            return 130
    show(options.csv, options.markdown)
    return 0


def work(chosen: Sequence[tuple[str, Task]], options: argparse.Namespace) -> None:
    """Measure what the table does not have."""
    state = options.state or cache_dir() / "tuning_table"
    with Database(state / "journals.sqlite") as database:
        for turn, (name, task) in enumerate(chosen):
            if any(row.kernel == name for row in rows_of(options.csv)):
                continue
            start = time.monotonic()
            try:
                row = measured(name, task, options.seconds, database, turn)
            except (TcfuseError, RuntimeError, OSError) as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                continue
            append(options.csv, row)
            spent = time.monotonic() - start
            print(f"{turn + 1}/{len(chosen)} {' '.join(row.cells)} ({spent:.0f} s)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
