"""A file of definitions, read for a command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tcfuse.errors import InputError, OptionError
from tcfuse.tc.binding import find_definition
from tcfuse.tc.checked import CheckedDef


def definitions_of(file: Path, sizes: Sequence[str] = ()) -> tuple[CheckedDef, ...]:
    """Every definition of a file, checked; ``N=8`` fixes a size.

    Raises:
        InputError: The file cannot be read, or holds no definition.
        TcError: A definition is ill-formed.
        OptionError: A size is not ``NAME=NUMBER``, or no definition has it.
    """
    from tcfuse.layers.define import read
    from tcfuse.tc.fixing import check_with_sizes
    from tcfuse.tc.parser import parse_file

    text, filename = read(file)
    parsed = parse_file(text, filename)
    if not parsed:
        raise InputError(f"{file}: there is no definition in it")
    return check_with_sizes(parsed, _numbers(sizes))


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


def _numbers(texts: Sequence[str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not (name and number.isdigit()):
            raise OptionError(f"--size {text!r} is not NAME=NUMBER, for example --size N=8")
        sizes[name] = int(number)
    return sizes
