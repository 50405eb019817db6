"""Changes of the element type.

Source: https://onnx.ai/onnx/operators/onnx__Cast.html
"""

from __future__ import annotations

from typing import NamedTuple

from op_library._pointwise import pointwise
from op_library._text import (
    at,
    broadcast,
    definition,
    loops,
    needed,
    number,
    only_output,
    statement,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType

SEVERAL_NANS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8E5M2)


class Conversion(NamedTuple):
    """A template of ``{0}`` in another type, and those of the names it uses."""

    value: str
    lets: dict[str, str]


def conversion(call: OpCall, target: DType) -> Conversion:
    """The cast that a node asks for.

    A float becomes a small integer by way of a larger one that wraps, as on the processors
    ONNX Runtime runs on; ONNX leaves values out of range open.
    """
    source, saturate = needed(call, 0).dtype, bool(call.attributes.get("saturate", 1))
    if source is target:
        return Conversion("{0}", {})
    if target is DType.FLOAT8E8M0:
        return power_of_two("{0}", str(call.attributes.get("round_mode", "up")), saturate)
    if target.is_float and target.bytes == 1:
        return Conversion(short_float(target, "{0}", saturate=saturate), {})
    if source.is_float and target.bits < 8 and not target.is_float:
        # ONNX Runtime rounds here, where it truncates to larger integers.
        return Conversion(f"{target.tc}(int32(round(float({{0}}))))", {})
    if source.is_float and not target.is_float and target is not DType.BOOL:
        if target.bytes < 4:
            return Conversion(f"{target.tc}(int32({{0}}))", {})
        if target is DType.UINT32:
            return Conversion(f"{target.tc}(int64({{0}}))", {})
    return Conversion(f"{target.tc}({{0}})", {})


def short_float(target: DType, value: str, *, saturate: bool) -> str:
    """``value`` as a float of a byte, by way of ``float``.

    Args:
        target: Its type, which has a sign.
        value: What it becomes, rounded to nearest.
        saturate: Whether what is too large becomes the largest one, not infinite or NaN.
    """
    if not saturate:
        return f"{target.tc}(float({value}))"
    least, largest = target.limits
    return f"{target.tc}(min(max(float({value}), {least}), {largest}))"


def power_of_two(value: str, rounding: str, saturate: bool) -> Conversion:
    """``value`` as an exponent alone; zero and negative numbers are too small.

    Raises:
        UnsupportedError: ``rounding`` is none that ONNX has.
    """
    least, largest = DType.FLOAT8E8M0.limits
    bounds = (number(least), number(largest))
    lets = {"given": f"float({value})"}
    if saturate:
        lets["bounded"] = f"min(max(given, {bounds[0]}), {bounds[1]})"
    else:
        lets["bounded"] = f"given < {bounds[0]} || given > {bounds[1]} ? nan() : given"
    lets["near"] = "float(float8e8m0(bounded))"
    rounded = {
        "up": "near < bounded ? 2 * near : near",
        "down": "near > bounded ? near / 2 : near",
        "nearest": "near",
    }
    if rounding not in rounded:
        raise UnsupportedError(f"Cast rounding {rounding!r}")
    return Conversion(f"float8e8m0({rounded[rounding]})", lets)


@onnx_op("Cast", since=6, kind=Kind.ELEMENTWISE)
def cast(call: OpCall) -> str:
    """The input in another element type."""
    return pointwise(call, *conversion(call, only_output(call).dtype))


@onnx_op("CastLike", since=15, kind=Kind.ELEMENTWISE)
def cast_like(call: OpCall) -> str:
    """The first input in the element type of the second; nothing else of that one matters."""
    source, output = needed(call, 0), only_output(call)
    point = loops(output.shape)
    value, lets = conversion(call, output.dtype)
    element = at("X", broadcast(source, point))
    named = {name: text.format(element) for name, text in lets.items()}
    params = {"X": source, "Like": call.input(1)}
    body = statement("Y", point, value.format(element), lets=named)
    return definition(call, params, {"Y": output}, [body])


@onnx_op("BitCast", since=26, kind=Kind.ELEMENTWISE)
def bit_cast(call: OpCall) -> str:
    """The input's bits in another element type."""
    source, target = needed(call, 0).dtype, only_output(call).dtype
    for dtype in (source, target):
        if dtype in SEVERAL_NANS and source is not target:
            raise UnsupportedError(f"BitCast of {dtype.tc}, whose NaNs kernels hold as one")
    if source.bits != target.bits:
        raise UnsupportedError(f"BitCast from {source.bits} to {target.bits} bits")
    if source is target:
        return pointwise(call, "{0}")
    if DType.BOOL in (source, target):
        return pointwise(call, f"{target.tc}({{0}})")
    return pointwise(call, f"as_{target.tc}({{0}})")
