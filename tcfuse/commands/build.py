"""``tcfuse build``: a file of definitions in, a library of ONNX operators out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tcfuse.commands.progress import print_table, progress
from tcfuse.commands.sources import STDIN
from tcfuse.commands.tc_file import chosen, definitions_of, warn
from tcfuse.errors import InputError, OptionError
from tcfuse.mapping_options import MappingOptions
from tcfuse.options import parse_sizes


@dataclass(frozen=True, slots=True)
class Order:
    """What is built and where it goes."""

    file: Path
    output: Path | None
    functions: tuple[str, ...]
    sizes: tuple[str, ...]
    quiet: bool

    @property
    def target(self) -> Path:
        """The path of what is written, without a suffix."""
        if self.output is None and self.file == STDIN:
            raise OptionError("say with -o where the library of standard input goes")
        output = self.output or self.file.with_suffix("")
        target = output.with_suffix("") if output.suffix == ".so" else output
        if target.name in ("", ".."):
            raise OptionError(f"-o {output} is a folder; write {output / 'NAME'}")
        if target.exists() and not target.is_dir():
            raise InputError(f"{target}: a file is in the way of the models; use another -o")
        return target


def run(
    order: Order,
    naming: tuple[str | None, str, Sequence[str]],
    mapping: MappingOptions,
    switches: tuple[bool, bool],
) -> int:
    """Build, print a table of the operators; the exit status.

    Args:
        order: What and where.
        naming: Domain, prefix, and ``OLD=NEW`` for single operators.
        mapping: Knobs of every kernel.
        switches: Whether to leave out what cannot be compiled (the exit status then is 1), and
            whether to run every kernel beside its definition.
    """
    from tcfuse.layers.build import BuildOptions, build_layers
    from tcfuse.layers.describe import signature

    domain, prefix, renamed = naming
    target, sizes = order.target, parse_sizes("--size", order.sizes)
    options = BuildOptions(domain, prefix, parse_names(renamed), mapping, sizes, *switches)
    definitions = definitions_of(order.file, sizes, mapping)
    names = dict.fromkeys(order.functions)
    wanted = tuple(chosen(definitions, name) for name in names) or definitions
    if not order.quiet:
        warn(wanted)
    with progress(order.quiet) as show:
        built = build_layers(wanted, target, options, show)
    for name, reason in built.failed.items():
        print(f"error: {name} was left out: {reason}", file=sys.stderr)
    if not order.quiet:
        rows = (
            (o.name, o.domain, shown_error(built.errors.get(o.name)), signature(o.checked))
            for o in built.operators
        )
        print_table(("operator", "domain", "error", "definition"), rows)
        count = len(built.operators)
        noun = "operator" if count == 1 else "operators"
        print(f"{built.library}: {count} {noun}, described in {built.page}")
    return int(bool(built.failed))


def shown_error(error: float | None) -> str:
    """The error of a kernel in the table; a dash where it was not measured."""
    return "-" if error is None else f"{error:.1e}"


def parse_names(texts: Sequence[str]) -> dict[str, str]:
    """``["softmax=Softmax"]`` as a mapping.

    Raises:
        OptionError: An item is not ``OLD=NEW``, or one name is given twice.
    """
    names: dict[str, str] = {}
    for text in texts:
        old, _, new = text.partition("=")
        if not (old and new):
            raise OptionError(f"--name {text!r} is not OLD=NEW, for example --name f=MyLayer")
        if old in names:
            raise OptionError(f"--name {text}: {old} is already called {names[old]}")
        names[old] = new
    return names
