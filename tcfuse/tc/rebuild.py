"""Rewriting expressions from the leaves up, without recursion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcfuse.tc.ast import Comprehension, Expr, fold
from tcfuse.tc.pool import with_children


def rebuild(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """``expr`` with ``rule`` applied to every node whose operands are already rewritten."""
    return fold(expr, lambda node, operands: rule(with_children(node, operands)))


def rebuild_statement(statement: Comprehension, rule: Callable[[Expr], Expr]) -> Comprehension:
    """``statement`` with ``rule`` applied to every expression in it."""
    return replace(
        statement,
        value=rebuild(statement.value, rule),
        ranges=tuple(
            replace(r, low=rebuild(r.low, rule), high=rebuild(r.high, rule))
            for r in statement.ranges
        ),
        lets=tuple(replace(let, value=rebuild(let.value, rule)) for let in statement.lets),
        exists=tuple(rebuild(e, rule) for e in statement.exists),
    )
