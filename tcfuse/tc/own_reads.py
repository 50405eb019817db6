"""Statements that read other elements of the tensor they write.

The right-hand side of ``O(i) = O(i + 1)`` means ``O`` as it was before the statement.  Loops
would overwrite what later iterations still read, so the old elements are copied first:
``O_old(i) = O(i)``, ``O(i) = O_old(i + 1)``.
"""

from __future__ import annotations

from dataclasses import replace

from tcfuse.tc.ast import (
    Access,
    AssignKind,
    Comprehension,
    Const,
    Expr,
    Range,
    Var,
    children,
    post_order,
)
from tcfuse.tc.linear import Linear
from tcfuse.tc.rebuild import rebuild


def reads_old_elements(statement: Comprehension, reduces: bool) -> bool:
    """Whether some read of the statement's own tensor is not of the element it writes.

    Args:
        statement: The statement.
        reduces: Whether it writes an element more than once, so that even that element's old
            value is gone after the first time.
    """
    written = tuple(map(Var, statement.indices))
    for expr in (statement.value, *(let.value for let in statement.lets)):
        for node in post_order(expr):
            own = isinstance(node, Access) and node.tensor == statement.tensor
            if own and (reduces or children(node) != written):
                return True
    return False


def whole(target: str, source: str, shape: tuple[Linear, ...]) -> Comprehension:
    """``target(i, j) = source(i, j)`` over all elements."""
    indices = tuple(f"i{k}" for k in range(len(shape)))
    ranges = tuple(
        Range(v, Const(0), size.expr) for v, size in zip(indices, shape, strict=True)
    )
    value = Access(source, tuple(map(Var, indices)))
    return Comprehension(target, indices, AssignKind.SET, value, ranges)


def reading(statement: Comprehension, copy: str) -> Comprehension:
    """``statement`` with every read of its own tensor from ``copy`` instead."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, Access) and node.tensor == statement.tensor:
            return replace(node, tensor=copy)
        return node

    return replace(
        statement,
        value=rebuild(statement.value, rule),
        lets=tuple(replace(let, value=rebuild(let.value, rule)) for let in statement.lets),
    )
