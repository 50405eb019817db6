"""Operators that write updates where a tensor of indices says.

A definition cannot write anywhere, so each element of the output looks through the updates that
may be its own: the work is the product of the two sizes.  Of several updates of one element the
last counts, or all where they are combined.  An index below zero counts from the end.

Source: https://onnx.ai/onnx/operators/onnx__ScatterElements.html and its siblings.
"""

from __future__ import annotations

from collections.abc import Sequence

from op_library._text import (
    Loops,
    at,
    definition,
    loops,
    minus,
    names,
    needed,
    only_output,
    require_equal,
    select,
    statement,
    widened,
)
from op_library._windows import integers
from op_library.indexing import tuple_length
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op, same_size
from tcfuse.types import Size

COMBINED = {"add": ("+=!", "0", "{0} + {1}"), "mul": ("*=!", "1", "{0} * {1}")}
"""How updates are folded, what stands for none, and the result with the element before."""


def names_element(index: str, place: str, size: Size) -> str:
    """Whether ``index``, from either end of a dimension, is ``place``."""
    return f"({index} == {place} || {index} == {minus(place, size)})"


def scattered(
    call: OpCall,
    guard: str,
    hit: str,
    search: Loops,
    update: Sequence[str],
    found: Sequence[str],
) -> str:
    """The definition of a scatter.

    Args:
        call: The node.
        guard: Under which condition there are updates for the point at all; empty for always.
        hit: Whether the update at the point of ``search`` is one of the point.
        search: The loops over the updates.
        update: The subscripts of the update at the point of ``search``.
        found: The same at the row-major place ``last`` in ``search``.
    """
    x, indices, updates = (needed(call, k) for k in range(3))
    y = only_output(call)
    point = loops(y.shape)
    own, value = at("X", names(point)), at("Updates", update)
    reduction = call.attributes.get("reduction", "none")

    def looked_for(then: str, otherwise: str) -> str:
        inner = select(hit, then, otherwise)
        return select(guard, inner, otherwise) if guard else inner

    def fold(target: str, term: str, assign: str) -> str:
        return statement(target, point, term, assign=assign, reduce=search)

    if reduction == "none":
        last = at("Last", names(point))
        lets = {"last": last}
        result = select("last < 0", own, at("Updates", found))
        body = [
            fold("Last", looked_for(place(search), "-1"), "max=!"),
            statement("Y", point, result, lets=lets),
        ]
    elif reduction in ("max", "min"):
        body = [
            fold("Most", looked_for(value, own), f"{reduction}=!"),
            statement("Y", point, f"{reduction}({own}, {at('Most', names(point))})"),
        ]
    elif reduction in COMBINED:
        assign, neutral, result = COMBINED[reduction]
        body = [
            fold("All", widened(x.dtype, looked_for(value, neutral)), assign),
            statement("Y", point, result.format(own, at("All", names(point)))),
        ]
    else:
        raise UnsupportedError(f"{call.op_type} with reduction {reduction!r}")
    params = {"X": x, "Indices": indices, "Updates": updates}
    return definition(call, params, {"Y": y}, body)


def place(search: Loops) -> str:
    """The row-major place of a point.

    Raises:
        UnsupportedError: A size other than the first is not constant.
    """
    linear = search[0][0] if search else "0"
    for index, size in search[1:]:
        if not isinstance(size, int):
            raise UnsupportedError(f"updates along several dimensions, one of size {size}")
        linear = f"({linear}) * {size} + {index}"
    return linear


def from_place(search: Loops, last: str) -> list[str]:
    """The subscripts of the point at a row-major place."""
    subscripts: list[str] = []
    stride = 1
    for position, (_, size) in reversed(list(enumerate(search))):
        text = last if stride == 1 else f"{last} / {stride}"
        subscripts.append(f"{text} % {size}" if position else text)
        stride *= size if isinstance(size, int) else 1
    return subscripts[::-1]


@onnx_op("Scatter", since=9, kind=Kind.CONTRACTION)
@onnx_op("ScatterElements", since=11, kind=Kind.CONTRACTION)
def scatter_elements(call: OpCall) -> str:
    """``X`` with the updates at the points that have their index in place of the axis."""
    x, indices = needed(call, 0), needed(call, 1)
    axis, point = call.axis(default=0), loops(x.shape)
    if indices.rank != x.rank or not x.rank:
        raise UnsupportedError(f"{call.op_type} of rank {x.rank} with rank {indices.rank}")
    for size, extent in zip(needed(call, 2).shape, indices.shape, strict=True):
        require_equal(size, extent)
    search: Loops = (("u", indices.shape[axis]),)
    subscripts, found = list(names(point)), list(names(point))
    subscripts[axis], found[axis] = "u", "last"
    inside = [
        f"{index} < {size}"
        for d, ((index, extent), size) in enumerate(zip(point, indices.shape, strict=True))
        if d != axis and not same_size(size, extent)
    ]
    hit = names_element(at("Indices", subscripts), *point[axis])
    return scattered(call, " && ".join(inside), hit, search, subscripts, found)


