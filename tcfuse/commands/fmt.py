"""``tcfuse fmt``: TC files laid out in the one way."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from tcfuse.commands.progress import print_lines
from tcfuse.commands.sources import STDIN, read_sources, shown
from tcfuse.store import write_file
from tcfuse.tc.format import format_text


def run(paths: Sequence[Path], *, check: bool, diff: bool) -> int:
    """Format files in place, or standard input to standard output; the exit status.

    Args:
        paths: Files, or ``-``.
        check: Write nothing, and list what would change; the status is 1 if there is any.
        diff: Write nothing, and print what would change.
    """
    changed = False
    # All files are read and laid out before the first is written.
    for path, before, after in [
        (p, t, format_text(t, shown(p))) for p, t in read_sources(paths)
    ]:
        changed |= before != after
        if diff:
            print_lines(_difference(shown(path), before, after))
        elif check:
            print_lines([f"would change {shown(path)}"] if before != after else [])
        elif path == STDIN:
            sys.stdout.write(after)
        elif before != after:
            write_file(path, after.encode())
            print_lines([f"changed {path}"])
    return int(check and changed)


def _difference(name: str, before: str, after: str) -> list[str]:
    """A unified diff, empty when nothing changes."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), name, f"{name} (formatted)", lineterm=""
    )
    return list(lines)
