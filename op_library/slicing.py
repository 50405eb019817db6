"""Operators that cut and join along dimensions: Slice, Split, Concat.

Source: https://onnx.ai/onnx/operators/onnx__Slice.html and its siblings.
"""

from __future__ import annotations

from collections.abc import Sequence

from op_library._text import (
    Loop,
    Loops,
    at,
    definition,
    loops,
    minus,
    names,
    needed,
    only_output,
    plus,
    require_equal,
    select,
    statement,
    stepped,
    total,
)
from op_library.movement import moved
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import Size, TensorType

# An end at least this far away means "to the end", whatever the size.
FAR = 2**31 - 1


@onnx_op("Slice", since=1, kind=Kind.MOVEMENT)
def slice_by_attributes(call: OpCall) -> str:
    """``X[starts:ends]`` along ``axes``."""
    starts, ends = call.attributes["starts"], call.attributes["ends"]
    axes = call.attributes.get("axes") or range(len(starts))
    return sliced(call, axes, starts, ends, [1] * len(starts))


@onnx_op("Slice", since=10, kind=Kind.MOVEMENT, static=[1, 2, 3, 4])
def slice_by_inputs(call: OpCall) -> str:
    """``X[starts:ends:steps]`` along ``axes``."""
    starts, ends = constant_ints(call, 1) or [], constant_ints(call, 2) or []
    axes, steps = constant_ints(call, 3), constant_ints(call, 4)
    every = range(len(starts))
    return sliced(
        call, every if axes is None else axes, starts, ends, steps or [1] * len(starts)
    )


def constant_ints(call: OpCall, k: int) -> list[int] | None:
    """The values of a constant input; ``None`` when it is absent."""
    value = call.constant(k)
    return None if value is None else [int(v) for v in value.reshape(-1)]


def sliced(
    call: OpCall,
    axes: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    steps: Sequence[int],
) -> str:
    """The definition of a slice."""
    x, y = needed(call, 0), only_output(call)
    point = loops(y.shape)
    subscripts = list(names(point))
    untouched = set(range(x.rank))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if not -x.rank <= axis < x.rank or step == 0:
            raise UnsupportedError(f"Slice of rank {x.rank} along axis {axis} by step {step}")
        d = axis % x.rank
        untouched.discard(d)
        subscripts[d] = cut(x.shape[d], point[d], int(start), int(end), int(step))
    for d in untouched:
        require_equal(x.shape[d], y.shape[d])
    return moved(call, subscripts)


def cut(size: Size, loop: Loop, start: int, end: int, step: int) -> str:
    """The subscript that reads ``[start:end:step]`` of a dimension.

    Raises:
        UnsupportedError: Where it starts depends on a size that is not constant.
    """
    index, extent = loop
    if isinstance(size, int):
        taken = range(*slice(start, end, step).indices(size))
        require_equal(len(taken), extent)
        return stepped(index, step, taken.start)
    if step > 0 and start >= 0:
        return stepped(index, step, start)
    if step == 1 and end >= FAR:
        return plus(index, minus(size, extent))
    if step == 1 and end < 0 and extent == end - start:
        return plus(index, minus(size, -start))
    if step == -1 and (start == -1 or start >= FAR):
        return stepped(index, step, minus(size, 1))
    raise UnsupportedError(f"Slice [{start}:{end}:{step}] of a dimension of size {size}")


@onnx_op("Split", since=2, kind=Kind.MOVEMENT)
def split_by_attribute(call: OpCall) -> str:
    """``X`` cut into parts of the sizes of an attribute."""
    sizes = call.attributes.get("split")
    return split(call, None if sizes is None else [int(size) for size in sizes])


@onnx_op("Split", since=13, kind=Kind.MOVEMENT, static=[1])
def split_by_input(call: OpCall) -> str:
    """``X`` cut into parts of the sizes of an input, or into equal ones."""
    return split(call, constant_ints(call, 1))


def split(call: OpCall, sizes: Sequence[int] | None) -> str:
    """The definition of a split; without ``sizes`` the parts are as equal as they can be."""
    x, axis = needed(call, 0), call.axis(default=0)
    parts = list(sizes if sizes is not None else part_sizes(call, x.shape[axis], axis))
    require_equal(total(parts), x.shape[axis])
    returns: dict[str, TensorType | None] = {}
    body = []
    for k, y in enumerate(call.outputs):
        returns[f"Y{k}"] = y
        if y is None:
            continue
        require_equal(parts[k], y.shape[axis])
        point = loops(y.shape)
        subscripts = list(names(point))
        subscripts[axis] = plus(subscripts[axis], total(parts[:k]))
        body.append(statement(f"Y{k}", point, at("X", subscripts)))
    return definition(call, {"X": x}, returns, body)


def part_sizes(call: OpCall, size: Size, axis: int) -> list[Size]:
    """The sizes of parts that are as equal as they can be, the last one smaller.

    Raises:
        UnsupportedError: The size is not constant and the outputs do not tell.
    """
    count = int(call.attributes.get("num_outputs", len(call.outputs)))
    if isinstance(size, int):
        part = -(-size // count)
        return [max(0, min(part, size - k * part)) for k in range(count)]
    known = [y.shape[axis] for y in call.outputs if y]
    if len(known) < count:
        raise UnsupportedError(f"Split of a dimension of size {size} with unused outputs")
    return known


@onnx_op("Concat", since=4, kind=Kind.MOVEMENT)
def concat(call: OpCall) -> str:
    """The inputs one after the other along ``axis``."""
    y, axis = only_output(call), call.axis(default=1)
    point = loops(y.shape)
    types = [needed(call, k) for k in range(len(call.inputs))]
    params: dict[str, TensorType | None] = {f"X{k}": type_ for k, type_ in enumerate(types)}
    sizes = [type_.shape[axis] for type_ in types]
    if all(isinstance(size, int) for size in sizes):
        require_equal(total(sizes), y.shape[axis])
    for type_ in types:
        for d, (size, extent) in enumerate(zip(type_.shape, y.shape, strict=True)):
            if d != axis:
                require_equal(size, extent)
    pieces = [
        (total(sizes[:k]), piece(f"X{k}", point, axis, total(sizes[:k])))
        for k, size in enumerate(sizes)
        if size != 0
    ]
    value = choose(point[axis][0], pieces) if pieces else "0"
    return definition(call, params, {"Y": y}, [statement("Y", point, value)])


def piece(name: str, point: Loops, axis: int, offset: Size) -> str:
    """An input of Concat read at the output's point."""
    subscripts = list(names(point))
    subscripts[axis] = minus(subscripts[axis], offset)
    return at(name, subscripts)


def choose(index: str, pieces: Sequence[tuple[Size, str]]) -> str:
    """The piece that ``index`` lies in, by bisection; each comes with where it starts."""
    if len(pieces) == 1:
        return pieces[0][1]
    middle = len(pieces) // 2
    left, right = choose(index, pieces[:middle]), choose(index, pieces[middle:])
    return select(f"{index} < {pieces[middle][0]}", left, right)
