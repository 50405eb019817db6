"""Where the sizes of a kernel come from: the dimensions of its inputs, and how to name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tcfuse.interface import Interface, Port
from tcfuse.types import Size, size_names


def dimensions(ports: Sequence[Port]) -> Iterator[tuple[int, int, Size]]:
    """Port number, dimension number and size of every dimension."""
    for i, port in enumerate(ports):
        for d, size in enumerate(port.type.shape):
            yield i, d, size


def origins(interface: Interface) -> dict[str, int]:
    """The input dimension each size is read from, counted over all inputs; derived ones lack.

    A size is read from the first dimension that consists of its name alone.
    """
    derived = {name for name, _ in interface.derived}
    found: dict[str, int] = {}
    for position, (_, _, size) in enumerate(dimensions(interface.inputs)):
        if isinstance(size, str) and size in interface.sizes and size not in derived:
            found.setdefault(size, position)
    for name in interface.sizes:
        assert name in found or name in derived, f"nothing says what size {name!r} is"
    return found


class Places:
    """Where sizes come from, in words.

    Args:
        interface: Of the kernel.
        read: What ``origins`` says.
        ports: Call the inputs by their names, not by their positions.
    """

    def __init__(self, interface: Interface, read: Mapping[str, int], *, ports: bool) -> None:
        dims = [(i, d) for i, d, _ in dimensions(interface.inputs)]
        inputs = enumerate(interface.inputs)
        names = [repr(port.name) if ports else f"input {i}" for i, port in inputs]
        self.ports, self.read = ports, read
        self.meanings = {
            name: f"dimension {dims[position][1]} of {names[dims[position][0]]}"
            for name, position in read.items()
        }
        for name, expression in interface.derived:
            formula = _explain(expression, {} if ports else self.meanings)
            self.meanings[name] = formula if ports else f"({formula})"
        self.dimensions = [
            f"dimension {d} of {names[i]}" if ports else f"input {i}, dimension {d}"
            for i, d in dims
        ]

    def rule(self, size: Size) -> str | None:
        """What a size stands for; ``None`` for a number."""
        if isinstance(size, int):
            return None
        if not self.ports:
            return _explain(size, self.meanings)
        known = [f"{n} is {self.meanings[n]}" for n in size_names([size]) if n in self.meanings]
        return f"{size} ({', '.join(known)})" if known else size


def _explain(expression: str, meanings: Mapping[str, str]) -> str:
    """An expression with each size replaced by where it comes from."""
    return re.sub(
        r"[A-Za-z_]\w*", lambda m: meanings.get(m[0], m[0].removeprefix("tcf_")), expression
    )
