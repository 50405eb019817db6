"""QuantizeLinear and DequantizeLinear: per tensor, per axis and blocked.

Source: https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
"""

from __future__ import annotations

import numpy as np

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
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, TensorType


def scale_subscripts(call: OpCall, scale: TensorType, point: Loops) -> list[str]:
    """The subscripts of the scale and the zero point at a point of the tensor.

    Raises:
        UnsupportedError: The shape of the scale fits no granularity.
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
    if x.dtype.is_float:
        raise UnsupportedError(f"DequantizeLinear of {x.dtype.tc}")
    point = loops(y.shape)
    subscripts = scale_subscripts(call, scale, point)
    value = at("X", names(point))
    if zero:
        value = f"(int32({value}) - int32({at('Zero', subscripts)}))"
    value = f"{value} * {at('Scale', subscripts)}"
    if scale.dtype is DType.FLOAT64 and y.dtype is not DType.FLOAT64:
        value = f"{y.dtype.tc}({value})"
    params = {"X": x, "Scale": scale, "Zero": zero}
    return definition(call, params, {"Y": y}, [statement("Y", point, value)])


@onnx_op("QuantizeLinear", since=10, kind=Kind.ELEMENTWISE)
@onnx_op("QuantizeLinear", since=1, kind=Kind.ELEMENTWISE, domain="com.microsoft")
def quantize(call: OpCall) -> str:
    """``X / Scale`` rounded half to even, plus ``Zero``, saturated."""
    x, scale, zero, y = needed(call, 0), needed(call, 1), call.input(2), only_output(call)
    if y.dtype.is_float or y.dtype.bytes > 2:
        raise UnsupportedError(f"QuantizeLinear to {y.dtype.tc}")
    point = loops(y.shape)
    subscripts = scale_subscripts(call, scale, point)
    source = at("X", names(point))
    if not x.dtype.is_float:
        source = f"float({source})"
    value = f"roundeven({source} / {at('Scale', subscripts)})"
    if zero:
        value = f"{value} + {at('Zero', subscripts)}"
    limits = np.iinfo(y.dtype.numpy)
    value = f"{y.dtype.tc}(int32(min(max({value}, {limits.min}), {limits.max})))"
    params = {"X": x, "Scale": scale, "Zero": zero}
    return definition(call, params, {"Y": y}, [statement("Y", point, value)])
