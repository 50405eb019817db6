"""Changes between plain tensors and those whose channels lie in blocks (``graph.blocked``).

A blocked operand is seen as it lies in memory, (N, C / b, H, W, b), and a plain one of whole
blocks with its channels apart, (N, C / b, b, H, W): then a change of layout is a transpose.

Source: MlasReorderInputNchw and MlasReorderOutputNchw of ONNX Runtime
"""

from __future__ import annotations

from op_library._rows import rows_of
from op_library._text import at, definition, loops, names, needed, only_output, statement
from op_library.fused_products import activated
from op_library.matmul import RESULT
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import Size, TensorType

NCHWC = "com.microsoft.nchwc"


@onnx_op("ReorderOutput", since=1, kind=Kind.MOVEMENT, domain=NCHWC)
def reorder_output(call: OpCall) -> str:
    """Blocks to channels; channels that only fill the last block are left out."""
    x, y = needed(call, 0), only_output(call)
    block = _block(x)
    last = bool(call.attributes.get("channels_last", 0))
    if y.rank == 5:
        image, *rest = names(loops(y.shape))
        (*pixel, outer, inner) = rest if last else (*rest[2:], *rest[:2])
    else:
        image, *rest = names(loops(y.shape))
        (*pixel, channel) = rest if last else (*rest[1:], rest[0])
        outer, inner = f"{channel} / {block}", f"{channel} % {block}"
        if x.shape[1] == 1:
            outer, inner = "0", channel
    body = [statement("Y", loops(y.shape), at("X", (image, outer, *pixel, inner)))]
    return definition(call, {"X": x}, {"Y": y}, body)


@onnx_op("ReorderInput", since=1, kind=Kind.MOVEMENT, domain=NCHWC)
def reorder_input(call: OpCall) -> str:
    """Channels to blocks; what is left of the last block is zero."""
    x, y = needed(call, 0), only_output(call)
    block = _block(y)
    last = bool(call.attributes.get("channels_last", 0))
    image, outer, *pixel, inner = names(loops(y.shape))
    if x.rank == 5:
        order = (image, *pixel, outer, inner) if last else (image, outer, inner, *pixel)
        value = at("X", order)
    else:
        channels = x.shape[-1 if last else 1]
        channel = inner if y.shape[1] == 1 else f"{outer} * {block} + {inner}"
        order = (image, *pixel, channel) if last else (image, channel, *pixel)
        value = f"{channel} < {channels} ? {at('X', order)} : 0.0"
    body = [statement("Y", loops(y.shape), value)]
    return definition(call, {"X": x}, {"Y": y}, body)


@onnx_op("GlobalAveragePool", since=1, kind=Kind.REDUCTION, domain=NCHWC)
def global_average_pool(call: OpCall) -> str:
    """The mean of the pixels of each channel."""
    x, y = needed(call, 0), only_output(call)
    _block(x)
    rows = rows_of(call, x, (2, 3))
    body = [
        rows.fold("Sum", rows.at_point("X")),
        statement("Y", rows.with_ones(), f"{rows.at_row('Sum')} / {rows.count}"),
    ]
    return definition(call, {"X": x}, {"Y": y}, body)


@onnx_op("Conv", since=1, kind=Kind.ELEMENTWISE, domain=NCHWC)
def scaling(call: OpCall) -> str:
    """Each channel times its number, plus another: the only convolution that is no product."""
    x, w, b, z = needed(call, 0), needed(call, 1), call.input(2), call.input(3)
    y = only_output(call)
    _block(x)
    if x.shape != y.shape or w.shape != (x.shape[1], x.shape[-1]):
        raise UnsupportedError("a blocked convolution of several elements")
    over = loops(y.shape)
    point = names(over)
    channel = (point[1], point[4])
    value = f"{at('X', point)} * {at('W', channel)}"
    value += f" + {at('B', channel)}" if b else ""
    value += f" + {at('Z', point)}" if z else ""
    body = [statement("Y", over, activated(call, y.dtype), lets={RESULT: value})]
    return definition(call, {"X": x, "W": w, "B": b, "Z": z}, {"Y": y}, body)


def _block(blocked: TensorType) -> int:
    """Channels in a block of a tensor in its memory shape."""
    block: Size = blocked.shape[-1]
    if blocked.rank != 5 or not isinstance(block, int):
        raise UnsupportedError(f"a blocked tensor of rank {blocked.rank}")
    return block
