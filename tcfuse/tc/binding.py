"""What a call gives a definition: whether its arrays fit, and what its sizes are."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from tcfuse.errors import TcError
from tcfuse.tc.ast import Binary, Cast, Const, Def, Expr, Unary, Var, fold
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.linear import linear_of_size
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import Array, DType, Size

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


def find_definition(definitions: Sequence[Def], name: str) -> Def:
    """The definition called ``name``.

    Raises:
        TcError: There is none.
    """
    for definition in definitions:
        if definition.name == name:
            return definition
    known = [definition.name for definition in definitions]
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"there is {', '.join(known) or 'none'}"
    raise TcError(f"no definition {name!r}", hint=hint, code="TC39")


def bind_sizes(
    checked: CheckedDef,
    inputs: Mapping[str, Array],
    sizes: Mapping[str, int],
    *,
    exact: bool = False,
) -> dict[str, int]:
    """The value of every size name.

    Names are bound from left to right, those that stand alone in a dimension first.

    Args:
        checked: The definition.
        inputs: An array for each parameter, and one for each in-out output.
        sizes: Values of names that the shapes of the inputs do not give.
        exact: Insist on the declared element types; otherwise a float of any width will do.

    Raises:
        TcError: Ranks, sizes or element types do not fit, or a size stays unknown.
    """
    expected = (*checked.inputs, *checked.inout)
    check_names(expected, inputs)
    dimensions: list[_Dimension] = []
    for name in expected:
        array, declared = np.asarray(inputs[name]), checked.tensors[name]
        check_type(name, array, declared.dtype, exact=exact)
        check_rank(name, array, declared.rank)
        dimensions += [
            _Dimension(name, axis, size, length)
            for axis, (size, length) in enumerate(zip(declared.shape, array.shape, strict=True))
        ]
    known = dict(sizes)
    places = dict.fromkeys(sizes, "as given")
    # Names that stand alone first, so that a sum of names has at most one left to find.
    for dimension in sorted(dimensions, key=lambda d: d.is_composite):
        _solve(dimension, known, places)
    for dimension in dimensions:
        _agree(dimension, known, places)
    for name in checked.sizes:
        if name not in known:
            hint = "pass a value for it"
            raise TcError(f"no input gives the size {name!r}", hint=hint, code="TC38")
    return known


def check_names(expected: Sequence[str], found: Collection[str]) -> None:
    """Raise unless exactly the inputs ``expected`` are given."""
    if set(expected) != set(found):
        wanted, given = ", ".join(expected) or "none", ", ".join(found) or "none"
        counts = f"expected {len(expected)} inputs but found {len(found)}"
        message = f"{counts}: {wanted} against {given}"
        raise TcError(message, hint="pass one array for each", code="TC32")


def check_type(name: str, array: Array, dtype: DType, *, exact: bool = True) -> None:
    """Raise unless ``array`` has elements of type ``dtype``; or else some float for a float."""
    accepted = array.dtype == dtype.numpy
    if dtype.is_float and not exact:
        accepted = any(d.is_float and d.numpy == array.dtype for d in DType)
    if not accepted:
        message = f"{name!r} has elements of type {array.dtype}, not {dtype.tc}"
        hint = f"convert it: {name}.astype({dtype.numpy.name!r})"
        raise TcError(message, hint=hint, code="TC33")


def check_rank(name: str, array: Array, rank: int) -> None:
    """Raise unless ``array`` has ``rank`` dimensions."""
    if array.ndim != rank:
        message = f"{name!r} has {array.ndim} dimensions instead of {rank}"
        raise TcError(message, hint="reshape it", code="TC34")


def check_dense(name: str, array: Array) -> None:
    """Raise unless the elements of ``array`` lie in row-major order without gaps."""
    if not array.flags.c_contiguous:
        message = f"{name!r} has the strides {array.strides} bytes, which are not row-major"
        raise TcError(message, hint="copy it: np.ascontiguousarray", code="TC35")


def check_output(name: str, array: Array, dtype: DType, shape: tuple[int, ...]) -> None:
    """Raise unless ``array``, in any order, can take the output ``name``."""
    if array.dtype.newbyteorder("=") != dtype.numpy or array.shape != shape:
        expected = f"{dtype.numpy.name} of shape {shape}"
        message = f"the output {name!r} is {array.dtype.name} of shape {array.shape}"
        hint = f"allocate np.empty({shape}, {dtype.numpy.name!r})"
        raise TcError(f"{message} instead of {expected}", hint=hint, code="TC40")
    if not array.flags.writeable:
        raise TcError(f"the output {name!r} is read-only", hint="copy it", code="TC40")


@dataclass(frozen=True, slots=True)
class _Dimension:
    """A dimension of an array and the size it is declared with."""

    name: str
    axis: int
    size: Size
    length: int

    @property
    def is_composite(self) -> bool:
        """Whether the size is more than a name."""
        return isinstance(self.size, str) and not self.size.isidentifier()

    def __str__(self) -> str:
        return f"dimension {self.axis} of {self.name!r}"


def _solve(dimension: _Dimension, known: dict[str, int], places: dict[str, str]) -> None:
    """Bind the only unknown name of an affine size."""
    form = linear_of_size(dimension.size)
    assert form is not None
    unknown = [(a, c) for a, c in form.terms if isinstance(a, str) and a not in known]
    if len(unknown) == 1 and form.is_affine:
        ((name, factor),) = unknown
        rest = form.without(name)
        known[name] = (dimension.length - number(rest.expr, known)) // factor
        places[name] = f"by {dimension}"


def _agree(dimension: _Dimension, known: Mapping[str, int], places: Mapping[str, str]) -> None:
    """Raise unless the dimension has the length its size stands for."""
    size, expected = dimension.size, size_value(dimension.size, known)
    if dimension.length == expected:
        return
    if isinstance(size, int):
        message = f"{dimension} is {dimension.length} instead of {size}"
        raise TcError(message, hint="declare a name to allow others", code="TC37")
    where = f" {places[size]}" if size in places else ""
    message = f"{dimension} is {dimension.length}, but {size} is {expected}{where}"
    raise TcError(message, hint="one name is one size", code="TC36")


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
            case Cast(DType.INT32 | DType.INT64):
                return operands[0]
            case Var(name) if name in known:
                return known[name]
            case Unary("-", _):
                return -operands[0]
            case Binary(operator) if operator in _INTEGER:
                if operator in ("/", "%") and not operands[1]:
                    message = f"division by zero in {unparse_expr(node)}"
                    raise TcError(message, node.span, code="TC46")
                return int(_INTEGER[operator](*operands))
            case _:
                message = f"no input gives the size {unparse_expr(node)}"
                raise TcError(message, node.span, "pass a value for it", code="TC38")

    return fold(expr, combine)
