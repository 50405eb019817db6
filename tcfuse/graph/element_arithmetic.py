"""The arithmetic models do on shapes, done on expressions.

Elements are exact.  A float element is kept when it is a number of few binary digits, so that
``Cast, Mul, Floor, Cast`` on a size comes out as the size it is at run time (below 2^24).
A comparison or a rounding is only known where it holds for all sizes, zero included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import onnx_ir as ir
import sympy

from tcfuse.graph.shape_call import Call, Elements, UnknownShapeError, element_rule, needed
from tcfuse.graph.shape_reduction import reduction_axes
from tcfuse.graph.symbols import (
    Dim,
    add,
    equal,
    floor_divide,
    maximum,
    minimum,
    multiply,
    nonnegative,
    number,
    positive,
    quotient,
    subtract,
)

INTEGERS = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL)
FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
ELEMENT_TYPES = (*INTEGERS, *FLOATS)

Scalar: TypeAlias = Callable[[Dim, Dim], Dim | None]


@element_rule("Cast")
def cast(call: Call) -> Sequence[Elements]:
    """To an integer rounds toward zero, to ``bool`` asks for "not zero"."""
    target = ir.DataType(call.attribute("to"))
    elements = needed(call, 0)
    if target in FLOATS:
        return [elements]
    if target not in INTEGERS:
        raise UnknownShapeError
    rule = _to_bool if target is ir.DataType.BOOL else _to_integer
    return [tuple(None if e is None else rule(e) for e in elements)]


def _to_integer(element: Dim) -> Dim | None:
    if isinstance(element, int) or element.is_integer:
        return element
    if nonnegative(element):
        return number(sympy.floor(element))
    return int(element) if element.is_Rational else None


def _to_bool(element: Dim) -> Dim | None:
    if isinstance(element, int):
        return int(element != 0)
    return 1 if positive(element) else None


def _div(a: Dim, b: Dim) -> Dim | None:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    exact = number(quotient(a, b))
    if isinstance(exact, int) or exact.is_integer:
        return exact
    return floor_divide(a, b) if nonnegative(a) and nonnegative(b) else None


def _mod(a: Dim, b: Dim) -> Dim | None:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    return number(sympy.Mod(a, b)) if nonnegative(a) and nonnegative(b) else None


def _fmod(a: Dim, b: Dim) -> Dim | None:
    return _mod(a, b) if nonnegative(a) and nonnegative(b) else None


def _power(a: Dim, b: Dim) -> Dim | None:
    return number(sympy.Pow(a, b)) if isinstance(b, int) and 0 <= b <= 4 else None


def _never_equal(a: Dim, b: Dim) -> bool:
    return positive(subtract(a, b)) or positive(subtract(b, a))


def _equal(a: Dim, b: Dim) -> Dim | None:
    return 1 if equal(a, b) else 0 if _never_equal(a, b) else None


def _less(a: Dim, b: Dim) -> Dim | None:
    return 1 if positive(subtract(b, a)) else 0 if nonnegative(subtract(a, b)) else None


def _less_or_equal(a: Dim, b: Dim) -> Dim | None:
    return 1 if nonnegative(subtract(b, a)) else 0 if positive(subtract(a, b)) else None


def _and(a: Dim, b: Dim) -> Dim | None:
    return int(bool(a) and bool(b))


def _or(a: Dim, b: Dim) -> Dim | None:
    return int(bool(a) or bool(b))


BINARY: dict[str, Scalar] = {
    "Add": add,
    "Sub": subtract,
    "Mul": multiply,
    "Pow": _power,
    "Min": minimum,
    "Max": maximum,
    "Equal": _equal,
    "Less": _less,
    "LessOrEqual": _less_or_equal,
    "Greater": lambda a, b: _less(b, a),
    "GreaterOrEqual": lambda a, b: _less_or_equal(b, a),
    "And": _and,
    "Or": _or,
}


def _zip(a: Elements, b: Elements, scalar: Scalar) -> Elements:
    """``scalar`` over two vectors, of which one may have a single element."""
    n = len(a) if len(b) == 1 else len(b)
    left, right = (v * n if len(v) == 1 else v for v in (a, b))
    if len(left) != len(right):
        raise UnknownShapeError
    return tuple(
        None if x is None or y is None else scalar(x, y)
        for x, y in zip(left, right, strict=True)
    )


@element_rule(*BINARY)
def binary(call: Call) -> Sequence[Elements]:
    """Element by element; ``Min`` and ``Max`` of any number of inputs."""
    result = needed(call, 0)
    for k in range(1, len(call.node.inputs)):
        result = _zip(result, needed(call, k), BINARY[call.node.op_type])
    return [result]


@element_rule("Div")
def div(call: Call) -> Sequence[Elements]:
    """Integers truncate, floats are divided exactly or not at all."""
    first = call.input(0)
    if first is not None and first.dtype in FLOATS:
        return [_zip(needed(call, 0), needed(call, 1), _float_div)]
    return [_zip(needed(call, 0), needed(call, 1), _div)]


def _float_div(a: Dim, b: Dim) -> Dim | None:
    if isinstance(b, int) and b > 0 and b & (b - 1) == 0:
        return number(sympy.Mul(a, sympy.Rational(1, b)))
    return None


@element_rule("Mod")
def mod(call: Call) -> Sequence[Elements]:
    """With the sign of the divisor; ``fmod`` only where both are not negative."""
    scalar = _fmod if call.attribute("fmod", 0) else _mod
    return [_zip(needed(call, 0), needed(call, 1), scalar)]


def _ceil(a: Dim) -> Dim | None:
    return a if isinstance(a, int) else number(sympy.ceiling(a))


def _floor(a: Dim) -> Dim | None:
    return a if isinstance(a, int) else number(sympy.floor(a))


def _abs(a: Dim) -> Dim | None:
    return a if nonnegative(a) else abs(a) if isinstance(a, int) else None


UNARY: dict[str, Callable[[Dim], Dim | None]] = {
    "Neg": lambda a: multiply(-1, a),
    "Abs": _abs,
    "Floor": _floor,
    "Ceil": _ceil,
    "Not": lambda a: int(not a),
    "Relu": lambda a: maximum(a, 0),
}


@element_rule(*UNARY)
def unary(call: Call) -> Sequence[Elements]:
    """Element by element."""
    scalar = UNARY[call.node.op_type]
    return [tuple(None if e is None else scalar(e) for e in needed(call, 0))]


@element_rule("Where")
def where(call: Call) -> Sequence[Elements]:
    """Where the condition is known, or both choices are the same."""
    condition, yes, no = (needed(call, k) for k in range(3))
    n = max(map(len, (condition, yes, no)))
    columns = [v * n if len(v) == 1 else v for v in (condition, yes, no)]
    result: list[Dim | None] = []
    for c, x, y in zip(*columns, strict=True):
        same_choice = x is not None and y is not None and equal(x, y)
        result.append(x if same_choice else None if c is None else x if c else y)
    return [tuple(result)]


@element_rule("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin")
def reduce(call: Call) -> Sequence[Elements]:
    """All elements of a vector combined."""
    data = needed(call, 0)
    if call.shape(0) and not len(reduction_axes(call, 1)):
        return [data]
    scalar = {
        "ReduceProd": multiply,
        "ReduceSum": add,
        "ReduceMax": maximum,
        "ReduceMin": minimum,
    }[call.node.op_type]
    if not data or any(e is None for e in data):
        return [(None,)]
    known = [e for e in data if e is not None]
    result = known[0]
    for element in known[1:]:
        result = scalar(result, element)
    return [(result,)]
