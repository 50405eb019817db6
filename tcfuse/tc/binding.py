"""Values of size names from the shapes of arrays, and of expressions over size names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

import numpy as np

from tcfuse.errors import TcError
from tcfuse.tc.ast import Binary, Const, Expr, Unary, Var, fold
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.functions import Array
from tcfuse.tc.linear import linear_of_size
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import DType, Size, TensorType

_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
    "<=": operator.le,
}


def bind_sizes(
    checked: CheckedDef, inputs: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, int]:
    """The value of every size name.

    Args:
        checked: The definition.
        inputs: An array for each parameter.
        sizes: Values of names that the shapes of the inputs do not give.

    Raises:
        TcError: Ranks, sizes or element types do not fit, or a size stays unknown.
    """
    known = dict(sizes)
    missing = [name for name in checked.inputs if name not in inputs]
    if missing or len(inputs) > len(checked.inputs):
        expected, found = ", ".join(checked.inputs), ", ".join(inputs) or "none"
        raise TcError(f"expected the inputs {expected} but found {found}")
    dimensions: list[tuple[str, int, Size, int]] = []
    for name in checked.inputs:
        array, declared = np.asarray(inputs[name]), checked.tensors[name]
        _fits(name, array, declared)
        dimensions += [
            (name, axis, size, length)
            for axis, (size, length) in enumerate(zip(declared.shape, array.shape, strict=True))
        ]
    # Names that stand alone first, so that a sum of names has at most one left to find.
    for _, _, size, length in sorted(dimensions, key=_is_composite):
        _solve(size, length, known)
    for name, axis, size, length in dimensions:
        expected_size = size_value(size, known)
        if length != expected_size:
            is_other = "" if size == expected_size else f"{size}, which is "
            raise TcError(
                f"dimension {axis} of {name!r} is {length} instead of {is_other}{expected_size}"
            )
    for name in checked.sizes:
        if name not in known:
            raise TcError(f"no input gives the size {name!r}, and no value was passed for it")
    return known


def _is_composite(dimension: tuple[str, int, Size, int]) -> bool:
    """Whether a dimension's size is more than a name."""
    return isinstance(dimension[2], str) and not dimension[2].isidentifier()


def _fits(name: str, array: Array, declared: TensorType) -> None:
    """Raise unless ``array`` has the declared rank and kind of elements."""
    if array.ndim != declared.rank:
        raise TcError(f"{name!r} has {array.ndim} dimensions instead of {declared.rank}")
    accepted = array.dtype == declared.dtype.numpy
    if declared.dtype.is_float:
        accepted = any(d.is_float and d.numpy == array.dtype for d in DType)
    if not accepted:
        raise TcError(f"{name!r} has elements of type {array.dtype}, not {declared.dtype.tc}")


def _solve(size: Size, found: int, known: dict[str, int]) -> None:
    """Bind the only unknown name of an affine size."""
    form = linear_of_size(size)
    assert form is not None
    unknown = [(a, c) for a, c in form.terms if isinstance(a, str) and a not in known]
    if len(unknown) == 1:
        ((name, factor),) = unknown
        rest = form.without(name)
        known[name] = (found - number(rest.expr, known)) // factor


def size_value(size: Size, known: Mapping[str, int]) -> int:
    """The value of a size."""
    if isinstance(size, int):
        return size
    if size in known:
        return known[size]
    form = linear_of_size(size)
    assert form is not None
    return number(form.expr, known)


def number(expr: Expr, known: Mapping[str, int]) -> int:
    """The value of an integer expression over sizes."""

    def combine(node: Expr, operands: tuple[int, ...]) -> int:
        match node:
            case Const(value):
                return int(value)
            case Var(name) if name in known:
                return known[name]
            case Unary("-", _):
                return -operands[0]
            case Binary(operator) if operator in _INTEGER:
                return int(_INTEGER[operator](*operands))
            case _:
                raise TcError(f"no input gives the size {unparse_expr(node)}", node.span)

    return fold(expr, combine)
