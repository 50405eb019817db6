"""Col2Im: blocks laid over each other, as a transposed convolution lays its filters.

Source: https://onnx.ai/onnx/operators/onnx__Col2Im.html
"""

from __future__ import annotations

import math

from op_library._text import (
    at,
    definition,
    loops,
    needed,
    only_output,
    require_equal,
    statement,
)
from op_library._windows import explicit_pads, guarded, integers
from op_library.pooling import row_major
from op_library.slicing import constant_ints
from op_library.transposed_convolution import TransposedWindow
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import Size


@onnx_op("Col2Im", since=18, kind=Kind.CONTRACTION, static=[1, 2])
def col2im(call: OpCall) -> str:
    """The sum of the blocks that are the columns of X, each at its place in the image."""
    x, y, block = needed(call, 0), only_output(call), constant_ints(call, 2) or []
    if x.rank != 3 or y.rank != len(block) + 2:
        raise UnsupportedError(f"Col2Im of rank {x.rank} to rank {y.rank}")
    (image, images), (channel, channels), *positions = point = loops(y.shape)
    taps = tuple((f"w{k}", size) for k, size in enumerate(block))
    rank = len(block)
    strides, dilations = (integers(call, name, rank, 1) for name in ("strides", "dilations"))
    windows = []
    for k, around in enumerate(explicit_pads(call, rank)):
        before, after = around or (0, 0)
        count = blocks(positions[k][1], before + after, strides[k], dilations[k], block[k])
        window = (count, positions[k], taps[k], strides[k], dilations[k], before)
        windows.append(TransposedWindow(*window))
    require_equal(x.shape[0], images)
    if isinstance(channels, int):
        require_equal(x.shape[1], channels * math.prod(block))
    require_equal(x.shape[2], math.prod(int(window.size) for window in windows))
    place = row_major([channel, *(w.tap for w in windows)], [channels, *block])
    column = row_major([w.subscript for w in windows], [w.size for w in windows])
    conditions = [condition for window in windows for condition in window.conditions]
    value = guarded(conditions, at("X", [image, place, column]))
    reduced = tuple(window.loop for window in windows)
    body = [statement("Y", point, value, assign="+=!", reduce=reduced)]
    return definition(call, {"X": x}, {"Y": y}, body)


def blocks(extent: Size, padding: int, stride: int, dilation: int, taps: int) -> int:
    """The number of blocks along an axis of the image.

    Raises:
        UnsupportedError: The image has no constant size, or is smaller than a block.
    """
    if not isinstance(extent, int):
        raise UnsupportedError(f"Col2Im to {extent} elements")
    space = extent + padding - (taps - 1) * dilation - 1
    if space < 0 or stride < 1:
        raise UnsupportedError(f"Col2Im to {extent} elements by steps of {stride}")
    return space // stride + 1
