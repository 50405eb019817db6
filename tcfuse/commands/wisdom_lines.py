"""The command lines of ``tcfuse wisdom``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcfuse.commands.examples import examples
from tcfuse.errors import OptionError

Device = Annotated[
    str,
    typer.Option("--device", metavar="PART", help="Only for devices with that in the name."),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    wisdom = typer.Typer(
        help="Show, exchange or remove what tuning found.", no_args_is_help=True
    )
    app.add_typer(wisdom, name="wisdom")
    epilog = examples("tcfuse wisdom list", "tcfuse wisdom list wisdom.json --templates")
    wisdom.command("list", epilog=epilog)(list_)
    epilog = examples(
        "tcfuse wisdom export wisdom.json",
        "tcfuse wisdom export epyc.json --device EPYC --verdicts",
    )
    wisdom.command("export", epilog=epilog)(export)
    wisdom.command("import", epilog=examples("tcfuse wisdom import wisdom.json"))(import_)
    epilog = examples("tcfuse wisdom merge a.json b.json -o wisdom.json")
    wisdom.command("merge", epilog=epilog)(merge)
    epilog = examples("tcfuse wisdom prune --stale", "tcfuse wisdom prune --keep 1")
    wisdom.command("prune", epilog=epilog)(prune)


def list_(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Default: the cache's wisdom.")
    ] = None,
    device: Device = "",
    templates: Annotated[
        bool, typer.Option("--templates", help="Also print the kernels' definitions.")
    ] = False,
) -> int:
    """Print what is known: the kernel, its sizes, what it gains, and with which knobs."""
    from tcfuse.commands.wisdom import list_entries

    return list_entries(file, device, templates)


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON to write.")],
    device: Device = "",
    verdicts: Annotated[
        bool,
        typer.Option("--verdicts", help="Also what runs decided about whole models."),
    ] = False,
) -> int:
    """Write the cache's wisdom as JSON that people review, commit and merge."""
    from tcfuse.commands.wisdom import export as run

    return run(file, device, verdicts=verdicts)


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export or tune wrote.")],
) -> int:
    """Merge a file into the cache's wisdom; the better of two entries stays."""
    from tcfuse.commands.wisdom import import_file

    return import_file(file)


def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What to merge.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="JSON to write.")
    ],
) -> int:
    """Write one file with the better of several files' entries."""
    from tcfuse.commands.wisdom import merge as run

    return run(files, output)


def prune(
    outdated: Annotated[
        bool, typer.Option("--stale", help="Those for other versions of tcfuse or compiler.")
    ] = False,
    keep: Annotated[
        int | None, typer.Option("--keep", min=0, metavar="N", help="All but N of each kernel.")
    ] = None,
) -> int:
    """Remove entries from the cache's wisdom."""
    from tcfuse.commands.wisdom import prune as run

    if not outdated and keep is None:
        raise OptionError("what is to go? --stale, --keep N or both")
    return run(outdated=outdated, keep=keep)
