"""Operators that keep every element in its row-major place: Reshape and its relatives.

Fusion never runs these texts, it relabels dimensions; they say what the operators mean.
Dimensions are matched in groups of equal products, so a size that is not constant may stand
where it is not multiplied.

Source: https://onnx.ai/onnx/operators/onnx__Reshape.html and its siblings.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from op_library._text import (
    Loop,
    Loops,
    at,
    definition,
    loops,
    names,
    needed,
    only_output,
    statement,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, Size, TensorType


class Group(NamedTuple):
    """Dimensions of the input and loops of the output that cover the same elements."""

    sizes: tuple[Size, ...]
    point: Loops


@onnx_op("Reshape", since=5, kind=Kind.VIEW, static=[1])
@onnx_op("Flatten", since=1, kind=Kind.VIEW)
@onnx_op("Squeeze", since=1, kind=Kind.VIEW)
@onnx_op("Squeeze", since=13, kind=Kind.VIEW, static=[1])
@onnx_op("Unsqueeze", since=1, kind=Kind.VIEW)
@onnx_op("Unsqueeze", since=13, kind=Kind.VIEW, static=[1])
@onnx_op("Identity", since=1, kind=Kind.VIEW)
def view(call: OpCall) -> str:
    """``X`` in the shape of the output.

    How attributes and shape inputs (0, -1, ``allowzero``) spell that shape is settled by shape
    inference; nothing else is left of them.
    """
    x, y = needed(call, 0), only_output(call)
    point = loops(y.shape)
    value = at("X", row_major(x, point))
    return definition(call, {"X": x}, {"Y": y}, [statement("Y", point, value)])


@onnx_op("Dropout", since=7, kind=Kind.VIEW)
@onnx_op("Dropout", since=12, kind=Kind.VIEW, static=[1, 2])
def dropout(call: OpCall) -> str:
    """``X``: at inference nothing is dropped, and a mask that says so is true everywhere.

    Before opset 12 ONNX Runtime's mask is false, or zero.
    """
    ratio, training = call.constant(1), call.constant(2)
    if training is not None and training.any() and (ratio is None or ratio.any()):
        raise UnsupportedError("Dropout that trains")
    mask = call.outputs[1] if len(call.outputs) > 1 else None
    if mask is None:
        return view(call)
    x, y = needed(call, 0), call.outputs[0]
    point = loops(x.shape)
    kept = "0" if mask.dtype is not DType.BOOL else "true" if call.opset >= 12 else "false"
    body = [statement("Y", point, at("X", names(point)))] if y else []
    body.append(statement("Mask", point, kept))
    return definition(call, {"X": x}, {"Y": y, "Mask": mask}, body)


def row_major(x: TensorType, point: Loops) -> list[str]:
    """The subscripts of the element of ``x`` that has the same row-major place as ``point``.

    Raises:
        UnsupportedError: The element counts differ, or an index would be divided by a size that
            is not constant.
    """
    if 0 in x.shape or any(size == 0 for _, size in point):
        return ["0"] * x.rank
    real = [d for d, size in enumerate(x.shape) if size != 1]
    sizes = [x.shape[d] for d in real]
    subscripts = ["0"] * x.rank
    texts: list[str] = []
    for group in groups(sizes, [loop for loop in point if loop[1] != 1]):
        texts += regrouped(group)
    for d, text in zip(real, texts, strict=True):
        subscripts[d] = text
    return subscripts


def groups(sizes: Sequence[Size], point: Sequence[Loop]) -> list[Group]:
    """The smallest groups that cover the same elements, in order; no size is 1."""
    extents = [size for _, size in point]
    shorter = min(len(sizes), len(extents))
    head = 0
    while head < shorter and sizes[head] == extents[head]:
        head += 1
    tail = 0
    while tail < shorter - head and sizes[-1 - tail] == extents[-1 - tail]:
        tail += 1
    left, right = len(sizes) - tail, len(extents) - tail
    pairs = [Group((sizes[d],), (point[d],)) for d in range(head)]
    pairs += middle(sizes[head:left], point[head:right])
    return pairs + [Group((sizes[left + k],), (point[right + k],)) for k in range(tail)]


def middle(sizes: Sequence[Size], point: Sequence[Loop]) -> Iterator[Group]:
    """Groups that end where the products of the sizes so far are equal.

    With a size that is not constant there is one group, as no products can be compared.
    """
    ends = products(sizes)
    stops = products([size for _, size in point])
    shared = sorted(set(ends) & set(stops)) if ends and stops else []
    if ends and stops and ends[-1] != stops[-1]:
        raise UnsupportedError(f"{ends[-1]} elements do not become {stops[-1]}")
    first = start = 0
    for value in shared:
        last, stop = ends.index(value) + 1, stops.index(value) + 1
        yield Group(tuple(sizes[first:last]), tuple(point[start:stop]))
        first, start = last, stop
    if sizes[first:] or point[start:]:
        yield Group(tuple(sizes[first:]), tuple(point[start:]))


def products(sizes: Sequence[Size]) -> list[int]:
    """The products of ever more sizes; empty when one of them is not constant."""
    known = [size for size in sizes if isinstance(size, int)]
    return list(itertools.accumulate(known, operator.mul)) if len(known) == len(sizes) else []


def regrouped(group: Group) -> list[str]:
    """The subscripts of a group's dimensions.

    Raises:
        UnsupportedError: An index would be multiplied or divided by a size not constant.
    """
    extents = [size for _, size in group.point]
    terms = [
        index if stride == 1 else f"{index} * {stride}"
        for (index, _), stride in zip(group.point, strides(extents), strict=True)
    ]
    linear = " + ".join(terms) or "0"
    atom = linear if len(terms) <= 1 and "*" not in linear else f"({linear})"
    subscripts = []
    for d, (size, stride) in enumerate(zip(group.sizes, strides(group.sizes), strict=True)):
        text = linear if stride == 1 else f"{atom} / {stride}"
        if d > 0:
            text = f"{atom if stride == 1 else text} % {size}"
        subscripts.append(text)
    return subscripts


def strides(sizes: Sequence[Size]) -> list[int]:
    """How far apart neighbours of each dimension lie in row-major order.

    Raises:
        UnsupportedError: A size other than the first is not constant.
    """
    result = [1]
    for size in reversed(sizes[1:]):
        if isinstance(size, str):
            raise UnsupportedError(f"Reshape across a dimension of size {size}")
        result.append(result[-1] * size)
    return result[::-1] if sizes else []
