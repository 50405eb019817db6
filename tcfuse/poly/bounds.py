"""Which accesses are shown to stay inside their tensors, and which are checked at run time."""

from __future__ import annotations

import numpy as np

from tcfuse.errors import UnsupportedError
from tcfuse.poly import isl
from tcfuse.poly.guards import Guard, guards
from tcfuse.poly.scop import Scop, Statement, accesses, affine_text
from tcfuse.tc.ast import Access, Binary, Cast, Const, Expr, Unary, Var, post_order, walk
from tcfuse.types import DType

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "="}


def check_bounds(scop: Scop) -> tuple[int, int]:
    """How many accesses were proved, and how many are left to run-time checks.

    Raises:
        UnsupportedError: An affine access that nothing guards may leave its tensor.
    """
    proved = at_run_time = 0
    for statement in scop.statements:
        written = statement.comprehension
        guard_of = guards(written.values)
        target = Access(written.tensor, tuple(Var(n) for n in written.indices))
        for access in (target, *accesses(statement)):
            inside = [
                inside_by_type(scop, access, k) or stays_inside(scop, statement, access, k)
                for k in range(len(access.subscripts))
            ]
            if all(inside):
                proved += 1
            elif False in inside and not guard_of.get(id(access)):
                raise UnsupportedError(f"an access of {access.tensor} may leave the tensor")
            else:
                at_run_time += 1
    return proved, at_run_time


def stays_inside(
    scop: Scop, statement: Statement, access: Access, position: int
) -> bool | None:
    """Whether one subscript lies inside its dimension in every instance of ``statement``.

    ``None`` when it depends on data.
    """
    subscript = access.subscripts[position]
    size = scop.checked.tensors[access.tensor].shape[position]
    ranges = {r.name: r for r in statement.ranges}
    if isinstance(subscript, Var) and subscript.name in ranges:
        r = ranges[subscript.name]
        if isinstance(r.low, Const) and r.low.value >= 0 and affine_text(r.high) == str(size):
            return True
    text = _known_text(subscript, statement)
    return None if text is None else _never(scop, statement, _outside(text, size))


def inside_by_type(scop: Scop, access: Access, position: int) -> bool:
    """Whether one subscript is a short integer, maybe moved, whose type keeps it inside."""
    subscript, size = access.subscripts[position], scop.checked.tensors[access.tensor].shape
    offset = 0
    match subscript:
        case Binary("+", inner, Const(int(offset))):
            subscript = inner
        case _:
            pass
    match subscript, size[position]:
        case Cast(DType.INT32 | DType.INT64, Access(tensor)), int(extent):
            dtype = scop.checked.tensors[tensor].dtype
            if dtype.is_float or dtype.bytes > 2 or dtype is DType.BOOL:
                return False
            limits = np.iinfo(dtype.numpy)
            return limits.min + offset >= 0 and limits.max + offset < extent
        case _:
            return False


def guard_keeps_inside(
    scop: Scop, statement: Statement, access: Access, position: int, guard: Guard
) -> bool:
    """Whether one affine subscript lies inside its dimension wherever ``guard`` holds."""
    written = statement.comprehension
    roots = written.values
    conditions = {id(node): node for root in roots for node in post_order(root)}
    holds = [_holds(conditions[key], expected, statement) for key, expected in guard]
    text = affine_text(access.subscripts[position])
    assert text is not None, "a subscript that depends on data is checked at run time"
    size = scop.checked.tensors[access.tensor].shape[position]
    return _never(scop, statement, " and ".join((*holds, _outside(text, size))))


def _holds(condition: Expr, expected: bool, statement: Statement) -> str:
    """An affine condition that is true at least where ``condition`` is ``expected``."""
    match condition:
        case Unary("!", operand):
            return _holds(operand, not expected, statement)
        case Binary("&&" | "||" as operator, left, right):
            both = (operator == "&&") == expected
            parts = (_holds(side, expected, statement) for side in (left, right))
            return f"({(' and ' if both else ' or ').join(parts)})"
        case Binary(operator, left, right) if operator in _OPPOSITE:
            a, b = _known_text(left, statement), _known_text(right, statement)
            if a is not None and b is not None:
                wanted = operator if expected else _OPPOSITE[operator]
                return f"({a} {'=' if wanted == '==' else wanted} {b})"
        case Var(name):
            for let in statement.comprehension.lets:
                if let.name == name:
                    return _holds(let.value, expected, statement)
        case _:
            pass
    return "1 = 1"


def _known_text(expr: Expr, statement: Statement) -> str | None:
    """``expr`` as isl writes it, unless it is not quasi-affine or depends on a let."""
    lets = {let.name for let in statement.comprehension.lets}
    return None if _names(expr) & lets else affine_text(expr)


def _outside(text: str, size: int | str) -> str:
    return f"({text} < 0 or {text} >= {size})"


def _never(scop: Scop, statement: Statement, condition: str) -> bool:
    """Whether ``condition`` holds in no instance of ``statement``."""
    bounds = [
        f"{affine_text(r.low)} <= {r.name} < {affine_text(r.high)}" for r in statement.ranges
    ]
    head = f"[{', '.join(scop.checked.sizes)}] -> "
    where = " and ".join((*bounds, condition))
    names = ", ".join(statement.iterators)
    found = isl.Set.read_from_str(scop.context, f"{head}{{ [{names}] : {where} }}")
    return bool(found.intersect_params(scop.parameters).is_empty())


def _names(expr: Expr) -> set[str]:
    return {node.name for node in walk(expr) if isinstance(node, Var)}
