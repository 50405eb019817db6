"""TC files named on a command line: read, and told apart by name in what is printed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tcfuse.errors import InputError

STDIN = Path("-")


def read_sources(paths: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """The text of each file; ``-`` is standard input.

    Raises:
        InputError: A file cannot be read.
    """
    for path in paths:
        try:
            if path == STDIN:
                yield path, sys.stdin.read()
            else:
                yield path, path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise InputError(f"cannot read {path}: {reason}") from error


def shown(path: Path) -> str:
    """The name of a file in what is printed."""
    return "<stdin>" if path == STDIN else str(path)
