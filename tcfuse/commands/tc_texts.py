"""The command lines of ``tcfuse check`` and ``tcfuse fmt``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcfuse.commands.examples import examples

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE.tc...",
        help="Tensor Comprehensions; - is standard input.",
        allow_dash=True,
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    epilog = examples("tcfuse check layers.tc", "tcfuse check --json - < layers.tc")
    app.command(epilog=epilog)(check)
    epilog = examples("tcfuse fmt layers.tc", "tcfuse fmt --check --diff layers.tc")
    app.command(epilog=epilog)(fmt)


def check(
    files: Files,
    json: Annotated[
        bool, typer.Option("--json", help="For editors: a list of objects.")
    ] = False,
    notes: Annotated[
        bool, typer.Option("--notes", help="Also show what is checked at run time.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors.")] = False,
) -> int:
    """Say what is wrong with definitions, and where; status 1 when something is."""
    from tcfuse.commands.check import run

    return run(files, as_json=json, notes=notes, strict=strict)


def fmt(
    files: Files,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; status 1 if something would change.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Write nothing; show what would change.")
    ] = False,
) -> int:
    """Lay out definitions in the one way, in place; words and comments stay as they are."""
    from tcfuse.commands.fmt import run

    return run(files, check=check, diff=diff)
