"""Statements that never run, because a dimension has no elements, read nothing.

What they read may not exist (``X[1000:]`` of three elements), and a view of nothing has no
strides.  They stay, so that everything returned is written and a sum of nothing is 0.

Rewrite:
    Y(i, j) = X(i + 1000, j) where i in 0:0, j in 0:N  ->  Y(i, j) = 0 where ...
"""

from __future__ import annotations

from dataclasses import replace

from tcfuse.tc.ast import Comprehension, Expr
from tcfuse.tc.draft import Draft, bounds, copy_statement
from tcfuse.tc.literals import literal
from tcfuse.tc.pool import Pool
from tcfuse.tc.rename import index_name


def read_nothing(draft: Draft, pool: Pool) -> Draft:
    """``draft`` with a constant as the value of every statement that never runs."""

    def zero(tensor: str) -> Expr:
        return pool.add(literal(draft.tensors[tensor].dtype, 0))

    body = [replace(s, value=zero(s.tensor)) if _never_runs(s) else s for s in draft.body]
    views = []
    for view in draft.views:
        shape = draft.tensors[view.result].shape
        if 0 in shape:
            names = tuple(map(index_name, range(len(shape))))
            body.append(copy_statement(view.result, zero(view.result), names, shape))
        else:
            views.append(view)
    return replace(draft, body=tuple(body), views=tuple(views))


def _never_runs(statement: Comprehension) -> bool:
    """Whether some variable has no value, whatever the sizes are."""
    for domain in statement.ranges:
        low, high = bounds(domain)
        extent = high - low
        if extent.is_constant and extent.constant <= 0:
            return True
    return False
