"""Rough sizes of domains and tensors, to weigh fusion; symbolic sizes count as ``TYPICAL``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tcfuse.poly import isl
from tcfuse.poly.scop import Scop, Statement
from tcfuse.tc.ast import Binary, Const, Expr, Range, Unary, Var
from tcfuse.tc.parser import parse_expr
from tcfuse.types import Size

TYPICAL = 128


def value_of(expr: Expr) -> int:
    """The value of an affine bound with every size name at ``TYPICAL``."""
    match expr:
        case Const(value):
            return int(value)
        case Var():
            return TYPICAL
        case Unary("-", x):
            return -value_of(x)
        case Binary("+", a, b):
            return value_of(a) + value_of(b)
        case Binary("-", a, b):
            return value_of(a) - value_of(b)
        case Binary("*", a, b):
            return value_of(a) * value_of(b)
        case Binary("/", a, b):
            return value_of(a) // max(value_of(b), 1)
        case _:
            return TYPICAL


def size_value(size: Size) -> int:
    """A size as a number, at least 1."""
    return max(value_of(Const(size) if isinstance(size, int) else parse_expr(size)), 1)


def domain_volume(statement: Statement) -> int:
    """Number of instances."""
    return prod(_length(r) for r in statement.ranges)


def extent(statement: Statement, iterator: str) -> int:
    """Number of values an iterator takes."""
    return _length(next(r for r in statement.ranges if r.name == iterator))


def _length(r: Range) -> int:
    """Number of values in a range; ``H - KH + 1`` stands for many, whatever ``KH`` is."""
    length = value_of(r.high) - value_of(r.low)
    known = isinstance(r.high, Const) and isinstance(r.low, Const)
    return max(length, 1 if known else TYPICAL // 2)


def fixed_extent(statement: Statement, iterator: str) -> int | None:
    """Number of values an iterator takes; ``None`` when it depends on sizes."""
    r = next(r for r in statement.ranges if r.name == iterator)
    match r.low, r.high:
        case Const(low), Const(high):
            return max(int(high) - int(low), 0)
        case _:
            return None


def tensor_volume(scop: Scop, tensor: str) -> int:
    """Number of elements of a tensor."""
    volume = 1
    for size in scop.checked.tensors[tensor].shape:
        volume *= size_value(size)
    return volume


def shared_volume(scop: Scop, first: Sequence[str], second: Sequence[str]) -> int:
    """Elements of the largest tensor that both groups of statements touch; 0 when none."""
    touched = []
    for names in (first, second):
        tensors: set[str] = set()
        for union in (scop.reads, scop.writes):
            for access in isl.maps_of(union):
                if access.get_tuple_name(isl.dim_type.in_) in names:
                    tensors.add(access.get_tuple_name(isl.dim_type.out)[2:])
        touched.append(tensors)
    return max((tensor_volume(scop, t) for t in touched[0] & touched[1]), default=0)