@onnx_op("ScatterND", since=11, kind=Kind.CONTRACTION)
def scatter_nd(call: OpCall) -> str:
    """``X`` with the updates at the tuples that the last dimension of ``Indices`` holds."""
    x, indices, updates = (needed(call, k) for k in range(3))
    length, point = tuple_length(call, indices), loops(x.shape)
    rest = point[length:]
    search: Loops = tuple((f"u{k}", size) for k, size in enumerate(indices.shape[:-1]))
    if length > x.rank or updates.rank != len(search) + len(rest):
        raise UnsupportedError(f"ScatterND of rank {x.rank} at tuples of length {length}")
    for size, (_, extent) in zip(updates.shape, (*search, *rest), strict=True):
        require_equal(size, extent)
    hit = " && ".join(
        names_element(at("Indices", (*names(search), str(k))), *point[k]) for k in range(length)
    )
    update = (*names(search), *names(rest))
    return scattered(
        call, "", hit or "true", search, update, (*from_place(search, "last"), *names(rest))
    )


@onnx_op("TensorScatter", since=24, kind=Kind.MOVEMENT)
def tensor_scatter(call: OpCall) -> str:
    """A cache with the update written from an index of each batch on, around the end or not."""
    x, update, y = needed(call, 0), needed(call, 1), only_output(call)
    axis, mode = call.axis(default=-2), call.attributes.get("mode", "linear")
    if not axis or mode not in ("linear", "circular"):
        raise UnsupportedError(f"TensorScatter along axis {axis} in mode {mode!r}")
    point = loops(y.shape)
    for d, (size, (_, extent)) in enumerate(zip(update.shape, point, strict=True)):
        if d != axis:
            require_equal(size, extent)
    index, size = point[axis]
    start = f"Start({point[0][0]})" if call.input(2) else "0"
    step = f"({index} - {start}) % {size}" if mode == "circular" else f"{index} - {start}"
    subscripts = list(names(point))
    subscripts[axis] = "step"
    value = select(
        f"step >= 0 && step < {update.shape[axis]}",
        at("Updates", subscripts),
        at("X", names(point)),
    )
    params = {"X": x, "Updates": update, "Start": call.input(2)}
    body = [statement("Y", point, value, lets={"step": step})]
    return definition(call, params, {"Y": y}, body)


@onnx_op("MaxUnpool", since=9, kind=Kind.CONTRACTION, static=[2])
def max_unpool(call: OpCall) -> str:
    """Zeros, with the elements of ``X`` at the row-major places that ``Indices`` holds."""
    x, indices, y = needed(call, 0), needed(call, 1), only_output(call)
    for size, extent in zip(x.shape, indices.shape, strict=True):
        require_equal(size, extent)
    if unpooled(call) != y.shape[2:]:
        raise UnsupportedError(
            "MaxUnpool to a given size: ONNX and ONNX Runtime count its elements differently"
        )
    point = loops(y.shape)
    search: Loops = tuple((f"u{d}", size) for d, size in enumerate(x.shape))
    hit = f"{at('Indices', names(search))} == {place(point)}"
    last = at("Last", names(point))
    result = select("last < 0", "0", at("X", from_place(search, "last")))
    looked_for = select(hit, place(search), "-1")
    body = [
        statement("Last", point, looked_for, assign="max=!", reduce=search),
        statement("Y", point, result, lets={"last": last}),
    ]
    return definition(call, {"X": x, "Indices": indices}, {"Y": y}, body)


def unpooled(call: OpCall) -> tuple[Size, ...]:
    """The sizes of what MaxUnpool's windows cover.

    Raises:
        UnsupportedError: A size is not constant.
    """
    sizes = needed(call, 0).shape[2:]
    kernel, strides = (
        integers(call, name, len(sizes), 1) for name in ("kernel_shape", "strides")
    )
    pads = integers(call, "pads", 2 * len(sizes), 0)
    found: list[Size] = []
    for d, size in enumerate(sizes):
        if not isinstance(size, int):
            raise UnsupportedError(f"MaxUnpool of {size} elements")
        found.append((size - 1) * strides[d] + kernel[d] - pads[d] - pads[len(sizes) + d])
    return tuple(found)
