"""Rewriting an expression from the leaves up, without recursion."""

from __future__ import annotations

from collections.abc import Callable

from tcfuse.tc.ast import Expr, fold
from tcfuse.tc.pool import with_children


def rebuild(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """``expr`` with ``rule`` applied to every node whose operands are already rewritten."""
    return fold(expr, lambda node, operands: rule(with_children(node, operands)))
