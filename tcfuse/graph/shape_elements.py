"""What is in small integer tensors that are read off shapes, or selected from one another.

Models compute the targets of their ``Reshape`` that way; ``element_arithmetic`` does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tcfuse.graph.element_arithmetic import INTEGERS
from tcfuse.graph.shape_call import (
    MAX_ELEMENTS,
    Call,
    Elements,
    UnknownShapeError,
    element_rule,
    needed,
    normalize_axis,
)
from tcfuse.graph.shape_movement import slice_arguments
from tcfuse.graph.symbols import Dim, add, ceil_divide, product, subtract


@element_rule("Shape")
def shape(call: Call) -> Sequence[Elements]:
    """The sizes of the input."""
    dims = call.shape(0)
    return [dims[call.attribute("start", 0) : call.attribute("end")]]


@element_rule("Size")
def size(call: Call) -> Sequence[Elements]:
    """The product of the sizes."""
    return [(product(call.shape(0)),)]


@element_rule("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout")
def same(call: Call) -> Sequence[Elements]:
    """The elements of the input; that the rank stays small is checked by the caller."""
    return [needed(call, 0)]


@element_rule("Gather")
def gather(call: Call) -> Sequence[Elements]:
    """Constant positions of a vector."""
    data, at = needed(call, 0), call.integers(1)
    if at is None or any(not -len(data) <= k < len(data) for k in at):
        raise UnknownShapeError
    return [tuple(data[k] for k in at)]


@element_rule("Slice")
def slice_(call: Call) -> Sequence[Elements]:
    """A constant part of a vector."""
    data = needed(call, 0)
    for _, start, end, step in slice_arguments(call, 1):
        if not (isinstance(start, int) and isinstance(end, int) and step):
            raise UnknownShapeError
        data = tuple(data[k] for k in range(*slice(start, end, step).indices(len(data))))
    return [data]


@element_rule("Concat")
def concat(call: Call) -> Sequence[Elements]:
    """One vector after the other; one that is not known counts by its length."""
    result: list[Dim | None] = []
    for k in range(len(call.node.inputs)):
        elements = call.elements(k)
        if elements is None:
            (length,) = call.shape(k)
            if not isinstance(length, int) or length > MAX_ELEMENTS:
                raise UnknownShapeError
            elements = (None,) * length
        result.extend(elements)
    return [tuple(result)]


@element_rule("Split")
def split(call: Call) -> Sequence[Elements]:
    """Parts of a vector."""
    data = needed(call, 0)
    n = call.n_outputs
    lengths: Sequence[int] | None = (
        call.integers(1) if call.opset >= 13 else call.attribute("split")
    )
    if lengths is None:
        part = -(-len(data) // n)
        lengths = [part] * (n - 1) + [len(data) - part * (n - 1)]
    parts, at = [], 0
    for length in lengths:
        parts.append(data[at : at + length])
        at += length
    return parts


@element_rule("Range")
def range_(call: Call) -> Sequence[Elements]:
    """An arithmetic progression whose length is a number."""
    (start,), (limit,), (delta,) = (needed(call, k) for k in range(3))
    if start is None or limit is None or not isinstance(delta, int) or delta == 0:
        raise UnknownShapeError
    span = subtract(limit, start) if delta > 0 else subtract(start, limit)
    length = ceil_divide(span, abs(delta))
    if not isinstance(length, int) or length > MAX_ELEMENTS:
        raise UnknownShapeError
    return [tuple(add(start, k * delta) for k in range(length))]


@element_rule("ConstantOfShape")
def constant_of_shape(call: Call) -> Sequence[Elements]:
    """The one value, as often as asked for."""
    lengths = call.integers(0) or ()
    count = math.prod(lengths)
    value = call.attribute("value")
    if not 0 <= count <= MAX_ELEMENTS or (value is not None and value.dtype not in INTEGERS):
        raise UnknownShapeError
    return [(0 if value is None else int(value.numpy().ravel()[0]),) * count]


@element_rule("Expand")
def expand(call: Call) -> Sequence[Elements]:
    """One element, repeated."""
    data, target = needed(call, 0), call.integers(1) or ()
    count = math.prod(target)
    if len(data) == 1 and count <= MAX_ELEMENTS:
        return [data * count]
    if count in (1, len(data)):
        return [data]
    raise UnknownShapeError


@element_rule("Tile")
def tile(call: Call) -> Sequence[Elements]:
    """The vector, repeated."""
    data, repeats = needed(call, 0), call.integers(1)
    if repeats is None or len(repeats) != 1 or not 0 <= repeats[0] * len(data) <= MAX_ELEMENTS:
        raise UnknownShapeError
    return [data * repeats[0]]


@element_rule("ScatterND", "ScatterElements")
def scatter(call: Call) -> Sequence[Elements]:
    """A vector with elements at constant positions replaced."""
    if call.attribute("reduction", "none") != "none" or len(call.shape(0)) != 1:
        raise UnknownShapeError
    data, updates, at = list(needed(call, 0)), needed(call, 2), call.array(1)
    if at is None or at.size != len(updates):
        raise UnknownShapeError
    for position, element in zip(at.ravel(), updates, strict=True):
        data[normalize_axis(int(position), len(data))] = element
    return [tuple(data)]
