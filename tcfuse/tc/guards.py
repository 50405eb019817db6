"""Which elements a statement reads whatever its ternaries say, and whether they exist."""

from __future__ import annotations

from collections.abc import Iterator

from tcfuse.tc.affine import Affine, affine
from tcfuse.tc.ast import Access, Expr, Select
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.pool import children
from tcfuse.tc.simplify import Simplifier


def unguarded(root: Expr) -> Iterator[Expr]:
    """Every node below ``root`` that is evaluated in every instance."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack += (node.condition,) if isinstance(node, Select) else children(node)


def unproved(access: Access, simplifier: Simplifier, types: ExprTypes) -> list[Affine] | None:
    """What must not be negative for the element to exist in every instance.

    Returns:
        Expressions of sizes, empty when the element always exists; ``None`` when a subscript is
        computed from data.
    """
    conditions = []
    for subscript, size in zip(
        access.subscripts, types.tensors[access.tensor].shape, strict=True
    ):
        value = affine(subscript)
        if value is None:
            return None
        low, high = simplifier.bounds_of(value)
        conditions += [low, Affine.from_size(size) - high - 1]
    return [condition for condition in conditions if not condition.never_negative]
