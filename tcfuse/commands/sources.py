"""TC files named on a command line: read, and told apart by name in what is printed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tcfuse.errors import InputError
from tcfuse.store import read_text

STDIN = Path("-")


def read_sources(paths: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """The text of each file; ``-`` is standard input.

    Raises:
        InputError: A file cannot be read.
    """
    for path in paths:
        yield path, _standard_input() if path == STDIN else read_text(path)


def _standard_input() -> str:
    try:
        return sys.stdin.read().removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError):
        raise InputError("standard input cannot be read, or is not UTF-8 text") from None


def shown(path: Path) -> str:
    """The name of a file in what is printed."""
    return "<stdin>" if path == STDIN else str(path)
