"""Normalisation: rows shifted to mean 0 and scaled to variance 1, or scaled alone.

The variance is the mean of squared deviations, which does not cancel.  ``stash_type`` asks for
single precision inside, which 16-bit types get anyway; ``double`` stays ``double``.

Source: https://onnx.ai/onnx/operators/onnx__LayerNormalization.html and its siblings.
"""

from __future__ import annotations

from op_library._rows import Rows, rows_of
from op_library._text import (
    at,
    attribute,
    broadcast,
    definition,
    names,
    needed,
    number,
    only_output,
    require_equal,
    statement,
    widened,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, TensorType

MICROSOFT = "com.microsoft"


def standard_stash(call: OpCall) -> None:
    """Check that the operator computes in single precision.

    Raises:
        UnsupportedError: It asks for another precision.
    """
    stash = call.attributes.get("stash_type", 1)
    if stash != 1:
        raise UnsupportedError(f"{call.op_type} with stash_type {stash}")


def moments(rows: Rows, value: str, dtype: DType, epsilon: str) -> list[str]:
    """Statements that compute ``Center`` and ``Scaling = 1 / sqrt(variance + epsilon)``."""
    deviation = f"({value} - {rows.at_row('Center')})"
    return [
        rows.fold("Sum", widened(dtype, value)),
        rows.each_row("Center", f"{rows.at_row('Sum')} / {rows.count}"),
        rows.fold("Squares", f"{deviation} * {deviation}"),
        rows.each_row(
            "Scaling", f"1 / sqrt({rows.at_row('Squares')} / {rows.count} + {epsilon})"
        ),
    ]


def root_mean_square(rows: Rows, value: str, epsilon: str) -> list[str]:
    """Statements that compute ``Scaling = 1 / sqrt(mean of squares + epsilon)``."""
    return [
        rows.fold("Squares", f"{value} * {value}"),
        rows.each_row(
            "Scaling", f"1 / sqrt({rows.at_row('Squares')} / {rows.count} + {epsilon})"
        ),
    ]


def converted(value: str, source: DType, target: DType) -> str:
    """``value`` computed in ``source``'s precision, fit to be assigned to ``target``."""
    narrows = source is DType.FLOAT64 and target is not DType.FLOAT64
    return f"{target.tc}({value})" if narrows else value


def trailing_rows(call: OpCall, type_: TensorType) -> Rows:
    """Rows over the dimensions from ``axis`` on, the last one by default."""
    return rows_of(call, type_, range(call.axis(default=-1), type_.rank))


def output(call: OpCall, k: int) -> TensorType | None:
    """The type of output ``k``; ``None`` when it is unused."""
    return call.outputs[k] if k < len(call.outputs) else None


def row_output(
    rows: Rows, name: str, temporary: str, source: DType, type_: TensorType | None
) -> list[str]:
    """The statement that copies a row's statistic to an output, if the output is used."""
    if type_ is None:
        return []
    value = converted(rows.at_row(temporary), source, type_.dtype)
    return [statement(name, rows.with_ones(), value)]


def first_output(call: OpCall) -> TensorType:
    """The type of the first output.

    Raises:
        UnsupportedError: It is unused.
    """
    first = output(call, 0)
    if first is None:
        raise UnsupportedError(f"{call.op_type} without its first output")
    return first


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
        *moments(rows, value, x.dtype, attribute(call, "epsilon", 1e-5)),
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
        *root_mean_square(rows, value, attribute(call, "epsilon", 1e-5)),
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
    statistics = moments(
        rows, rows.at_point("Added"), x.dtype.compute, attribute(call, "epsilon", 1e-12)
    )
    params = {"X": x, "Skip": skip, "Scale": scale, "Shift": shift, "Bias": bias}
    return skip_definition(call, rows, params, statistics, result)


@onnx_op("SkipSimplifiedLayerNormalization", since=1, kind=Kind.REDUCTION, domain=MICROSOFT)
def skip_simplified_layer_normalization(call: OpCall) -> str:
    """RMSNormalization of ``X + Skip + Bias`` over the last dimension."""
    x, skip, scale, bias = needed(call, 0), needed(call, 1), needed(call, 2), call.input(3)
    rows = rows_of(call, x, [-1])
    scaled = at("Scale", broadcast(scale, rows.point))
    result = f"{rows.at_point('Added')} * {rows.at_row('Scaling')} * {scaled}"
    epsilon = attribute(call, "epsilon", 1e-12)
    statistics = root_mean_square(rows, rows.at_point("Added"), epsilon)
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
    if mean and "Shift" not in params:
        raise UnsupportedError(f"{call.op_type} with its mean as an output")
    body = [
        rows.each_point("Added", added),
        *statistics,
        rows.each_point("Y", result),
        *row_output(rows, "Mean", "Center", x.dtype, mean),
        *row_output(rows, "InvStdDev", "Scaling", x.dtype, deviation),
    ]
    if sum_:
        body.append(rows.each_point("Total", rows.at_point("Added")))
    returns = {"Y": y, "Mean": mean, "InvStdDev": deviation, "Total": sum_}
    return definition(call, params, returns, body)


@onnx_op("InstanceNormalization", since=6, kind=Kind.REDUCTION)
def instance_normalization(call: OpCall) -> str:
    """Each channel of each image normalised, then scaled and shifted by channel."""
    x, scale, bias = needed(call, 0), needed(call, 1), needed(call, 2)
    rows = rows_of(call, x, range(2, x.rank))
    value = rows.at_point("X")
    channel = rows.point[1][0]
    require_equal(scale.shape[0], x.shape[1])
    require_equal(bias.shape[0], x.shape[1])
    result = (
        f"({value} - {rows.at_row('Center')}) * {rows.at_row('Scaling')}"
        f" * Scale({channel}) + B({channel})"
    )
    body = [
        *moments(rows, value, x.dtype, attribute(call, "epsilon", 1e-5)),
        rows.each_point("Y", result),
    ]
    params = {"X": x, "Scale": scale, "B": bias}
    return definition(call, params, {"Y": only_output(call)}, body)


@onnx_op("GroupNormalization", since=21, kind=Kind.REDUCTION)
def group_normalization_21(call: OpCall) -> str:
    """Groups of channels normalised, then scaled and shifted by channel."""
    standard_stash(call)
    return group_normalization(call, by_group=False)


@onnx_op("GroupNormalization", since=18, kind=Kind.REDUCTION)
def group_normalization_18(call: OpCall) -> str:
    """Groups of channels normalised, then scaled and shifted by group."""
    return group_normalization(call, by_group=True)


def group_normalization(call: OpCall, *, by_group: bool) -> str:
    """Groups of channels normalised, then scaled and shifted."""
    x, scale, bias = needed(call, 0), needed(call, 1), needed(call, 2)
    groups, channels = int(call.attributes["num_groups"]), x.shape[1]
    if not isinstance(channels, int) or channels % groups:
        raise UnsupportedError(f"{channels} channels in {groups} groups")
    members = channels // groups
    # Rows of the input seen with its channels split into groups and their members.
    split = TensorType(x.dtype, (x.shape[0], groups, members, *x.shape[2:]))
    rows = rows_of(call, split, range(2, split.rank))
    image, group, member, *pixel = names(rows.point)
    own = f"{group} * {members} + {member}" if members > 1 else group
    value = at("X", (image, own, *pixel))

    points = rows_of(call, x, ())
    channel = points.point[1][0]
    its_group = f"{channel} / {members}" if members > 1 else channel
    row = (points.point[0][0], its_group)
    parameter = its_group if by_group else channel
    result = (
        f"({points.at_point('X')} - {at('Center', row)}) * {at('Scaling', row)}"
        f" * Scale({parameter}) + B({parameter})"
    )
    body = [
        *moments(rows, value, x.dtype, attribute(call, "epsilon", 1e-5)),
        points.each_point("Y", result),
    ]
    params = {"X": x, "Scale": scale, "B": bias}
    return definition(call, params, {"Y": only_output(call)}, body)


@onnx_op("BatchNormalization", since=7, kind=Kind.ELEMENTWISE)
def batch_normalization(call: OpCall) -> str:
    """Each channel normalised with a mean and a variance that are given: inference only."""
    x, y = needed(call, 0), only_output(call)
    if call.attributes.get("training_mode", 0) or not call.attributes.get("spatial", 1):
        raise UnsupportedError("BatchNormalization that trains, or is not spatial")
    if x.rank < 2:
        raise UnsupportedError(f"BatchNormalization of rank {x.rank}")
    points = rows_of(call, x, ())
    channel, channels = points.point[1]
    params: dict[str, TensorType | None] = {"X": x}
    for k, name in enumerate(("Scale", "B", "Mean", "Var"), start=1):
        params[name] = needed(call, k)
        require_equal(needed(call, k).shape[0], channels)
    epsilon = attribute(call, "epsilon", 1e-5)
    factor = f"Scale({channel}) / sqrt(Var({channel}) + {epsilon})"
    result = f"({points.at_point('X')} - Mean({channel})) * ({factor}) + B({channel})"
    widest = max((t.dtype for t in params.values() if t), key=lambda dtype: dtype.bytes)
    body = [points.each_point("Y", converted(result, widest, y.dtype))]
    return definition(call, params, {"Y": y}, body)


@onnx_op("LpNormalization", since=1, kind=Kind.REDUCTION)
def lp_normalization(call: OpCall) -> str:
    """Rows divided by their norm; a row of zeros stays."""
    x, p = needed(call, 0), call.attributes.get("p", 2)
    rows = rows_of(call, x, [call.axis(default=-1)])
    value, norm = rows.at_point("X"), rows.at_row("Norm")
    if p == 1:
        body = [rows.fold("Norm", widened(x.dtype, f"abs({value})"))]
    elif p == 2:
        body = [
            rows.fold("Squares", f"{value} * {value}"),
            rows.each_row("Norm", f"sqrt({rows.at_row('Squares')})"),
        ]
    else:
        raise UnsupportedError(f"LpNormalization with p = {p}")
    body.append(rows.each_point("Y", f"{norm} == 0 ? 0 : {value} / {norm}"))
    return definition(call, {"X": x}, {"Y": only_output(call)}, body)


@onnx_op("MeanVarianceNormalization", since=9, kind=Kind.REDUCTION)
def mean_variance_normalization(call: OpCall) -> str:
    """``(X - mean) / (sqrt(variance) + 1e-9)`` along ``axes``."""
    x = needed(call, 0)
    rows = rows_of(call, x, call.attributes.get("axes", (0, 2, 3)))
    value = rows.at_point("X")
    deviation = f"({value} - {rows.at_row('Center')})"
    root = f"sqrt({rows.at_row('Squares')} / {rows.count})"
    body = [
        *moments(rows, value, x.dtype, "0")[:-1],
        rows.each_row("Deviation", f"{root} + {number(1e-9)}"),
        rows.each_point("Y", f"{deviation} / {rows.at_row('Deviation')}"),
    ]
    return definition(call, {"X": x}, {"Y": only_output(call)}, body)
