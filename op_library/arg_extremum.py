"""Where rows have their extrema: ArgMax, ArgMin, Hardmax.

NaN is passed over, as in ONNX Runtime, except at the start of a row: nothing compares with it
there, and the first position stays.

Source: https://onnx.ai/onnx/operators/onnx__ArgMax.html and its siblings.
"""

from __future__ import annotations

from op_library._rows import Rows, rows_of
from op_library._text import at, definition, needed, only_output, select, statement
from op_library.softmax import rows_along_axis, rows_from_axis
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import TensorType


def positions(x: TensorType, rows: Rows, *, largest: bool, last: bool = False) -> list[str]:
    """Statements that find ``Extremum`` and ``Position``, its place in the row.

    Args:
        x: The type of ``X``.
        rows: One row for each dimension that is left, along one loop or several.
        largest: Whether the maximum is looked for.
        last: Whether the last of equals counts instead of the first.
    """
    value, compared = rows.at_point("X"), rows.at_point("X")
    if x.dtype.is_float:
        compared = f"isnan({value}) ? {'-' if largest else ''}inf() : {value}"
    linear = place(rows)
    reached = f"{value} == {rows.at_row('Extremum')}"
    if last:
        found = rows.fold("Position", f"{reached} ? {linear} : -1", "max=!")
    else:
        found = rows.fold("Position", f"{reached} ? {linear} : {rows.count}", "min=!")
    return [rows.fold("Extremum", compared, "max=!" if largest else "min=!"), found]


def place(rows: Rows) -> str:
    """The row-major place of the point in its row.

    Raises:
        UnsupportedError: A row has several dimensions, of sizes that are not constant.
    """
    linear = "0"
    for index, size in rows.reduced:
        if linear == "0":
            linear = index
        elif isinstance(size, int):
            linear = f"({linear}) * {size} + {index}"
        else:
            raise UnsupportedError(f"rows along several dimensions, one of size {size}")
    return linear


def starts_with_nan(rows: Rows) -> str:
    """Whether the first element of the row, if there is one, is NaN; in parentheses."""
    first = ("0" if d in rows.axes else index for d, (index, _) in enumerate(rows.point))
    value = f"isnan({at('X', first)})"
    for size in (size for _, size in rows.reduced if isinstance(size, str)):
        value = select(f"{size} > 0", value, "false")
    return f"({value})"


@onnx_op("ArgMax", since=1, kind=Kind.REDUCTION)
@onnx_op("ArgMin", since=1, kind=Kind.REDUCTION)
def arg_extremum(call: OpCall) -> str:
    """The position of each row's first extremum, or of its last one."""
    x = needed(call, 0)
    rows = rows_of(call, x, [call.axis(default=0)])
    last = bool(call.attributes.get("select_last_index", 0))
    found = rows.at_row("Position")
    value = select(starts_with_nan(rows), "0", found) if x.dtype.is_float else found
    body = [
        *positions(x, rows, largest=call.op_type == "ArgMax", last=last),
        statement("Y", rows.outer(bool(call.attributes.get("keepdims", 1))), value),
    ]
    return definition(call, {"X": x}, {"Y": only_output(call)}, body)


@onnx_op("Hardmax", since=13, kind=Kind.REDUCTION)
def hardmax_13(call: OpCall) -> str:
    """1 at the first maximum along one axis."""
    return hardmax(call, rows_along_axis(call))


@onnx_op("Hardmax", since=1, kind=Kind.REDUCTION)
def hardmax_1(call: OpCall) -> str:
    """1 at the first maximum over all dimensions from an axis on."""
    return hardmax(call, rows_from_axis(call))


def hardmax(call: OpCall, rows: Rows) -> str:
    """1 at the first maximum of each row and 0 elsewhere; none where NaN is first."""
    x = needed(call, 0)
    reached = f"{place(rows)} == {rows.at_row('Position')}"
    body = [
        *positions(x, rows, largest=True),
        rows.each_point("Y", f"{reached} && !{starts_with_nan(rows)} ? 1 : 0"),
    ]
    return definition(call, {"X": x}, {"Y": only_output(call)}, body)
