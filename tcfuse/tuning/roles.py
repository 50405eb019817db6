"""What integer inputs of a definition may hold: places in what they index, no zero divisors."""

from __future__ import annotations

from collections.abc import Iterator

from tcfuse.interface import Interface
from tcfuse.ort.roles import Role
from tcfuse.tc.ast import Access, Binary, Expr, Var, children
from tcfuse.tc.checked import CheckedDef
from tcfuse.types import Size

Names = frozenset[str]
NOTHING: Names = frozenset()


def roles_of(checked: CheckedDef, interface: Interface) -> dict[int, Role]:
    """What is known about each integer input, by position.

    Places count from the front: what a definition does with others is its own matter.
    """
    found = _Uses(checked)
    roles: dict[int, Role] = {}
    pairs = zip(checked.inputs, interface.inputs, strict=True)
    for position, (name, port) in enumerate(pairs):
        if port.type.dtype.is_float:
            continue
        extents = found.extents.get(name, [])
        if extents:
            numbers = [extent for extent in extents if isinstance(extent, int)]
            known = len(numbers) == len(extents)
            roles[position] = Role(0, min(numbers) if known else _only(extents))
        elif name in found.divisors:
            roles[position] = Role(1, 8, nonzero=True)
    return roles


def _only(extents: list[Size]) -> Size:
    """The extent, if all are the same; one place else, which every tensor has."""
    return extents[0] if len(set(extents)) == 1 else 1


class _Uses:
    """Where values of integer inputs go.

    Attributes:
        extents: Of the dimensions that an input's values are subscripts of.
        divisors: Inputs by which something is divided.
    """

    def __init__(self, checked: CheckedDef) -> None:
        self.extents: dict[str, list[Size]] = {}
        self.divisors: set[str] = set()
        self.checked = checked
        self.sources: dict[str, Names] = {
            name: frozenset({name})
            for name in checked.inputs
            if not checked.tensors[name].dtype.is_float
        }
        for item in checked.statements:
            written = item.comprehension
            lets: dict[str, Names] = {}
            for let in written.lets:
                lets[let.name] = self.read(let.value, lets)
            value = self.read(written.value, lets)
            self.sources[written.tensor] = self.sources.get(written.tensor, NOTHING) | value

    def read(self, root: Expr, lets: dict[str, Names]) -> Names:
        """The inputs whose values the expression's value is made of; notes uses on the way."""
        names: set[str] = set()
        for node in _outside_subscripts(root):
            match node:
                case Var(name):
                    names |= lets.get(name, NOTHING)
                case Access(tensor, subscripts):
                    names |= self.sources.get(tensor, NOTHING)
                    shape = self.checked.tensors[tensor].shape
                    for subscript, extent in zip(subscripts, shape, strict=True):
                        for name in self.read(subscript, lets):
                            self.extents.setdefault(name, []).append(extent)
                case Binary("/" | "%", _, right):
                    self.divisors |= self.read(right, lets)
                case _:
                    pass
        return frozenset(names)


def _outside_subscripts(root: Expr) -> Iterator[Expr]:
    """The nodes below ``root``, each once, but for those in subscripts."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if not isinstance(node, Access):
            stack.extend(children(node))
