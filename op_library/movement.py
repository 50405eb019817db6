"""Operators that move elements by a rule for each dimension: Transpose, Expand, Tile, Gather.

Source: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from op_library._text import (
    at,
    broadcast,
    definition,
    loops,
    minus,
    names,
    needed,
    only_output,
    require_equal,
    statement,
    stepped,
    total,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import Size


def moved(call: OpCall, subscripts: Sequence[str]) -> str:
    """The definition of an operator whose output is its first input read elsewhere."""
    y = only_output(call)
    body = [statement("Y", loops(y.shape), at("X", subscripts))]
    return definition(call, {"X": needed(call, 0)}, {"Y": y}, body)


@onnx_op("Transpose", since=1, kind=Kind.MOVEMENT)
def transpose(call: OpCall) -> str:
    """``X`` with its dimensions in the order ``perm``, reversed by default."""
    x, y = needed(call, 0), only_output(call)
    order = [int(d) for d in call.attributes.get("perm", reversed(range(x.rank)))]
    if sorted(order) != list(range(x.rank)):
        raise UnsupportedError(f"Transpose of rank {x.rank} with perm {order}")
    subscripts = [""] * x.rank
    for (index, extent), d in zip(loops(y.shape), order, strict=True):
        require_equal(x.shape[d], extent)
        subscripts[d] = index
    return moved(call, subscripts)


@onnx_op("Expand", since=8, kind=Kind.MOVEMENT, static=[1])
def expand(call: OpCall) -> str:
    """``X`` broadcast to the output's shape."""
    return moved(call, broadcast(needed(call, 0), loops(only_output(call).shape)))


@onnx_op("Tile", since=6, kind=Kind.MOVEMENT, static=[1])
def tile(call: OpCall) -> str:
    """``X`` repeated along each dimension."""
    x, y, repeats = needed(call, 0), only_output(call), call.constant(1)
    assert repeats is not None
    subscripts = []
    for (index, _), size, n in zip(loops(y.shape), x.shape, repeats.tolist(), strict=True):
        if size == 1:
            subscripts.append("0")
        elif n == 1:
            subscripts.append(index)
        elif isinstance(size, int):
            subscripts.append(f"{index} % {max(size, 1)}")
        else:
            raise UnsupportedError(f"Tile of a dimension of size {size}")
    return moved(call, subscripts)


@onnx_op("Gather", since=1, kind=Kind.MOVEMENT)
def gather(call: OpCall) -> str:
    """``X`` at ``Indices`` along one axis; an index below zero counts from the end.

    Shapes:
        Indices: Any; its dimensions take the place of the axis.
    """
    x, indices, y = needed(call, 0), needed(call, 1), only_output(call)
    axis = call.axis(default=0)
    point = loops(y.shape)
    inner = point[axis : axis + indices.rank]
    for size, (_, extent) in zip(indices.shape, inner, strict=True):
        require_equal(size, extent)
    lets = {}
    known = call.constants[1] if len(call.constants) > 1 else None
    where = None if known is None else progression(known, x.shape[axis], names(inner))
    if where is None:
        lets["at"] = at("Indices", names(inner))
        where = f"at < 0 ? at + {x.shape[axis]} : at"
    indices_of_y = names(point)
    subscripts = (*indices_of_y[:axis], where, *indices_of_y[axis + indices.rank :])
    body = [statement("Y", point, at("X", subscripts), lets=lets)]
    return definition(call, {"X": x, "Indices": indices}, {"Y": y}, body)


def progression(indices: np.ndarray, size: Size, inner: Sequence[str]) -> str | None:
    """The subscript for indices that advance evenly: ``3``, ``j + 2``, ``5 - 2 * j``.

    Returns:
        ``None`` when they do not, or are not all inside of the dimension.
    """
    if indices.ndim > 1 or indices.size == 0:
        return None
    values = indices.reshape(-1).astype(np.int64)
    base: Size = 0
    if isinstance(size, int):
        values = np.where(values < 0, values + size, values)
        if values.min() < 0 or values.max() >= size:
            return None
    elif values.max() < 0:
        base = size
    elif values.min() < 0:
        return None
    steps = {int(step) for step in np.diff(values)}
    if len(steps) > 1:
        return None
    start = (
        total([base, int(values[0])]) if values[0] >= 0 else minus(str(base), -int(values[0]))
    )
    return stepped(inner[0], steps.pop(), start) if steps else str(start)


@onnx_op("DepthToSpace", since=1, kind=Kind.MOVEMENT)
def depth_to_space(call: OpCall) -> str:
    """Channels moved into blocks of pixels."""
    x, block, mode = needed(call, 0), int(call.attributes["blocksize"]), block_mode(call)
    image, channel, row, column = names(loops(only_output(call).shape))
    channels = constant_channels(x.shape[1])
    deep = channels // (block * block)
    inside = f"{row} % {block} * {block} + {column} % {block}"
    if mode == "DCR":
        source = f"({inside}) * {deep} + {channel}"
    else:
        source = f"{channel} * {block * block} + {inside}"
    return moved(call, (image, source, f"{row} / {block}", f"{column} / {block}"))


@onnx_op("SpaceToDepth", since=1, kind=Kind.MOVEMENT)
def space_to_depth(call: OpCall) -> str:
    """Blocks of pixels moved into channels."""
    x, block, mode = needed(call, 0), int(call.attributes["blocksize"]), block_mode(call)
    image, channel, row, column = names(loops(only_output(call).shape))
    channels = constant_channels(x.shape[1])
    if mode == "DCR":
        source = f"{channel} % {channels}"
        down, right = f"{channel} / {channels * block}", f"{channel} / {channels} % {block}"
    else:
        source = f"{channel} / {block * block}"
        down, right = f"{channel} / {block} % {block}", f"{channel} % {block}"
    subscripts = (image, source, f"{row} * {block} + {down}", f"{column} * {block} + {right}")
    return moved(call, subscripts)


def block_mode(call: OpCall) -> str:
    """How blocks are laid out in the channels: ``DCR`` or ``CRD``.

    Raises:
        UnsupportedError: Something else is asked for, or of another rank than 4.
    """
    mode, rank = call.attributes.get("mode", "DCR"), needed(call, 0).rank
    if mode not in ("DCR", "CRD") or rank != 4:
        raise UnsupportedError(f"{call.op_type} of rank {rank} in mode {mode!r}")
    return str(mode)


def constant_channels(channels: Size) -> int:
    """The number of channels.

    Raises:
        UnsupportedError: It is not constant.
    """
    if not isinstance(channels, int):
        raise UnsupportedError(f"{channels} channels moved between depth and space")
    return channels
