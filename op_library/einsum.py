"""Einsum: sums of products over named dimensions.

An equation's letters are dimensions; an ellipsis stands for leading ones that broadcast.  More
than two operands are multiplied one after the other, each time summing over the letters that
nothing later needs, so that the work stays that of a chain of products.

Source: https://onnx.ai/onnx/operators/onnx__Einsum.html
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from op_library._text import (
    Loop,
    at,
    definition,
    loops,
    needed,
    only_output,
    statement,
    subscript,
    widened,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import Size, TensorType

Axes: TypeAlias = tuple[str, ...]
"""The dimensions of a tensor: letters, and ``.1``, ``.0`` for those of an ellipsis, which count
down to its last, so that ellipses of different lengths broadcast."""

TERM = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class Equation:
    """The dimensions of each operand and of the result."""

    operands: tuple[Axes, ...]
    result: Axes


@dataclass(frozen=True, slots=True)
class Factor:
    """A tensor that is multiplied: its name, dimensions and sizes."""

    name: str
    axes: Axes
    shape: tuple[Size, ...]

    def read(self, loop_of: Mapping[str, Loop]) -> str:
        """The tensor at the point of some loops, broadcast along dimensions of size 1."""
        each = zip(self.axes, self.shape, strict=True)
        return at(self.name, [subscript(size, loop_of[axis]) for axis, size in each])


def equation_of(text: str, ranks: Sequence[int]) -> Equation:
    """The equation of an Einsum of operands of these ranks.

    Raises:
        UnsupportedError: It is malformed, or does not fit the ranks.
    """
    left, arrow, right = re.sub(r"\s", "", text).partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise UnsupportedError(f"Einsum of {len(ranks)} operands with equation {text!r}")
    operands = tuple(axes_of(term, rank) for term, rank in zip(terms, ranks, strict=True))
    counts = Counter(axis for axes in operands for axis in axes)
    dots = sorted((axis for axis in counts if axis.startswith(".")), reverse=True)
    if not arrow:
        once = sorted(a for a, n in counts.items() if n == 1 and not a.startswith("."))
        return Equation(operands, (*dots, *once))
    match = TERM.fullmatch(right)
    if match is None:
        raise UnsupportedError(f"Einsum with equation {text!r}")
    result = (*match[1], *(dots if match[2] else ()), *match[3])
    if len(set(result)) < len(result) or not set(result) <= set(counts):
        raise UnsupportedError(f"Einsum with equation {text!r}")
    return Equation(operands, result)


def axes_of(term: str, rank: int) -> Axes:
    """The dimensions of an operand; those of an ellipsis from its last one on.

    Raises:
        UnsupportedError: The term is malformed, or does not fit the rank.
    """
    match = TERM.fullmatch(term)
    hidden = -1 if match is None else rank - len(match[1]) - len(match[3])
    if match is None or hidden < 0 or (hidden and not match[2]):
        raise UnsupportedError(f"Einsum of an operand of rank {rank} as {term!r}")
    return (*match[1], *(f".{hidden - 1 - k}" for k in range(hidden)), *match[3])


def extents(factors: Sequence[Factor]) -> dict[str, Size]:
    """The size of every dimension: that of an operand where it is not 1."""
    found: dict[str, Size] = {}
    for factor in factors:
        for axis, size in zip(factor.axes, factor.shape, strict=True):
            if found.setdefault(axis, size) == 1:
                found[axis] = size
    return found


@onnx_op("Einsum", since=12, kind=Kind.CONTRACTION)
def einsum(call: OpCall) -> str:
    """The sum of products that the equation says."""
    types = [needed(call, k) for k in range(len(call.inputs))]
    y = only_output(call)
    equation = equation_of(str(call.attributes["equation"]), [t.rank for t in types])
    if y.rank != len(equation.result):
        raise UnsupportedError(f"Einsum with a result of rank {y.rank}")
    factors = [
        Factor(f"X{k}", axes, type_.shape)
        for k, (axes, type_) in enumerate(zip(equation.operands, types, strict=True))
    ]
    for factor in factors:
        require_square(factor)
    sizes = extents(factors)
    loop_of = dict(zip(equation.result, loops(y.shape), strict=True))
    summed = [axis for axis in sizes if axis not in loop_of]
    loop_of |= {axis: (f"c{k}", sizes[axis]) for k, axis in enumerate(summed)}
    params: dict[str, TensorType | None] = {
        factor.name: type_ for factor, type_ in zip(factors, types, strict=True)
    }
    return definition(call, params, {"Y": y}, statements(factors, equation, loop_of, y))


def require_square(factor: Factor) -> None:
    """Check that dimensions of one tensor with one letter have one size.

    Raises:
        UnsupportedError: They have not.
    """
    known: dict[str, Size] = {}
    for axis, size in zip(factor.axes, factor.shape, strict=True):
        if known.setdefault(axis, size) != size:
            raise UnsupportedError(f"Einsum of a diagonal of {known[axis]} by {size}")


def statements(
    factors: Sequence[Factor],
    equation: Equation,
    loop_of: Mapping[str, Loop],
    y: TensorType,
) -> list[str]:
    """One statement for each operand after the first; one for a single operand."""
    body = []
    product, *rest = factors
    for k in range(max(len(rest), 1)):
        value = product.read(loop_of)
        axes = dict.fromkeys(product.axes)
        if rest:
            value += f" * {rest[k].read(loop_of)}"
            axes |= dict.fromkeys(rest[k].axes)
        later = {axis for factor in rest[k + 1 :] for axis in factor.axes}
        is_last = k + 1 >= len(rest)
        kept = [a for a in axes if a in later or a in equation.result]
        over = equation.result if is_last else tuple(kept)
        name = "Y" if is_last else f"Product{k}"
        if not is_last:
            value = widened(y.dtype, value)
        outer = tuple(loop_of[axis] for axis in over)
        reduced = tuple(loop_of[axis] for axis in axes if axis not in over)
        body.append(statement(name, outer, value, assign="+=!", reduce=reduced))
        product = Factor(name, over, tuple(size for _, size in outer))
    return body
