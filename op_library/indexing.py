"""Operators that read elements where a tensor of indices says.

An index below zero counts from the end, and one outside of the dimension is an error of the
call.

Source: https://onnx.ai/onnx/operators/onnx__GatherElements.html and its siblings.
"""

from __future__ import annotations

from op_library._text import (
    at,
    definition,
    loops,
    names,
    needed,
    only_output,
    require_equal,
    select,
    statement,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import Size, TensorType


def from_either_end(index: str, size: Size) -> str:
    """The subscript for an index that counts from the end when it is below zero."""
    return select(f"{index} < 0", f"{index} + {size}", index)


@onnx_op("GatherElements", since=11, kind=Kind.MOVEMENT)
def gather_elements(call: OpCall) -> str:
    """``X`` at each point of ``Indices``, with the index in place of the point's axis."""
    x, indices, y = needed(call, 0), needed(call, 1), only_output(call)
    axis, point = call.axis(default=0), loops(y.shape)
    if indices.rank != x.rank:
        raise UnsupportedError(f"GatherElements of rank {x.rank} with rank {indices.rank}")
    for size, (_, extent) in zip(indices.shape, point, strict=True):
        require_equal(size, extent)
    subscripts = list(names(point))
    subscripts[axis] = from_either_end("at", x.shape[axis])
    lets = {"at": at("Indices", names(point))}
    body = [statement("Y", point, at("X", subscripts), lets=lets)]
    return definition(call, {"X": x, "Indices": indices}, {"Y": y}, body)


@onnx_op("GatherND", since=11, kind=Kind.MOVEMENT)
def gather_nd(call: OpCall) -> str:
    """``X`` at the tuples that the last dimension of ``Indices`` holds.

    Shapes:
        Indices: The batch dimensions of ``X``, any others, and the length of the tuples.
    """
    x, indices, y = needed(call, 0), needed(call, 1), only_output(call)
    batch = int(call.attributes.get("batch_dims", 0))
    length, point = tuple_length(call, indices), loops(y.shape)
    lead = point[: indices.rank - 1]
    if batch + length > x.rank or y.rank != indices.rank - 1 + x.rank - batch - length:
        raise UnsupportedError(f"GatherND of rank {x.rank} at tuples of length {length}")
    for size, (_, extent) in zip(indices.shape, lead, strict=False):
        require_equal(size, extent)
    lets = {f"at{k}": at("Indices", (*names(lead), str(k))) for k in range(length)}
    subscripts = (
        *names(lead[:batch]),
        *(from_either_end(f"at{k}", x.shape[batch + k]) for k in range(length)),
        *names(point[len(lead) :]),
    )
    body = [statement("Y", point, at("X", subscripts), lets=lets)]
    return definition(call, {"X": x, "Indices": indices}, {"Y": y}, body)


def tuple_length(call: OpCall, indices: TensorType) -> int:
    """How many indices each tuple in the last dimension has.

    Raises:
        UnsupportedError: It is not constant.
    """
    length = indices.shape[-1] if indices.rank else "no"
    if not isinstance(length, int):
        raise UnsupportedError(f"{call.op_type} at tuples of {length} indices")
    return length


@onnx_op("OneHot", since=9, kind=Kind.MOVEMENT, static=[1])
def one_hot(call: OpCall) -> str:
    """``Values(1)`` where the place along the new axis is the index, else ``Values(0)``."""
    indices, values, y = needed(call, 0), needed(call, 2), only_output(call)
    axis = int(call.attributes.get("axis", -1))
    if not -y.rank <= axis < y.rank or y.rank != indices.rank + 1:
        raise UnsupportedError(f"OneHot of rank {indices.rank} along axis {axis}")
    point, axis = loops(y.shape), axis % y.rank
    place, depth = point[axis]
    given = at("Indices", (*names(point[:axis]), *names(point[axis + 1 :])))
    lets = {"at": f"int64({given})"}
    hit = f"({from_either_end('at', depth)}) == {place}"
    body = [statement("Y", point, f"{hit} ? Values(1) : Values(0)", lets=lets)]
    return definition(call, {"Indices": indices, "Values": values}, {"Y": y}, body)


@onnx_op("ReverseSequence", since=10, kind=Kind.MOVEMENT)
def reverse_sequence(call: OpCall) -> str:
    """The first ``Lengths(b)`` steps of sequence ``b`` in the opposite order."""
    x, lengths, y = needed(call, 0), needed(call, 1), only_output(call)
    time, batch = call.axis(0, "time_axis"), call.axis(1, "batch_axis")
    if x.rank < 2 or time == batch or lengths.rank != 1:
        raise UnsupportedError(f"ReverseSequence of rank {x.rank}, time {time}, batch {batch}")
    point = loops(y.shape)
    require_equal(lengths.shape[0], point[batch][1])
    step = point[time][0]
    subscripts = list(names(point))
    subscripts[time] = f"{step} < length ? length - 1 - {step} : {step}"
    lets = {"length": at("Lengths", (point[batch][0],))}
    body = [statement("Y", point, at("X", subscripts), lets=lets)]
    return definition(call, {"X": x, "Lengths": lengths}, {"Y": y}, body)
