"""Average pools of com.microsoft on quantized tensors.

The sum of a window is a sum of integers, exact; padding stands for zero.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from op_library._rows import rows_of
from op_library._text import definition, statement
from op_library.pooling import pool_of
from op_library.quantized import MICROSOFT, Operand, Result
from tcfuse.opdef import Kind, OpCall, onnx_op


def first_spatial(call: OpCall) -> int:
    """The first dimension that windows move along."""
    return 1 if call.attributes.get("channels_last", 0) else 2


@onnx_op("QLinearAveragePool", since=1, kind=Kind.REDUCTION, domain=MICROSOFT)
def average_pool(call: OpCall) -> str:
    """The mean of each window, with or without its padding."""
    x, result = Operand(call, 0, "X"), Result(call, 3)
    pool = pool_of(call, first_spatial(call))
    count = pool.count(padded=bool(call.attributes.get("count_include_pad", 0)))
    mean = f"{x.scale} * {pool.at_point('Sum')} / {count}"
    body = [
        pool.fold("Sum", pool.inside(x.difference(pool.subscripts), "0")),
        pool.each_point("Y", result.quantized(mean)),
    ]
    return definition(call, x.params | result.params, {"Y": result.type}, body)


@onnx_op("QLinearGlobalAveragePool", since=1, kind=Kind.REDUCTION, domain=MICROSOFT)
def global_average_pool(call: OpCall) -> str:
    """The mean of each channel of each image."""
    x, result = Operand(call, 0, "X"), Result(call, 3)
    first = first_spatial(call)
    rows = rows_of(call, x.type, range(first, first + x.type.rank - 2))
    mean = f"{x.scale} * {rows.at_row('Sum')} / {rows.count}"
    body = [
        rows.fold("Sum", x.difference([index for index, _ in rows.point])),
        statement("Y", rows.with_ones(), result.quantized(mean)),
    ]
    return definition(call, x.params | result.params, {"Y": result.type}, body)
