"""Operators that compare a row's index with a column's: Trilu and EyeLike.

Source: https://onnx.ai/onnx/operators/onnx__Trilu.html and its sibling.
"""

from __future__ import annotations

from op_library._text import (
    at,
    definition,
    loops,
    names,
    needed,
    only_output,
    plus,
    scalar,
    statement,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, TensorType


@onnx_op("Trilu", since=14, kind=Kind.MOVEMENT)
def trilu(call: OpCall) -> str:
    """The triangle of each matrix above or below its ``k``-th diagonal; 0 elsewhere."""
    x, y = needed(call, 0), only_output(call)
    if x.rank < 2:
        raise UnsupportedError(f"Trilu of rank {x.rank}")
    point = loops(y.shape)
    *_, row, column = names(point)
    params: dict[str, TensorType | None] = {"X": x, "K": call.input(1)}
    known = call.constants[1] if len(call.constants) > 1 else None
    if known is not None or call.input(1) is None:
        diagonal = plus(row, scalar(call, 1) or 0)
    else:
        diagonal = f"{row} + K"
    comparison = ">=" if call.attributes.get("upper", 1) else "<="
    zero = "false" if x.dtype is DType.BOOL else "0"
    value = f"{column} {comparison} {diagonal} ? {at('X', names(point))} : {zero}"
    return definition(call, params, {"Y": y}, [statement("Y", point, value)])


@onnx_op("EyeLike", since=9, kind=Kind.MOVEMENT)
def eye_like(call: OpCall) -> str:
    """1 on the ``k``-th diagonal of a matrix of the input's shape, and 0 elsewhere."""
    y = only_output(call)
    if y.rank != 2:
        raise UnsupportedError(f"EyeLike of rank {y.rank}")
    point = loops(y.shape)
    row, column = names(point)
    diagonal = plus(row, int(call.attributes.get("k", 0)))
    one, zero = ("true", "false") if y.dtype is DType.BOOL else ("1", "0")
    value = f"{column} == {diagonal} ? {one} : {zero}"
    return definition(call, {"X": needed(call, 0)}, {"Y": y}, [statement("Y", point, value)])
