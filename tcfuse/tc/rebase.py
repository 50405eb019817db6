"""Tensors that do not start at index zero, moved there.

``O(i) = I(i - 1)`` has its first element at 1.  In memory that is element 0: every subscript of
``O`` loses 1, and so does the index that writes it: ``O(i) = I(i) where i in 0:N``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tcfuse.tc.ast import Access, Binary, Comprehension, Const, Expr, Range, Var, post_order
from tcfuse.tc.linear import Linear, linear_of
from tcfuse.tc.rebuild import rebuild

Origins = Mapping[str, tuple[Linear, ...]]
"""The lowest index of each dimension, of tensors that do not start at zero everywhere."""


def rebased(
    statement: Comprehension, ranges: Mapping[str, tuple[Linear, Linear]], origins: Origins
) -> Comprehension:
    """``statement`` over tensors that all start at zero.

    Args:
        statement: What is to be moved; its range clauses and exists clauses are dropped.
        ranges: The range of every variable, in order.
        origins: Where tensors start now.
    """
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
            return _moved(node, origins.get(node.tensor), shifts, ranges)
        return node

    zero = Linear.of(0)
    moved = {
        v: (low - shifts.get(v, zero), high - shifts.get(v, zero))
        for v, (low, high) in ranges.items()
    }
    return replace(
        statement,
        value=rebuild(statement.value, rule),
        lets=tuple(replace(let, value=rebuild(let.value, rule)) for let in statement.lets),
        ranges=tuple(Range(v, low.expr, high.expr) for v, (low, high) in moved.items()),
        exists=(),
    )


def _moved(
    read: Access,
    origin: tuple[Linear, ...] | None,
    shifts: Collection[str],
    variables: Collection[str],
) -> Access:
    """A read whose subscripts hold shifted indices already, with its own tensor moved."""
    if origin is None:
        if not shifts:
            return read
        origin = (Linear.of(0),) * len(read.subscripts)
    pairs = zip(read.subscripts, origin, strict=True)
    return Access(read.tensor, tuple(_less(e, low, shifts, variables) for e, low in pairs))


def _less(
    subscript: Expr, low: Linear, shifts: Collection[str], variables: Collection[str]
) -> Expr:
    """``subscript - low``, in its shortest form when it has changed and is affine."""
    changed = any(isinstance(n, Var) and n.name in shifts for n in post_order(subscript))
    if not (changed or low.terms or low.constant):
        return subscript
    form = linear_of(subscript, {}, frozenset(variables))
    if form is not None and form.is_affine:
        return (form - low).expr
    if not low.terms:
        if not low.constant:
            return subscript
        operator = "-" if low.constant > 0 else "+"
        return Binary(operator, subscript, Const(abs(low.constant)))
    return Binary("-", subscript, low.expr)
