"""What a command prints besides its data: progress on a terminal, tables for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

WIDE = 200  # columns when nobody looks: nothing is wrapped or cut


def console() -> Console:
    """Standard output; as wide as needed when it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False, soft_wrap=True)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A function that shows a line with the time so far; silent when not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda text: bar.update(task, description=text)


def print_lines(lines: Iterable[str]) -> None:
    """Lines on standard output, as they are."""
    for line in lines:
        print(line)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Aligned columns on standard output, numbers to the right."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    lines = [tuple(row) for row in rows]
    for k, title in enumerate(header):
        numeric = any(line[k][:1].isdigit() for line in lines)
        last = k == len(header) - 1
        right = numeric and not last and k > 0
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for line in lines:
        table.add_row(*line)
    console().print(table)
