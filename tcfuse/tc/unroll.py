"""Reductions over a few values that are chosen by index, written out.

Frameworks stack two tensors and sum over the new axis (the magnitude of a complex number, say).
Written out, the sum is a pointwise operation like any other.

Rewrite:
    Y(i) +=! (k < 1 ? A(i) : B(i)) where k in 0:2  ->  Y(i) = A(i) + B(i)
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from tcfuse.tc.ast import AssignKind, Binary, Comprehension, Const, Expr, Range, Var
from tcfuse.tc.draft import Draft, bounds, reduction_variables
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.pool import Pool
from tcfuse.tc.simplify import Simplifier
from tcfuse.tc.split import thresholds
from tcfuse.tc.work import operation_count
from tcfuse.types import DType

MOST_VALUES = 4
MOST_OPERATIONS = 400


def unroll(draft: Draft, pool: Pool) -> Draft:
    """``draft`` with short reductions that choose written out; itself when there are none."""
    types = ExprTypes(draft.tensors)
    body = tuple(_unrolled(statement, draft, types, pool) for statement in draft.body)
    changed = any(a is not b for a, b in zip(body, draft.body, strict=True))
    return replace(draft, body=body) if changed else draft


def _unrolled(
    statement: Comprehension, draft: Draft, types: ExprTypes, pool: Pool
) -> Comprehension:
    if not statement.assign.resets or draft.tensors[statement.tensor].dtype is DType.BOOL:
        return statement
    choosing = {found.variable for found in thresholds(statement)}
    for name in reduction_variables(statement):
        domain = next(r for r in statement.ranges if r.name == name)
        low, high = bounds(domain)
        extent = high - low
        if (
            name not in choosing
            or not extent.is_constant
            or not 0 < extent.constant <= MOST_VALUES
        ):
            continue
        if (
            not low.is_constant
            or extent.constant * operation_count(statement.value) > MOST_OPERATIONS
        ):
            continue
        values = range(low.constant, high.constant)
        statement = _written_out(statement, domain, values, types, pool)
    return statement


def _written_out(
    statement: Comprehension, domain: Range, values: range, types: ExprTypes, pool: Pool
) -> Comprehension:
    ranges = tuple(r for r in statement.ranges if r is not domain)
    simplify = Simplifier(pool, types, ranges)

    def term(k: int) -> Expr:
        def rule(node: Expr) -> Expr:
            named = isinstance(node, Var) and node.name == domain.name
            return Const(k) if named else simplify(node)

        return pool.rewrite(statement.value, rule, {})

    def combined(a: Expr, b: Expr) -> Expr:
        return pool.intern(Binary(statement.assign.operator, a, b))

    finished = len(ranges) == len(statement.indices)
    return replace(
        statement,
        assign=AssignKind.SET if finished else statement.assign,
        value=reduce(combined, map(term, values)),
        ranges=ranges,
    )
