"""``tcfuse tune``: kernels are tuned, and what comes of each is told while it goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcfuse.commands.progress import percentage, print_lines, print_table, progress
from tcfuse.errors import OptionError
from tcfuse.options import parse_shapes, parse_sizes
from tcfuse.tuning.budget import seconds_of, shown
from tcfuse.tuning.campaign import Search
from tcfuse.tuning.kept import Wisdom
from tcfuse.tuning.report import check_suffix
from tcfuse.tuning.run import Order, report_of, subjects
from tcfuse.tuning.run import run as run_order
from tcfuse.tuning.tuned import INTERRUPTED, State, Tuned
from tcfuse.wisdom.database import Database

STOPPED = 130


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for.

    Attributes:
        wisdom: Where what is found goes, beside the cache.
        report: Where a page, a plot or JSON goes.
    """

    model: Path
    time_budget: str
    only: tuple[str, ...]
    wisdom: Path | None
    report: Path | None
    again: bool
    quiet: bool


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes in measurements, as they were written."""

    size: tuple[str, ...] = ()
    dim: tuple[str, ...] = ()
    input_shapes: tuple[str, ...] = ()


def run(
    wanted: Wanted,
    search: Search,
    sizes: Sizes,
    options: Mapping[str, Any],
    where: tuple[int, int, str],
) -> int:
    """Tune, keep, print the table; the exit status.

    Args:
        wanted: What is tuned.
        search: How.
        sizes: In measurements.
        options: Of ``optimize``.
        where: Threads of a call, workers, and the address of a scheduler.
    """
    order = _order(wanted, search, sizes, options, where)
    if wanted.report is not None:
        check_suffix(wanted.report)
    with progress(wanted.quiet) as show:
        found = subjects(order, show)
    kernels: list[Tuned] = []
    with Database.default() as database:
        with _shown(wanted.quiet) as told:
            for tuned in run_order(order, found.tasks, database, told):
                kernels.append(tuned)
        problems = list(database.problems)
    interrupted = any(k.ended == INTERRUPTED for k in kernels)
    if wanted.wisdom is not None:
        Wisdom(tuple(kernels)).save(wanted.wisdom)
    report = report_of(order, found, kernels)
    if wanted.report is not None:
        report.write(wanted.report)
    if not wanted.quiet:
        print_table(report.header, report.rows())
        print_lines(report.summary())
    for line in problems:
        print(f"note: {line}", file=sys.stderr)
    if interrupted:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
    return STOPPED if interrupted else 0


def _order(
    wanted: Wanted,
    search: Search,
    sizes: Sizes,
    options: Mapping[str, Any],
    where: tuple[int, int, str],
) -> Order:
    """The command line as an order.

    Raises:
        OptionError: Something in it cannot be.
    """
    threads, workers, scheduler = where
    is_file = wanted.model.suffix == ".tc"
    if is_file and (sizes.dim or sizes.input_shapes):
        raise OptionError("--dim and --input-shapes are of models; use --size N=8")
    if sizes.size and not is_file:
        raise OptionError("--size is of files of definitions; use --dim N=8")
    of_model = {
        "dim": parse_sizes("--dim", sizes.dim),
        "input_shapes": parse_shapes(list(sizes.input_shapes)),
    }
    return Order(
        wanted.model,
        seconds_of(wanted.time_budget),
        search,
        wanted.only,
        threads,
        workers,
        scheduler,
        wanted.again,
        wanted.wisdom,
        parse_sizes("--size", sizes.size),
        {**options, **of_model},
    )


@contextmanager
def _shown(quiet: bool) -> Iterator[Callable[[State], None]]:
    """A function that shows how a search goes, on a terminal."""
    with percentage(quiet) as show:
        yield lambda state: show(described(state), min(state.elapsed / state.seconds, 1.0))


def described(state: State) -> str:
    """A state as a line."""
    where = f"{state.name} ({state.place} of {state.count})"
    if not state.number:
        return f"{where}: with default knobs"
    parts = [f"generation {state.number}"]
    if (last := state.generation) is not None and last.best:
        parts.append(f"last {last.best:.2f}/{last.median:.2f}/{last.worst:.2f}")
    parts.append(f"best {state.best:.2f}")
    parts.append(f"{state.done} tried, {state.failed} failed")
    parts.append(f"{shown(max(state.seconds - state.elapsed, 0))} left")
    return f"{where}: {', '.join(parts)}"
