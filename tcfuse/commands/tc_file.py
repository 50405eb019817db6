"""A file of definitions, read for a command."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tcfuse.commands.sources import read_sources, shown
from tcfuse.errors import InputError, OptionError
from tcfuse.mapping_options import MappingOptions
from tcfuse.tc.binding import find_definition
from tcfuse.tc.checked import CheckedDef


def definitions_of(
    file: Path, sizes: Mapping[str, int], mapping: MappingOptions
) -> tuple[CheckedDef, ...]:
    """Every definition of a file, checked.

    Args:
        file: Where they are.
        sizes: Numbers for sizes.
        mapping: Knobs, which say when sizes become numbers.

    Raises:
        InputError: The file cannot be read, or holds no definition.
        TcError: A definition is ill-formed.
        OptionError: No definition has such a size.
    """
    from tcfuse.layers.compiling import fixes_in_text
    from tcfuse.tc.fixing import check_with_sizes
    from tcfuse.tc.parser import parse_file

    ((path, text),) = read_sources([file])
    parsed = parse_file(text, shown(path))
    if not parsed:
        raise InputError(f"{file}: there is no definition in it")
    return check_with_sizes(parsed, sizes, shown=fixes_in_text(mapping))


def warn(definitions: Sequence[CheckedDef]) -> None:
    """Print what is allowed in definitions and may not be meant."""
    for checked in definitions:
        for finding in checked.warnings:
            if finding.severity == "warning":
                print(finding, file=sys.stderr)


def chosen(definitions: Sequence[CheckedDef], name: str | None) -> CheckedDef:
    """The definition of that name; the only one when none is given.

    Raises:
        TcError: There is none.
        OptionError: There is no name, and several definitions.
    """
    if name is not None:
        definition = find_definition([c.definition for c in definitions], name)
        return next(c for c in definitions if c.definition is definition)
    if len(definitions) == 1:
        return definitions[0]
    known = ", ".join(checked.definition.name for checked in definitions)
    raise OptionError(f"say which definition with -f: {known}")
