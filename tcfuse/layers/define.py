"""``tcfuse.define``: the text of Tensor Comprehensions in, functions out."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tcfuse.errors import InputError, OptionError
from tcfuse.layers.compiling import Settings, fixes_in_text
from tcfuse.layers.layer import Layer
from tcfuse.mapping_options import MappingOptions
from tcfuse.store import read_text
from tcfuse.tc.fixing import check_with_sizes
from tcfuse.tc.parser import parse_file


class TcWarning(UserWarning):
    """A definition may not mean what it says."""


class Layers:
    """The definitions of one text, each a function: ``ops.softmax(x)``, ``ops["softmax"](x)``.

    It is iterated by name; every attribute is a definition.
    """

    __slots__ = ("_layers",)

    def __init__(self, layers: Mapping[str, Layer]) -> None:
        self._layers = dict(layers)

    def __getitem__(self, name: str) -> Layer:
        if name not in self._layers:
            raise KeyError(_unknown(name, self._layers))
        return self._layers[name]

    def __getattr__(self, name: str) -> Layer:
        if name == "_layers" or name.startswith("__"):  # asked of one that is not made yet
            raise AttributeError(name)
        if name not in self._layers:
            raise AttributeError(_unknown(name, self._layers))
        return self._layers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    def __contains__(self, name: object) -> bool:
        return name in self._layers

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._layers]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._layers.values()))


def define(
    text: str | Path,
    *,
    sizes: Mapping[str, int] | None = None,
    options: MappingOptions | None = None,
    threads: int = 1,
    quiet: bool = False,
    **knobs: Any,
) -> Layers:
    """The definitions of ``text`` as functions of arrays.

    They take NumPy arrays and whatever offers its memory on the CPU through DLPack; element
    types must be those of the definition, and shapes are checked.  The results are tensors of
    the library that all inputs come from, else NumPy arrays.  A definition is compiled at its
    first call, which says so on standard error; later calls, and later processes, find it.
    What is allowed and may not be meant gives a ``TcWarning``.

    Args:
        text: One or more definitions, or the path of a file with them.
        sizes: Values of size names to fix, which makes kernels for these alone; a size that no
            input shows must be fixed.
        options: Knobs of every kernel.
        threads: How many threads a call may use.
        quiet: Do not say what is compiled, and do not warn.
        knobs: Single knobs by name, for example ``numerics="strict"``.

    Raises:
        TcError: The text is ill-formed; the message points at the place.
        OptionError: There is no such knob, size or number of threads.
    """
    if not isinstance(threads, int) or threads < 1:
        raise OptionError(f"threads is {threads!r}; a number of at least one runs a kernel")
    if options is not None and knobs:
        raise OptionError(f"give either options= or single knobs ({', '.join(knobs)})")
    chosen = options or MappingOptions.of(knobs)
    source, filename = read(text)
    settings = Settings(chosen, threads, quiet, _whole(sizes or {}))
    parsed = parse_file(source, filename)
    definitions = check_with_sizes(parsed, settings.sizes, shown=fixes_in_text(chosen))
    findings = [f for c in definitions for f in c.warnings if f.severity == "warning"]
    for finding in findings if not quiet else ():
        warnings.warn(str(finding), TcWarning, stacklevel=2)
    return Layers({c.definition.name: Layer(c, settings) for c in definitions})


def read(text: str | Path) -> tuple[str, str]:
    """The text of definitions and the name of the file it came from.

    Raises:
        InputError: It is neither text nor a path, the text is the name of a file, or the file
            cannot be read.
    """
    if isinstance(text, Path):
        return read_text(text), str(text)
    if isinstance(text, str):
        if text.endswith(".tc") and "\n" not in text:
            raise InputError(f"{text!r} is no definition; for a file pass Path({text!r})")
        return text.removeprefix("\ufeff"), "<tc>"
    raise InputError(f"a definition is text or the Path of a file, not {type(text).__name__}")


def _whole(sizes: Mapping[str, Any]) -> dict[str, int]:
    """Sizes as plain numbers."""
    try:
        return {name: operator.index(value) for name, value in sizes.items()}
    except (AttributeError, TypeError):
        raise OptionError(f"sizes is {sizes!r}; it gives names whole numbers") from None


def _unknown(name: str, known: Mapping[str, Layer]) -> str:
    return f"no definition {name!r}; definitions are {', '.join(known) or 'none'}"
