"""Definitions as texts in which every extent is a name: the same layer at other sizes is equal.

A fixed extent becomes a name ``F0``, ``F1``, ... wherever it is one: in types, in ranges, as
the stride of a split index, as the place where a part begins, and as what a mean divides by.
Extents that one variable walks through are one name; extents that are equal by chance are two.
Every other number stays.  With the values of the names in their places the text is that of the
definition again, so definitions that differ in more than extents never share a template.

Example:
    f(float(64, 768) x), t(i) / 768 where i in 0:64
    f(float(F0, F1) x), t(i) / F1 where i in 0:F0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tcfuse.tc.ast import (
    Access,
    AssignKind,
    Binary,
    Cast,
    Comprehension,
    Const,
    Def,
    Expr,
    Param,
    Unary,
    Var,
    post_order,
)
from tcfuse.tc.canonical import canonical, size_order
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.rebuild import rebuild
from tcfuse.types import DType, TensorType
from tcfuse.wisdom.extents import Extents, Slot


def template_of(checked: CheckedDef) -> tuple[str, tuple[int | str, ...]]:
    """The template of a definition, and what each name in it stands for.

    Returns:
        The text, and for each of its names in order the number, or the definition's own name
        of a size that is not fixed.
    """
    extents = Extents.of(checked)
    fixed = extents.names()
    definition = _named(checked, extents)
    order = size_order(definition, checked.sizes)
    values = tuple(fixed.get(name, name) for name in order)
    return canonical(definition, fixed=fixed.keys(), sizes=checked.sizes), values


def _named(checked: CheckedDef, extents: Extents) -> Def:
    """The definition with a name for every fixed extent."""
    definition, sums = checked.definition, _sums(checked, extents)
    return replace(
        definition,
        params=tuple(_typed(param, extents) for param in definition.params),
        returns=tuple(_typed(param, extents) for param in definition.returns),
        body=tuple(
            _Names(number, extents, sums).statement(item)
            for number, item in enumerate(definition.body)
        ),
    )


def _typed(param: Param, extents: Extents) -> Param:
    if param.type is None:
        return param
    shape = tuple(
        extents.name(("dim", param.name, axis)) or size
        for axis, size in enumerate(param.type.shape)
    )
    return replace(param, type=TensorType(param.type.dtype, shape))


def _sums(checked: CheckedDef, extents: Extents) -> dict[str, tuple[Slot, ...]]:
    """For each tensor that a sum over fixed extents writes: those extents."""
    found: dict[str, tuple[Slot, ...]] = {}
    for number, statement in enumerate(checked.statements):
        item = statement.comprehension
        slots: tuple[Slot, ...] = tuple(("high", number, name) for name in statement.reduction)
        slots = tuple(slot for slot in slots if slot in extents.values)
        if item.assign is AssignKind.ADD_RESET and slots:
            found[item.tensor] = slots
    return found


@dataclass(frozen=True, slots=True)
class _Names:
    """Puts names for extents into one statement."""

    number: int
    extents: Extents
    sums: Mapping[str, tuple[Slot, ...]]

    def statement(self, item: Comprehension) -> Comprehension:
        """The statement with names in it."""
        ranges = (
            replace(
                r,
                low=self._bound("low", r.name, r.low),
                high=self._bound("high", r.name, r.high),
            )
            for r in item.ranges
        )
        return replace(
            item,
            value=rebuild(item.value, self._rule),
            ranges=tuple(ranges),
            lets=tuple(replace(let, value=rebuild(let.value, self._rule)) for let in item.lets),
            exists=tuple(rebuild(e, self._rule) for e in item.exists),
        )

    def _bound(self, place: str, variable: str, bound: Expr) -> Expr:
        name = self.extents.name((place, self.number, variable))
        return Var(name) if name is not None and isinstance(bound, Const) else bound

    def _rule(self, node: Expr) -> Expr:
        """An expression whose operands have their names already."""
        match node:
            case Access(tensor, subscripts):
                named = (self._subscript(tensor, k, s) for k, s in enumerate(subscripts))
                return replace(node, subscripts=tuple(named))
            case Binary("*" | "/", left, right):
                left, right = self._mean(left, right), self._mean(right, left)
                return replace(node, left=left, right=right)
            case _:
                return node

    def _mean(self, number: Expr, other: Expr) -> Expr:
        """What a sum is divided by, or multiplied with, when that is how many it added."""
        while isinstance(other, Cast | Unary):
            other = other.operand
        if not isinstance(number, Const) or not isinstance(other, Access):
            return number
        slots = self.sums.get(other.tensor, ())
        count, value = self.extents.product(slots), number.value
        if not slots or count is None or isinstance(value, bool):
            return number
        if isinstance(value, int):
            return self._product(slots) if value == count else number
        shown = Cast(DType.FLOAT32, self._product(slots))
        if value == count:
            return shown
        return Binary("/", Const(1.0), shown) if value == 1 / count else number

    def _subscript(self, tensor: str, axis: int, subscript: Expr) -> Expr:
        """A subscript: strides of split indices, and where a part of a tensor begins."""
        if isinstance(subscript, Var | Const):
            return subscript
        order = [n.name for n in post_order(subscript) if isinstance(n, Var)]
        rank = sum(1 for slot in self.extents.values if slot[:2] == ("dim", tensor))
        dims: list[Slot] = [("dim", tensor, k) for k in range(axis, axis + rank)]

        def rule(node: Expr) -> Expr:
            match node:
                case Binary("*", Var(name), Const() as number):
                    return replace(node, right=self._tail(number, self._after(order, name)))
                case Binary("*", Const() as number, Var(name)):
                    return replace(node, left=self._tail(number, self._after(order, name)))
                case Binary("/", _, Const() as number):
                    return replace(node, right=self._tail(number, dims[1:]))
                case Binary("%", _, Const() as number):
                    return replace(node, right=self._tail(number, dims[:1]))
                case Binary("+", Var(name), Const() as number):
                    return replace(node, right=self._multiple(number, name))
                case Binary("-", Var(name), Const() as number):
                    return replace(node, right=self._tail(number, [("low", self.number, name)]))
                case _:
                    return node

        return rebuild(subscript, rule)

    def _after(self, order: Sequence[str], name: str) -> list[Slot]:
        """The extents of the variables that a subscript has behind ``name``."""
        return [("high", self.number, other) for other in order[order.index(name) + 1 :]]

    def _tail(self, number: Const, slots: Sequence[Slot]) -> Expr:
        """``number`` as the product of the last of those extents, if it is that."""
        for start in reversed(range(len(slots))):
            if self.extents.product(slots[start:]) == number.value:
                return self._product(slots[start:])
        return number

    def _multiple(self, number: Const, name: str) -> Expr:
        """``number`` as so many parts of a tensor, each as long as the range of a variable."""
        slot: Slot = ("high", self.number, name)
        extent = self.extents.values.get(slot)
        if extent is None or not isinstance(number.value, int) or number.value % extent:
            return number
        count, one = number.value // extent, self._product((slot,))
        return number if count < 1 else one if count == 1 else Binary("*", Const(count), one)

    def _product(self, slots: Iterable[Slot]) -> Expr:
        names = [Var(str(self.extents.name(slot))) for slot in slots]
        product: Expr = names[0]
        for name in names[1:]:
            product = Binary("*", product, name)
        return product
