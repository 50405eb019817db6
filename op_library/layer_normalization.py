"""Normalisation over trailing dimensions: LayerNormalization, RMSNormalization, and with a sum.

Source: https://onnx.ai/onnx/operators/onnx__LayerNormalization.html and ONNX Runtime's
docs/ContribOperators.md.
"""

from __future__ import annotations

from op_library._rows import Rows, rows_of
from op_library._statistics import (
    converted,
    deviations,
    first_output,
    output,
    row_output,
    scaling,
    squares,
    standard_stash,
)
from op_library._text import at, attribute, broadcast, definition, needed, statement
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import TensorType

MICROSOFT = "com.microsoft"


def trailing_rows(call: OpCall, type_: TensorType) -> Rows:
    """Rows over the dimensions from ``axis`` on, the last one by default."""
    return rows_of(call, type_, range(call.axis(default=-1), type_.rank))


@onnx_op("LayerNormalization", since=1, kind=Kind.REDUCTION)
def layer_normalization(call: OpCall) -> str:
    """``(X - mean) / sqrt(variance + epsilon) * Scale + B`` over the dimensions from ``axis``.

    Shapes:
        Scale, B: Broadcast to X.
        Mean, InvStdDev: X's, with 1 for the dimensions from ``axis`` on.
    """
    standard_stash(call)
    x, scale, bias, y = needed(call, 0), needed(call, 1), call.input(2), first_output(call)
    mean, deviation = output(call, 1), output(call, 2)
    rows = trailing_rows(call, x)
    value = rows.at_point("X")
    result = f"({value} - {rows.at_row('Center')}) * {rows.at_row('Scaling')}"
    result += f" * {at('Scale', broadcast(scale, rows.point))}"
    if bias:
        result += f" + {at('B', broadcast(bias, rows.point))}"
    body = [
        *deviations(rows, value, x.dtype),
        scaling(rows, attribute(call, "epsilon", 1e-5)),
        rows.each_point("Y", converted(result, x.dtype, y.dtype)),
        *row_output(rows, "Mean", "Center", x.dtype, mean),
        *row_output(rows, "InvStdDev", "Scaling", x.dtype, deviation),
    ]
    returns = {"Y": y, "Mean": mean, "InvStdDev": deviation}
    return definition(call, {"X": x, "Scale": scale, "B": bias}, returns, body)


@onnx_op("RMSNormalization", since=23, kind=Kind.REDUCTION)
@onnx_op("SimplifiedLayerNormalization", since=1, kind=Kind.REDUCTION)
@onnx_op("SimplifiedLayerNormalization", since=1, kind=Kind.REDUCTION, domain=MICROSOFT)
def rms_normalization(call: OpCall) -> str:
    """``X / sqrt(mean of squares + epsilon) * Scale`` over the dimensions from ``axis``."""
    standard_stash(call)
    x, scale, y, deviation = (
        needed(call, 0),
        needed(call, 1),
        first_output(call),
        output(call, 1),
    )
    rows = trailing_rows(call, x)
    value = rows.at_point("X")
    result = f"{value} * {rows.at_row('Scaling')} * {at('Scale', broadcast(scale, rows.point))}"
    body = [
        *squares(rows, value),
        scaling(rows, attribute(call, "epsilon", 1e-5)),
        rows.each_point("Y", converted(result, x.dtype, y.dtype)),
        *row_output(rows, "InvStdDev", "Scaling", x.dtype, deviation),
    ]
    return definition(call, {"X": x, "Scale": scale}, {"Y": y, "InvStdDev": deviation}, body)


@onnx_op("SkipLayerNormalization", since=1, kind=Kind.REDUCTION, domain=MICROSOFT)
def skip_layer_normalization(call: OpCall) -> str:
    """LayerNormalization of ``X + Skip + Bias`` over the last dimension."""
    x, skip, scale = needed(call, 0), needed(call, 1), needed(call, 2)
    shift, bias = call.input(3), call.input(4)
    rows = rows_of(call, x, [-1])
    scaled = at("Scale", broadcast(scale, rows.point))
    result = f"({rows.at_point('Added')} - {rows.at_row('Center')}) * {rows.at_row('Scaling')}"
    result += f" * {scaled}"
    if shift:
        result += f" + {at('Shift', broadcast(shift, rows.point))}"
    statistics = deviations(rows, rows.at_point("Added"), x.dtype.compute)
    params = {"X": x, "Skip": skip, "Scale": scale, "Shift": shift, "Bias": bias}
    return skip_definition(call, rows, params, statistics, result)


@onnx_op("SkipSimplifiedLayerNormalization", since=1, kind=Kind.REDUCTION, domain=MICROSOFT)
def skip_simplified_layer_normalization(call: OpCall) -> str:
    """RMSNormalization of ``X + Skip + Bias`` over the last dimension."""
    x, skip, scale, bias = needed(call, 0), needed(call, 1), needed(call, 2), call.input(3)
    rows = rows_of(call, x, [-1])
    scaled = at("Scale", broadcast(scale, rows.point))
    result = f"{rows.at_point('Added')} * {rows.at_row('Scaling')} * {scaled}"
    statistics = squares(rows, rows.at_point("Added"))
    params = {"X": x, "Skip": skip, "Scale": scale, "Bias": bias}
    return skip_definition(call, rows, params, statistics, result)


def skip_definition(
    call: OpCall,
    rows: Rows,
    params: dict[str, TensorType | None],
    statistics: list[str],
    result: str,
) -> str:
    """A normalisation of ``Added``, the sum of two inputs and an optional bias.

    Shapes:
        Skip: X's, or without the batch, which is then broadcast.
    """
    added = " + ".join(
        at(name, broadcast(type_, rows.point))
        for name, type_ in params.items()
        if type_ and name in ("X", "Skip", "Bias")
    )
    x, y, mean = needed(call, 0), first_output(call), output(call, 1)
    deviation, sum_ = output(call, 2), output(call, 3)
    body = [
        rows.each_point("Added", added),
        *statistics,
        scaling(rows, attribute(call, "epsilon", 1e-12)),
        rows.each_point("Y", result),
        *row_output(rows, "InvStdDev", "Scaling", x.dtype, deviation),
    ]
    if mean and "Shift" in params:
        body += row_output(rows, "Mean", "Center", x.dtype, mean)
    elif mean:
        body.append(statement("Mean", rows.with_ones(), "0"))  # nothing is subtracted
    if sum_:
        body.append(rows.each_point("Total", rows.at_point("Added")))
    returns = {"Y": y, "Mean": mean, "InvStdDev": deviation, "Total": sum_}
    return definition(call, params, returns, body)
