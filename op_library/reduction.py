"""Reductions to one value a row, and the global pools.

Source: https://onnx.ai/onnx/operators/onnx__ReduceSum.html and its siblings.
"""

from __future__ import annotations

from dataclasses import dataclass

from op_library._rows import Rows, rows_of
from op_library._text import definition, needed, only_output, statement, widened
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType


@dataclass(frozen=True, slots=True)
class Row:
    """A reduction as templates.

    Attributes:
        each: What is combined: ``{x}`` is the input at the point.
        assign: How.
        result: Of the combined value ``{r}`` of ``{n}`` points.
        integer_result: The same for integers, where it differs.
        is_real: Whether integers are computed in ``double`` and converted back.
        input_axes: First opset with the axes as an input.
    """

    each: str = "{x}"
    assign: str = "+=!"
    result: str = "{r}"
    integer_result: str = ""
    is_real: bool = False
    input_axes: int = 18


TABLE: dict[str, Row] = {
    "ReduceSum": Row(input_axes=13),
    "ReduceMean": Row(result="{r} / {n}", integer_result="tdiv({r}, {n})"),
    "ReduceMax": Row(assign="max=!"),
    "ReduceMin": Row(assign="min=!"),
    "ReduceProd": Row(assign="*=!"),
    "ReduceL1": Row("abs({x})"),
    "ReduceL2": Row("{x} * {x}", result="sqrt({r})", is_real=True),
    "ReduceSumSquare": Row("{x} * {x}"),
    "ReduceLogSum": Row(result="log({r})", is_real=True),
}


def reduced_axes(call: OpCall, *, from_input: bool) -> tuple[int, ...] | None:
    """The axes a Reduce operator names; ``None`` when it combines nothing."""
    if from_input:
        constant = call.constant(1)
        axes = () if constant is None else tuple(int(a) for a in constant.reshape(-1))
    else:
        axes = tuple(int(a) for a in call.attributes.get("axes", ()))
    if axes:
        return axes
    if call.attributes.get("noop_with_empty_axes", 0):
        return None
    return tuple(range(needed(call, 0).rank))


def lower(call: OpCall, row: Row, axes: tuple[int, ...] | None) -> str:
    """The definition of a reduction; without axes each point is a row of its own."""
    x, y = needed(call, 0), only_output(call)
    rows = rows_of(call, x, axes or ())
    operand, back = operand_and_back(x.dtype, y.dtype, row)
    value = row.each.format(x=operand.format(rows.at_point("X")))
    is_float = x.dtype.is_float or row.is_real
    result = row.result if is_float else row.integer_result or row.result
    outer = rows.outer(bool(call.attributes.get("keepdims", 1)))
    if result == "{r}" and back == "{0}":
        body = [statement("Y", outer, value, assign=row.assign, reduce=rows.reduced)]
    else:
        combined = result.format(r=rows.at_row("Combined"), n=divisor(rows))
        body = [
            rows.fold("Combined", widened(x.dtype, value), row.assign),
            statement("Y", outer, back.format(combined)),
        ]
    return definition(call, {"X": x}, {"Y": y}, body)


def divisor(rows: Rows) -> str:
    """The number of points of a row, or 1: the mean of nothing is 0, as in ONNX Runtime."""
    known = all(isinstance(size, int) and size > 0 for _, size in rows.reduced)
    return rows.count if known else f"max({rows.count}, 1)"


def operand_and_back(source: DType, target: DType, row: Row) -> tuple[str, str]:
    """Templates of the conversions before and after a reduction."""
    if source is DType.BOOL:
        return "uint8({0})", "{0} != 0"
    if row.is_real and not source.is_float:
        return "double({0})", f"{target.tc}({{0}})"
    return "{0}", "{0}"


def register(op_type: str, row: Row) -> None:
    """Register a Reduce operator with its axes as an attribute and as an input."""

    def by_attribute(call: OpCall) -> str:
        return lower(call, row, reduced_axes(call, from_input=False))

    def by_input(call: OpCall) -> str:
        return lower(call, row, reduced_axes(call, from_input=True))

    onnx_op(op_type, since=1, kind=Kind.REDUCTION)(by_attribute)
    onnx_op(op_type, since=row.input_axes, kind=Kind.REDUCTION, static=[1])(by_input)


for _op_type, _row in TABLE.items():
    register(_op_type, _row)


@onnx_op("ReduceLogSumExp", since=1, kind=Kind.REDUCTION)
def reduce_log_sum_exp_by_attribute(call: OpCall) -> str:
    """``log sum exp X`` along the axes of an attribute."""
    return log_sum_exp(call, reduced_axes(call, from_input=False))


@onnx_op("ReduceLogSumExp", since=18, kind=Kind.REDUCTION, static=[1])
def reduce_log_sum_exp_by_input(call: OpCall) -> str:
    """``log sum exp X`` along the axes of an input."""
    return log_sum_exp(call, reduced_axes(call, from_input=True))


def log_sum_exp(call: OpCall, axes: tuple[int, ...] | None) -> str:
    """``log sum exp(X - max X) + max X``; an infinite maximum is not subtracted."""
    x, y = needed(call, 0), only_output(call)
    rows = rows_of(call, x, axes or ())
    operand, back = operand_and_back(x.dtype, y.dtype, Row(is_real=True))
    value = operand.format(rows.at_point("X"))
    largest, shift = rows.at_row("Max"), rows.at_row("Shift")
    body = [
        rows.fold("Max", value, "max=!"),
        rows.each_row("Shift", f"isinf({largest}) ? 0 : {largest}"),
        rows.fold("Sum", f"exp({value} - {shift})"),
        statement(
            "Y",
            rows.outer(bool(call.attributes.get("keepdims", 1))),
            back.format(f"log({rows.at_row('Sum')}) + {shift}"),
        ),
    ]
    return definition(call, {"X": x}, {"Y": y}, body)


def spatial(call: OpCall) -> Rows:
    """One row for each channel of each image."""
    x = needed(call, 0)
    return rows_of(call, x, range(2, x.rank))


@onnx_op("GlobalAveragePool", since=1, kind=Kind.REDUCTION)
def global_average_pool(call: OpCall) -> str:
    """The mean of each channel of each image."""
    rows = spatial(call)
    body = [
        rows.fold("Sum", widened(needed(call, 0).dtype, rows.at_point("X"))),
        statement("Y", rows.with_ones(), f"{rows.at_row('Sum')} / {rows.count}"),
    ]
    return definition(call, {"X": needed(call, 0)}, {"Y": only_output(call)}, body)


@onnx_op("GlobalMaxPool", since=1, kind=Kind.REDUCTION)
def global_max_pool(call: OpCall) -> str:
    """The maximum of each channel of each image."""
    rows = spatial(call)
    value = rows.at_point("X")
    body = [statement("Y", rows.with_ones(), value, assign="max=!", reduce=rows.reduced)]
    return definition(call, {"X": needed(call, 0)}, {"Y": only_output(call)}, body)
