"""Sums and products of all elements before each one.

Each element combines those before it anew, so the work grows with the square of the axis.

Source: https://onnx.ai/onnx/operators/onnx__CumSum.html and its sibling.
"""

from __future__ import annotations

from op_library._text import (
    at,
    definition,
    loops,
    names,
    needed,
    only_output,
    scalar,
    statement,
    widened,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op


@onnx_op("CumSum", since=11, kind=Kind.CONTRACTION, static=[1])
def cumulative_sum(call: OpCall) -> str:
    """The sum of each element and those before it along an axis."""
    return cumulative(call, "+=!", "0")


@onnx_op("CumProd", since=26, kind=Kind.CONTRACTION, static=[1])
def cumulative_product(call: OpCall) -> str:
    """The product of each element and those before it along an axis."""
    return cumulative(call, "*=!", "1")


def cumulative(call: OpCall, assign: str, neutral: str) -> str:
    """The definition of a fold of the elements up to each one, or from each one on.

    Args:
        call: The node.
        assign: How elements are combined.
        neutral: What stands for those that do not count.
    """
    x, y, axis = needed(call, 0), only_output(call), scalar(call, 1)
    if axis is None or not -x.rank <= axis < x.rank:
        raise UnsupportedError(f"{call.op_type} of rank {x.rank} along axis {axis}")
    point = loops(y.shape)
    index, size = point[axis]
    subscripts = list(names(point))
    subscripts[axis] = "u"
    comparison = ">" if call.attributes.get("reverse", 0) else "<"
    if not call.attributes.get("exclusive", 0):
        comparison += "="
    value = f"u {comparison} {index} ? {at('X', subscripts)} : {neutral}"
    body = [
        statement("Y", point, widened(x.dtype, value), assign=assign, reduce=(("u", size),))
    ]
    return definition(call, {"X": x}, {"Y": y}, body)
