"""Numbers in expressions: literals, weak and of a definite type."""

from __future__ import annotations

import numpy as np

from tcfuse.tc.ast import Cast, Const, Expr
from tcfuse.types import DType


def literal(dtype: DType, value: float | bool) -> Expr:
    """A literal of a definite type; its value is one the type holds."""
    if dtype is DType.BOOL:
        return Const(bool(value))
    if dtype.is_float:
        with np.errstate(over="ignore"):
            rounded = float(dtype.nearest(np.asarray(value, np.float64)))
        return Cast(dtype, Const(rounded))
    return Cast(dtype, Const(int(value)))


def literal_value(expr: Expr) -> int | float | None:
    """The value of a numeric literal, weak or of a definite type."""
    match expr:
        case Const(value) | Cast(_, Const(value)) if not isinstance(value, bool):
            return value
        case _:
            return None


def is_number(expr: Expr, value: float) -> bool:
    """Whether ``expr`` is the literal ``value``."""
    found = literal_value(expr)
    return found is not None and found == value
