"""QuantizeLinear and DequantizeLinear: per tensor, per axis and blocked.

Source: https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
"""

from __future__ import annotations

from op_library._text import (
    Loops,
    at,
    definition,
    loops,
    names,
    needed,
    only_output,
    require_equal,
    statement,
)
from op_library.conversion import short_float
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, TensorType


def scale_subscripts(call: OpCall, scale: TensorType, point: Loops) -> list[str]:
    """The subscripts of the scale, or of the zero point, at a point of the tensor.

    Raises:
        UnsupportedError: Its shape fits no granularity.
    """
    if scale.rank == 0 or scale.shape == (1,):
        return ["0"] * scale.rank
    axis, block = call.axis(default=1), int(call.attributes.get("block_size", 0))
    if scale.rank == 1 and block == 0:
        require_equal(scale.shape[0], point[axis][1])
        return [point[axis][0]]
    if scale.rank != len(point) or block <= 0:
        raise UnsupportedError(f"{call.op_type} with a scale of rank {scale.rank}")
    subscripts = list(names(point))
    for d, (size, (_, extent)) in enumerate(zip(scale.shape, point, strict=True)):
        if d != axis:
            require_equal(size, extent)
    subscripts[axis] += f" / {block}"
    return subscripts


@onnx_op("DequantizeLinear", since=10, kind=Kind.ELEMENTWISE)
@onnx_op("DequantizeLinear", since=1, kind=Kind.ELEMENTWISE, domain="com.microsoft")
def dequantize(call: OpCall) -> str:
    """``(X - Zero) * Scale``."""
    x, scale, zero, y = needed(call, 0), needed(call, 1), call.input(2), only_output(call)
    point = loops(y.shape)
    value = at("X", names(point))
    if zero:
        offset = at("Zero", scale_subscripts(call, zero, point))
        floats = x.dtype.is_float
        value = f"({value} - {offset})" if floats else f"(int32({value}) - int32({offset}))"
    value = f"{value} * {at('Scale', scale_subscripts(call, scale, point))}"
    if scale.dtype is DType.FLOAT64 and y.dtype is not DType.FLOAT64:
        value = f"{y.dtype.tc}({value})"
    params = {"X": x, "Scale": scale, "Zero": zero}
    return definition(call, params, {"Y": y}, [statement("Y", point, value)])


@onnx_op("QuantizeLinear", since=10, kind=Kind.ELEMENTWISE)
@onnx_op("QuantizeLinear", since=1, kind=Kind.ELEMENTWISE, domain="com.microsoft")
def quantize(call: OpCall) -> str:
    """``X / Scale`` rounded half to even, plus ``Zero``, saturated.

    To a float of a byte there is no zero point but zero, and ONNX Runtime looks at none.
    """
    x, scale, zero, y = needed(call, 0), needed(call, 1), call.input(2), only_output(call)
    if y.dtype.bytes > 2:
        raise UnsupportedError(f"QuantizeLinear to {y.dtype.tc}")
    point = loops(y.shape)
    divisor = at("Scale", scale_subscripts(call, scale, point))
    value = quotient(call, x, at("X", names(point)), divisor)
    if y.dtype.is_float:
        saturate = bool(call.attributes.get("saturate", 1))
        value = short_float(y.dtype, value, saturate=saturate)
    else:
        value = f"roundeven({value})"
        if zero:
            value = f"{value} + {at('Zero', scale_subscripts(call, zero, point))}"
        value = saturated(value, y.dtype)
    params = {"X": x, "Scale": scale, "Zero": zero}
    return definition(call, params, {"Y": y}, [statement("Y", point, value)])


@onnx_op("DynamicQuantizeLinear", since=11, kind=Kind.REDUCTION)
def dynamic_quantize(call: OpCall) -> str:
    """The tensor as ``uint8``, with a scale and zero point that its extremes and 0 give.

    The scale is 1 where all are zero, as ONNX Runtime has it; ONNX divides by zero there.
    """
    x, (y, scale, zero) = needed(call, 0), (*call.outputs, None, None)[:3]
    body = steps_of_range("X", x, "Y")
    returns = {"Y": y, "Scale": scale, "Zero": zero}
    return definition(call, {"X": x}, returns, body if y else body[:-1])


def steps_of_range(name: str, x: TensorType, target: str) -> list[str]:
    """Statements that give a tensor ``Scale`` and ``Zero``, and in the last one its steps.

    NaN is in no range, and 0 is in every one.
    """
    point = loops(x.shape)
    element = at(name, names(point))
    counted = f"isnan({element}) ? 0 : {element}"
    least, largest = DType.UINT8.limits
    span = f"(High - Low) / {largest}"
    steps = saturated(f"roundeven({element} / Scale) + Zero", DType.UINT8)
    return [
        statement("Least", (), counted, assign="min=!", reduce=point),
        statement("Largest", (), counted, assign="max=!", reduce=point),
        statement("Low", (), "min(Least, 0)"),
        statement("High", (), "max(Largest, 0)"),
        statement("Scale", (), f"High == Low ? 1 : {span}"),
        statement("Zero", (), saturated(f"roundeven({least} - Low / Scale)", DType.UINT8)),
        statement(target, point, steps),
    ]


def quotient(call: OpCall, x: TensorType, value: str, scale: str) -> str:
    """``value / scale``, rounded to the type that ``precision`` asks for."""
    number = int(call.attributes.get("precision", 0))
    precision = DType.from_onnx(number)
    if number and (precision is None or not precision.is_float):
        raise UnsupportedError(f"{call.op_type} in the precision {number}")
    if precision is not None:
        return f"{precision.tc}({precision.tc}({value}) / {precision.tc}({scale}))"
    return f"{value} / {scale}" if x.dtype.is_float else f"float({value}) / {scale}"


def saturated(value: str, dtype: DType) -> str:
    """A whole number as the nearest that a short integer type has."""
    least, largest = dtype.limits
    return f"{dtype.tc}(int32(min(max({value}, {least}), {largest})))"
