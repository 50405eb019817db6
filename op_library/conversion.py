"""Changes of the element type.

Source: https://onnx.ai/onnx/operators/onnx__Cast.html
"""

from __future__ import annotations

from op_library._pointwise import pointwise
from op_library._text import at, broadcast, definition, loops, needed, only_output, statement
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType


def conversion(source: DType, target: DType, *, saturate: bool = True) -> str:
    """The template of a cast.

    A float becomes a small integer by way of a larger one that wraps, as on the processors
    ONNX Runtime runs on; ONNX leaves values out of range open.

    Args:
        source: What the input holds.
        target: What it becomes.
        saturate: Whether a number too large for a float of a byte becomes its largest one.
    """
    if source is target:
        return "{0}"
    if target.is_float and target.bytes == 1:
        return short_float(target, "{0}", saturate=saturate)
    if source.is_float and not target.is_float and target is not DType.BOOL:
        if target.bytes < 4:
            return "{T}(int32({0}))"
        if target is DType.UINT32:
            return "{T}(int64({0}))"
    return "{T}({0})"


def short_float(target: DType, value: str, *, saturate: bool) -> str:
    """``value`` as a float of a byte, by way of ``float``."""
    if not saturate:
        return f"{target.tc}(float({value}))"
    least, largest = target.limits
    return f"{target.tc}(min(max(float({value}), {least}), {largest}))"


def template(call: OpCall, target: DType) -> str:
    """The template of the cast that a node asks for."""
    saturate = bool(call.attributes.get("saturate", 1))
    return conversion(needed(call, 0).dtype, target, saturate=saturate)


@onnx_op("Cast", since=6, kind=Kind.ELEMENTWISE)
def cast(call: OpCall) -> str:
    """The input in another element type."""
    return pointwise(call, template(call, only_output(call).dtype))


@onnx_op("CastLike", since=15, kind=Kind.ELEMENTWISE)
def cast_like(call: OpCall) -> str:
    """The first input in the element type of the second; nothing else of that one matters."""
    source, output = needed(call, 0), only_output(call)
    point = loops(output.shape)
    value = template(call, output.dtype).format(
        at("X", broadcast(source, point)), T=output.dtype.tc
    )
    params = {"X": source, "Like": call.input(1)}
    return definition(call, params, {"Y": output}, [statement("Y", point, value)])
