"""Softmax and its logarithm.

Source: https://onnx.ai/onnx/operators/onnx__Softmax.html
"""

from __future__ import annotations

from op_library._rows import Rows, rows_of
from op_library._text import definition, needed, only_output
from tcfuse.opdef import Kind, OpCall, onnx_op


def rows_along_axis(call: OpCall) -> Rows:
    """Rows along one axis, the last by default: opset 13 and newer."""
    return rows_of(call, needed(call, 0), [call.axis(default=-1)])


def rows_from_axis(call: OpCall) -> Rows:
    """Rows over every dimension from ``axis`` on: older opsets flatten the input to two."""
    x = needed(call, 0)
    return rows_of(call, x, range(call.axis(default=1), x.rank))


def softmax(call: OpCall, rows: Rows) -> str:
    """``Y = exp(X - max X) / sum exp(X - max X)`` for each row."""
    body = [
        rows.fold("Max", rows.at_point("X"), "max=!"),
        rows.each_point("Exp", f"exp({rows.at_point('X')} - {rows.at_row('Max')})"),
        rows.fold("Sum", rows.at_point("Exp")),
        rows.each_point("Y", f"{rows.at_point('Exp')} / {rows.at_row('Sum')}"),
    ]
    return definition(call, {"X": needed(call, 0)}, {"Y": only_output(call)}, body)


def log_softmax(call: OpCall, rows: Rows) -> str:
    """``Y = X - max X - log sum exp(X - max X)`` for each row."""
    shifted = f"{rows.at_point('X')} - {rows.at_row('Max')}"
    body = [
        rows.fold("Max", rows.at_point("X"), "max=!"),
        rows.fold("Sum", f"exp({shifted})"),
        rows.each_row("LogSum", f"log({rows.at_row('Sum')})"),
        rows.each_point("Y", f"{shifted} - {rows.at_row('LogSum')}"),
    ]
    return definition(call, {"X": needed(call, 0)}, {"Y": only_output(call)}, body)


@onnx_op("Softmax", since=13, kind=Kind.REDUCTION)
def softmax_13(call: OpCall) -> str:
    """Softmax along one axis."""
    return softmax(call, rows_along_axis(call))


@onnx_op("Softmax", since=1, kind=Kind.REDUCTION)
def softmax_1(call: OpCall) -> str:
    """Softmax over all dimensions from an axis on."""
    return softmax(call, rows_from_axis(call))


@onnx_op("LogSoftmax", since=13, kind=Kind.REDUCTION)
def log_softmax_13(call: OpCall) -> str:
    """The logarithm of Softmax along one axis."""
    return log_softmax(call, rows_along_axis(call))


@onnx_op("LogSoftmax", since=1, kind=Kind.REDUCTION)
def log_softmax_1(call: OpCall) -> str:
    """The logarithm of Softmax over all dimensions from an axis on."""
    return log_softmax(call, rows_from_axis(call))
