"""The fixed extents of a definition, and which of them are one and the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tcfuse.tc.ast import Access, Const, Var, post_order
from tcfuse.tc.checked import CheckedDef, CheckedStatement

STRUCTURE = 1
"""An extent that small says what is broadcast: it is no size."""

Slot: TypeAlias = tuple[str, str | int, str | int]
"""Where an extent stands: ``("dim", tensor, axis)``, ``("low", statement, variable)`` or
``("high", statement, variable)``."""


@dataclass(slots=True)
class Extents:
    """The fixed extents of a definition, those that are one and the same together."""

    prefix: str
    values: dict[Slot, int] = field(default_factory=dict)
    parents: dict[Slot, Slot] = field(default_factory=dict)

    @classmethod
    def of(cls, checked: CheckedDef) -> Extents:
        """Every fixed extent, joined to those that a variable ties it to."""
        found = cls(_unused("fixed_", str(checked.definition)))
        for name, kind in checked.tensors.items():
            for axis, size in enumerate(kind.shape):
                if isinstance(size, int):
                    found.add(("dim", name, axis), size)
        for number, statement in enumerate(checked.statements):
            for r in statement.ranges:
                for place, bound in (("low", r.low), ("high", r.high)):
                    if isinstance(bound, Const) and isinstance(bound.value, int):
                        found.add((place, number, r.name), bound.value)
            for tensor, axis, variable in _bare(statement):
                for place in ("low", "high"):
                    found.join((place, number, variable), ("dim", tensor, axis))
        found._join_parts(checked)
        return found

    def _join_parts(self, checked: CheckedDef) -> None:
        """A part of a tensor begins where another one ends."""
        ends: dict[tuple[str, int, int], Slot] = {}
        for place in ("high", "low"):
            for number, statement in enumerate(checked.statements):
                item = statement.comprehension
                for axis, variable in enumerate(item.indices):
                    slot: Slot = (place, number, variable)
                    if slot in self.values:
                        value = self.values[slot]
                        self.join(slot, ends.setdefault((item.tensor, axis, value), slot))

    def add(self, slot: Slot, value: int) -> None:
        """One more, unless it is so small that it says how the definition is built."""
        if value > STRUCTURE:
            self.values[slot] = value
            self.parents[slot] = slot

    def join(self, one: Slot, other: Slot) -> None:
        """They are one extent, if they are equal."""
        value = self.values.get(one)
        if value is not None and value == self.values.get(other):
            self.parents[self.root(one)] = self.root(other)

    def root(self, slot: Slot) -> Slot:
        """The slot that stands for all that are one with ``slot``."""
        while self.parents[slot] != slot:
            slot = self.parents[slot]
        return slot

    def name(self, slot: Slot) -> str | None:
        """The name of the extent at ``slot``; ``None`` when there is no fixed one."""
        if slot not in self.values:
            return None
        return self.prefix + "_".join(map(str, self.root(slot)))

    def names(self) -> dict[str, int]:
        """The value of every name."""
        return {str(self.name(slot)): value for slot, value in self.values.items()}

    def product(self, slots: Iterable[Slot]) -> int | None:
        """The extents at those places multiplied; ``None`` unless all are fixed ones."""
        result = 1
        for slot in slots:
            if slot not in self.values:
                return None
            result *= self.values[slot]
        return result


def _unused(prefix: str, text: str) -> str:
    """``prefix``, longer if a name in ``text`` may begin with it."""
    while prefix in text:
        prefix += "_"
    return prefix


def _bare(statement: CheckedStatement) -> Iterator[tuple[str, int, str]]:
    """Tensor, dimension and variable of every subscript that is a variable alone."""
    item = statement.comprehension
    for axis, index in enumerate(item.indices):
        yield item.tensor, axis, index
    for expr in item.values:
        for node in post_order(expr):
            if isinstance(node, Access):
                for axis, subscript in enumerate(node.subscripts):
                    if isinstance(subscript, Var):
                        yield node.tensor, axis, subscript.name
