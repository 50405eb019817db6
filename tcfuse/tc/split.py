"""Statements that choose by an index split into statements that need not choose.

Concatenation, padding and slicing leave ``k < 32 ? A(k) : B(k - 32)``.  Over ``k in 0:32`` the
choice is decided, and over ``k in 32:64`` too, so two statements without a choice replace one.

Rewrite:
    Y(k) = k < 32 ? A(k) : B(k - 32) where k in 0:64
    ->  Y(k) = A(k) where k in 0:32; Y(k) = B(k - 32) where k in 32:64

Source: Griebl, Feautrier, Lengauer, "Index Set Splitting", IJPP 28(6), 2000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tcfuse.tc.affine import Affine
from tcfuse.tc.ast import AssignKind, Binary, Comprehension, Const, Expr, Range, Select, Unary
from tcfuse.tc.conditions import Threshold, digit_threshold, threshold
from tcfuse.tc.draft import Draft, bounds, reduction_variables
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.literals import literal, literal_value
from tcfuse.tc.pool import Pool, post_order
from tcfuse.tc.simplify import Simplifier
from tcfuse.types import DType

MOST_PIECES = 12
MOST_STATEMENTS = 96  # of a definition: scheduling time grows faster than their number


def split(draft: Draft, pool: Pool) -> Draft:
    """``draft`` with statements split wherever that decides a choice."""
    splitter = _Splitter(draft, pool)
    body: list[Comprehension] = []
    for position, statement in enumerate(draft.body):
        room = MOST_STATEMENTS - len(body) - (len(draft.body) - position - 1)
        body += splitter.pieces(statement, min(MOST_PIECES, room))
    return replace(draft, body=tuple(body))


class _Splitter:
    """Splits the statements of one draft."""

    def __init__(self, draft: Draft, pool: Pool) -> None:
        self.draft, self.pool = draft, pool
        self.types = ExprTypes(draft.tensors)

    def pieces(self, statement: Comprehension, most: int) -> list[Comprehension]:
        """What ``statement`` becomes, in order; itself when there is nothing to decide."""
        splittable = self._splittable(statement)
        done: list[Comprehension] = []
        pending = [statement]
        while pending:
            piece = pending.pop()
            full = len(done) + len(pending) + 1 >= most
            halves = None if full else self._halves(piece, splittable)
            if halves is None:
                done.append(piece)
            else:
                pending += reversed(halves)
        return [statement] if len(done) == 1 else self._assembled(statement, done)

    def _splittable(self, statement: Comprehension) -> frozenset[str]:
        """The variables whose range may be split."""
        reduction = set(reduction_variables(statement))
        names = {r.name for r in statement.ranges}
        if self.draft.tensors[statement.tensor].dtype.is_storage:
            names -= reduction  # a sum is rounded once, at its end
        return frozenset(names)

    def _halves(
        self, piece: Comprehension, splittable: frozenset[str]
    ) -> tuple[Comprehension, Comprehension] | None:
        """``piece`` below and above the first threshold that decides something."""
        for found in thresholds(piece):
            if found.variable not in splittable:
                continue
            position, domain = next(
                (k, r) for k, r in enumerate(piece.ranges) if r.name == found.variable
            )
            low, high = bounds(domain)
            if not ((found.point - low).never_negative and (high - found.point).never_negative):
                continue
            point = found.point.expr()
            lower = self._restricted(piece, position, replace(domain, high=point))
            upper = self._restricted(piece, position, replace(domain, low=point))
            return lower, upper
        return None

    def _restricted(self, piece: Comprehension, position: int, domain: Range) -> Comprehension:
        ranges = (*piece.ranges[:position], domain, *piece.ranges[position + 1 :])
        value = piece.value
        low, high = bounds(domain)
        if high - low == Affine((), 1):  # so that what is left in a condition is seen
            value = self.pool.substitute(value, {domain.name: self.pool.add(domain.low)})
        value = self.pool.rewrite(value, Simplifier(self.pool, self.types, ranges), {})
        return replace(piece, value=value, ranges=ranges)

    def _assembled(
        self, statement: Comprehension, pieces: list[Comprehension]
    ) -> list[Comprehension]:
        """The pieces, and before them what must be stored once."""
        dtype = self.draft.tensors[statement.tensor].dtype
        if not statement.assign.is_reduction:
            if statement.tensor in self.draft.outputs:
                return pieces
            # a temporary has the shape of the first statement that writes it
            padding = next(
                (p.value for p in pieces if literal_value(p.value) is not None), None
            )
            zero = padding or self.pool.add(literal(dtype, 0))
            return [self._initial(statement, zero), *(p for p in pieces if p.value is not zero)]
        neutral = self.pool.add(identity(statement.assign, dtype))
        changing = [p for p in pieces if not _is_same_literal(p.value, neutral)]
        if not statement.assign.resets:
            return changing or pieces[:1]
        update = AssignKind(statement.assign.value.rstrip("!"))
        updates = [replace(p, assign=update) for p in changing]
        return [self._initial(statement, neutral), *updates]

    def _initial(self, statement: Comprehension, value: Expr) -> Comprehension:
        """``value`` stored everywhere that ``statement`` writes."""
        return Comprehension(
            statement.tensor,
            statement.indices,
            AssignKind.SET,
            value,
            tuple(r for r in statement.ranges if r.name in statement.indices),
        )


def thresholds(statement: Comprehension) -> Iterator[Threshold]:
    """Every threshold in a condition of ``statement``."""
    names = {r.name for r in statement.ranges}
    for node in post_order((statement.value,)):
        if not isinstance(node, Select):
            continue
        stack = [node.condition]
        while stack:
            condition = stack.pop()
            found = threshold(condition, names) or digit_threshold(condition, statement.ranges)
            if found is not None:
                yield found
            elif isinstance(condition, Unary) or (
                isinstance(condition, Binary) and condition.operator in ("&&", "||")
            ):
                operands = (
                    (condition.operand,)
                    if isinstance(condition, Unary)
                    else (condition.right, condition.left)
                )
                stack += operands


def identity(assign: AssignKind, dtype: DType) -> Expr:
    """The value a reduction starts from, as a literal."""
    if assign.operator in ("+", "*"):
        return literal(dtype, int(assign.operator == "*"))
    greatest = assign.operator == "min"
    if dtype is DType.BOOL:
        return Const(greatest)
    if dtype.is_float:
        return literal(dtype, np.inf if greatest else -np.inf)
    return literal(dtype, dtype.limits[1 if greatest else 0])


def _is_same_literal(value: Expr, neutral: Expr) -> bool:
    a, b = literal_value(value), literal_value(neutral)
    return a is not None and a == b
