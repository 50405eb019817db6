"""What a command prints besides its data: progress on a terminal, tables for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal


@contextmanager
def progress(quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A function that shows a line with the time so far; silent when not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda text: bar.update(task, description=text)


@contextmanager
def percentage(quiet: bool = False) -> Iterator[Callable[[str, float], None]]:
    """A function that shows a line and how much is done, from 0 to 1, as a bar."""
    if quiet or not sys.stderr.isatty():
        yield lambda text, done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda text, done: bar.update(task, description=text, completed=done)


def print_lines(lines: Iterable[str]) -> None:
    """Lines on standard output, as they are."""
    for line in lines:
        print(line)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Aligned columns on standard output, numbers to the right; wrapped on a terminal only."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    n_columns = len(header)
    numeric = {
        k for k in range(1, n_columns - 1) if any(line[k][:1].isdigit() for line in lines[1:])
    }
    if sys.stdout.isatty():
        _print_rich(lines, numeric)
        return
    widths = [max(len(line[k]) for line in lines) for k in range(n_columns)]
    for line in lines:
        cells = (
            text.rjust(width) if k in numeric else text.ljust(width)
            for k, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells).rstrip())


def _print_rich(lines: Sequence[tuple[str, ...]], numeric: set[int]) -> None:
    """The same for people: long cells wrap within their column."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_edge=False)
    for k, title in enumerate(lines[0]):
        justify: Literal["left", "right"] = "right" if k in numeric else "left"
        table.add_column(title, justify=justify, overflow="fold")
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    Console(highlight=False).print(table)
