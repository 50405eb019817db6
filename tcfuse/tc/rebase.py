"""Tensors that do not start at index zero, moved there.

``O(i) = I(i - 1)`` has its first element at 1.  In memory that is element 0: every subscript of
``O`` loses 1, and so does the index that writes it: ``O(i) = I(i) where i in 0:N``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from tcfuse.tc.ast import Access, Binary, Comprehension, Const, Expr, Range, Var
from tcfuse.tc.linear import Linear
from tcfuse.tc.rebuild import rebuild

Forms: TypeAlias = Mapping[str, Linear | None]
Affine: TypeAlias = Callable[[Expr, Forms], Linear | None]
Origins: TypeAlias = Mapping[str, tuple[Linear, ...]]
"""The lowest index of each dimension, of tensors that do not start at zero everywhere."""


def rebased(
    statement: Comprehension,
    ranges: Mapping[str, tuple[Linear, Linear]],
    origins: Origins,
    affine: Affine,
) -> Comprehension:
    """``statement`` over tensors that all start at zero.

    Args:
        statement: What is to be moved; its range clauses and exists clauses are dropped.
        ranges: The range of every variable, in order.
        origins: Where tensors start now.
        affine: The form of a subscript, given those of the lets, ``None`` when it has none.
    """
    forms: dict[str, Linear | None] = {}
    own = origins.get(statement.tensor, (Linear.of(0),) * len(statement.indices))
    shifts = {
        v: shift
        for v, shift in zip(statement.indices, own, strict=True)
        if shift.terms or shift.constant
    }

    def rule(node: Expr) -> Expr:
        if isinstance(node, Var) and node.name in shifts:
            return (Linear.of(node.name) + shifts[node.name]).expr
        if isinstance(node, Access):
            zeros = (Linear.of(0),) * len(node.subscripts)
            pairs = zip(node.subscripts, origins.get(node.tensor, zeros), strict=True)
            return Access(node.tensor, tuple(_less(e, low, affine, forms) for e, low in pairs))
        return node

    zero = Linear.of(0)
    moved = {
        v: (low - shifts.get(v, zero), high - shifts.get(v, zero))
        for v, (low, high) in ranges.items()
    }
    lets = []
    for let in statement.lets:
        lets.append(replace(let, value=rebuild(let.value, rule)))
        forms[let.name] = affine(lets[-1].value, forms)
    return replace(
        statement,
        value=rebuild(statement.value, rule),
        lets=tuple(lets),
        ranges=tuple(Range(v, low.expr, high.expr) for v, (low, high) in moved.items()),
        exists=(),
    )


def _less(subscript: Expr, low: Linear, affine: Affine, lets: Forms) -> Expr:
    """``subscript - low``, in its shortest form when it is affine."""
    form = affine(subscript, lets)
    if form is not None:
        return (form - low).expr
    if not low.terms:
        if not low.constant:
            return subscript
        operator = "-" if low.constant > 0 else "+"
        return Binary(operator, subscript, Const(abs(low.constant)))
    return Binary("-", subscript, low.expr)
