"""Padded copies of what a sum reads only inside its bounds.

A convolution with padding asks for each tap whether it lies inside: more work than the
multiplication, for every filter again.  A copy with zeros around it is asked once an element,
and the sum then reads it unasked; inside loops that both share (``mapping.chains``) the copy is
a slab that stays in a cache.

Rewrite:
    Y(f, x) +=! 0 <= x + k - 1 && x + k - 1 < 56 ? I(c, x + k - 1) * W(f, c, k) : 0
    ->  P(c, p) = 0 <= p - 1 && p - 1 < 56 ? I(c, p - 1) : 0
        Y(f, x) +=! P(c, x + k) * W(f, c, k)

A weight that is not finite times the zeros outside is not a number, as in ONNX Runtime, whose
convolutions pad too.

Source: "The Next 700 Accelerated Layers", section 4.5 (promotion, here of a guarded access).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcfuse.tc.affine import affine
from tcfuse.tc.ast import (
    Access,
    AssignKind,
    Binary,
    Cast,
    Comprehension,
    Const,
    Expr,
    Range,
    Select,
    Var,
)
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.pool import operands
from tcfuse.tc.rebuild import rebuild
from tcfuse.tc.rename import free_name
from tcfuse.types import TensorType

FEWEST_READS = 8  # of an element, for which it is copied
MOST_GROWTH = 2  # times as large as what it copies


@dataclass(frozen=True, slots=True)
class _Guarded:
    """An access and the dimensions in which it may lie outside.

    Attributes:
        lowest: By dimension, the lowest index that is asked about.
        extents: By dimension, the indices from there on.
    """

    access: Access
    lowest: dict[int, int]
    extents: dict[int, int]


def with_padding(checked: CheckedDef) -> CheckedDef:
    """``checked`` with a padded copy in front of each sum that gains by one."""
    types = dict(checked.tensors)
    statements: list[CheckedStatement] = []
    for item in checked.statements:
        found = _guarded(checked, item)
        if found is None:
            statements.append(item)
            continue
        name = free_name(f"{found.access.tensor}_padded", types)
        copy = _copy(found, name, types[found.access.tensor])
        types[name] = TensorType(
            types[found.access.tensor].dtype.compute,
            tuple(int(r.high.value) for r in copy.ranges if isinstance(r.high, Const)),
        )
        statements += [copy, _unguarded(item, found, name)]
    if len(statements) == len(checked.statements):
        return checked
    return replace(checked, statements=tuple(statements), tensors=types)


def _guarded(checked: CheckedDef, item: CheckedStatement) -> _Guarded | None:
    """What a sum of products reads where its guard allows, if that is worth a copy."""
    written = item.comprehension
    if not item.reduction or written.assign.operator != "+" or written.lets or written.exists:
        return None
    match written.value:
        case Select(condition, Binary("*") as product, Const(0)):
            pass
        case _:
            return None
    asked = operands(condition, "&&")
    for access in filter(None, map(_plain, operands(product, "*"))):
        found = _inside(checked, item, access, asked)
        if found is not None and _is_worth(checked, item, found):
            return found
    return None


def _plain(factor: Expr) -> Access | None:
    """The access that a factor is, which makes the product zero where it is zero."""
    while isinstance(factor, Cast):
        factor = factor.operand
    return factor if isinstance(factor, Access) else None


def _inside(
    checked: CheckedDef, item: CheckedStatement, access: Access, asked: list[Expr]
) -> _Guarded | None:
    """The access, if all that is asked is whether it lies inside its tensor."""
    shape = checked.tensors[access.tensor].shape
    lowest, extents, known = dict[int, int](), dict[int, int](), set[int]()
    for dimension, subscript in enumerate(access.subscripts):
        size, span = shape[dimension], _span(item, subscript)
        if not isinstance(size, int) or span is None or access.tensor in checked.origins:
            return None
        bounds = (Binary(">=", subscript, Const(0)), Binary("<", subscript, Const(size)))
        at = {k for k, a in enumerate(asked) if a in bounds}
        if at:
            lowest[dimension], extents[dimension] = span[0], span[1] - span[0] + 1
            known |= at
        elif span[0] < 0 or span[1] >= size:
            return None
    return _Guarded(access, lowest, extents) if known == set(range(len(asked))) else None


def _is_worth(checked: CheckedDef, item: CheckedStatement, found: _Guarded) -> bool:
    """Whether each element is read often, and the copy is not much larger."""
    shape = checked.tensors[found.access.tensor].shape
    copied = original = 1
    for dimension, size in enumerate(shape):
        original *= int(size)
        copied *= found.extents.get(dimension, int(size))
    reads = 1
    for r in item.ranges:
        if not isinstance(r.high, Const) or not isinstance(r.low, Const):
            return False
        reads *= int(r.high.value) - int(r.low.value)
    return copied <= MOST_GROWTH * original and reads >= FEWEST_READS * copied


def _copy(found: _Guarded, name: str, kind: TensorType) -> CheckedStatement:
    """``P(c, p) = 0 <= p - 1 && p - 1 < 56 ? I(c, p - 1) : 0``."""
    indices = tuple(f"p{dimension}" for dimension in range(kind.rank))
    subscripts: list[Expr] = []
    condition: Expr | None = None
    for dimension, index in enumerate(indices):
        at: Expr = Var(index)
        if dimension in found.lowest:
            low = found.lowest[dimension]
            at = Binary("+", at, Const(low)) if low else at
            size = kind.shape[dimension]
            inside = Binary("&&", Binary(">=", at, Const(0)), Binary("<", at, Const(int(size))))
            condition = inside if condition is None else Binary("&&", condition, inside)
        subscripts.append(at)
    assert condition is not None, "something is asked"
    ranges = tuple(
        Range(index, Const(0), Const(found.extents.get(d, int(kind.shape[d]))))
        for d, index in enumerate(indices)
    )
    value = Select(condition, replace(found.access, subscripts=tuple(subscripts)), Const(0))
    written = Comprehension(name, indices, AssignKind.SET, value, ranges)
    return CheckedStatement(written, ranges, ())


def _unguarded(item: CheckedStatement, found: _Guarded, name: str) -> CheckedStatement:
    """The sum without its guard, reading the copy."""
    subscripts = tuple(
        _shifted(subscript, -found.lowest[d]) if d in found.lowest else subscript
        for d, subscript in enumerate(found.access.subscripts)
    )
    copied = Access(name, subscripts)
    assert isinstance(item.comprehension.value, Select), "it is guarded"
    value = rebuild(
        item.comprehension.value.then, lambda node: copied if node == found.access else node
    )
    return replace(item, comprehension=replace(item.comprehension, value=value))


def _shifted(subscript: Expr, by: int) -> Expr:
    value = affine(subscript)
    assert value is not None, "its span is known"
    return (value + by).expr()


def _span(item: CheckedStatement, subscript: Expr) -> tuple[int, int] | None:
    """The least and the greatest value of an affine subscript; ``None`` if not known."""
    value = affine(subscript)
    if value is None:
        return None
    low = high = value.constant
    by_name = {r.name: r for r in item.ranges}
    for name, coefficient in value.terms:
        match by_name.get(name):
            case Range(_, Const(first), Const(end)):
                ends = coefficient * int(first), coefficient * (int(end) - 1)
            case _:
                return None
        low, high = low + min(ends), high + max(ends)
    return low, high
