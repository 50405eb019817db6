"""Normalisation of channels, groups of them and single rows.

Source: https://onnx.ai/onnx/operators/onnx__InstanceNormalization.html and its siblings.
"""

from __future__ import annotations

from op_library._rows import rows_of
from op_library._statistics import (
    converted,
    deviations,
    first_output,
    output,
    scaling,
    standard_stash,
)
from op_library._text import (
    at,
    attribute,
    definition,
    names,
    needed,
    number,
    only_output,
    require_equal,
    statement,
    widened,
)
from op_library._windows import Window, guarded
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import TensorType


@onnx_op("InstanceNormalization", since=6, kind=Kind.REDUCTION)
def instance_normalization(call: OpCall) -> str:
    """Each channel of each image normalised, then scaled and shifted by channel."""
    x, scale, bias = affine_inputs(call)
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
        *deviations(rows, value, x.dtype),
        scaling(rows, attribute(call, "epsilon", 1e-5)),
        rows.each_point("Y", result),
    ]
    params = {"X": x, "Scale": scale, "B": bias}
    return definition(call, params, {"Y": only_output(call)}, body)


def affine_inputs(call: OpCall) -> tuple[TensorType, TensorType, TensorType]:
    """The types of images with channels, and of the factor and the summand of each.

    Raises:
        UnsupportedError: They are no such.
    """
    x, scale, bias = needed(call, 0), needed(call, 1), needed(call, 2)
    if x.rank < 2 or scale.rank != 1 or bias.rank != 1:
        raise UnsupportedError(
            f"{call.op_type} of ranks {x.rank}, {scale.rank} and {bias.rank}"
        )
    return x, scale, bias


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
    x, scale, bias = affine_inputs(call)
    groups, channels = int(call.attributes["num_groups"]), x.shape[1]
    if groups < 1 or not isinstance(channels, int) or channels % groups:
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
        *deviations(rows, value, x.dtype),
        scaling(rows, attribute(call, "epsilon", 1e-5)),
        points.each_point("Y", result),
    ]
    params = {"X": x, "Scale": scale, "B": bias}
    return definition(call, params, {"Y": only_output(call)}, body)


@onnx_op("BatchNormalization", since=7, kind=Kind.REDUCTION)
def batch_normalization(call: OpCall) -> str:
    """Each channel normalised with a mean and a variance that are given, or with its own.

    In training the other outputs are the given ones moved towards its own.
    """
    x, y = needed(call, 0), first_output(call)
    is_training = len(call.outputs) > 1
    if call.opset >= 14:
        is_training = bool(call.attributes.get("training_mode", 0))
    if x.rank < 2 or not call.attributes.get("spatial", 1) or any(call.outputs[3:]):
        raise UnsupportedError(
            f"BatchNormalization of rank {x.rank}, or not spatial, or with what it saves"
        )
    rows = rows_of(call, x, (d for d in range(x.rank) if d != 1))
    channel, channels = rows.point[1]
    params: dict[str, TensorType | None] = {"X": x}
    for k, name in enumerate(("Scale", "B", "Mean", "Var"), start=1):
        params[name] = needed(call, k)
        require_equal(needed(call, k).shape[0], channels)
    widest = max((t.dtype for t in params.values() if t), key=lambda dtype: dtype.bytes)
    returns = {"Y": y, "NewMean": output(call, 1), "NewVar": output(call, 2)}
    body, mean, variance = [], f"Mean({channel})", f"Var({channel})"
    if is_training:
        body = deviations(rows, rows.at_point("X"), x.dtype)
        mean, variance = f"Center({channel})", f"Squares({channel}) / {rows.count}"
        kept = attribute(call, "momentum", 0.9)
        for name, old, new in (("NewMean", "Mean", mean), ("NewVar", "Var", variance)):
            if (type_ := returns[name]) is not None:
                moved = f"{old}({channel}) * {kept} + {new} * (1 - {kept})"
                body.append(rows.each_row(name, converted(moved, widest, type_.dtype)))
    elif any(call.outputs[1:]):
        raise UnsupportedError("BatchNormalization at inference with more than one output")
    factor = f"Scale({channel}) / sqrt({variance} + {attribute(call, 'epsilon', 1e-5)})"
    result = f"({rows.at_point('X')} - {mean}) * ({factor}) + B({channel})"
    body.append(rows.each_point("Y", converted(result, widest, y.dtype)))
    return definition(call, params, returns, body)


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
        *deviations(rows, value, x.dtype),
        rows.each_row("Deviation", f"{root} + {number(1e-9)}"),
        rows.each_point("Y", f"{deviation} / {rows.at_row('Deviation')}"),
    ]
    return definition(call, {"X": x}, {"Y": only_output(call)}, body)


@onnx_op("LRN", since=1, kind=Kind.REDUCTION)
def local_response_normalization(call: OpCall) -> str:
    """Elements divided by a power of what the channels around theirs add up to, squared."""
    x, size = needed(call, 0), int(call.attributes.get("size", 0))
    if size < 1 or x.rank < 2:
        raise UnsupportedError(f"LRN of rank {x.rank} over {size} channels")
    points = rows_of(call, x, ())
    before = (size - 1) // 2
    after = size - 1 - before
    channels = Window(x.shape[1], points.point[1], ("w", size), before=before, after=after)
    around = list(names(points.point))
    around[1] = channels.subscript
    square = guarded(channels.conditions, f"{at('X', around)} * {at('X', around)}")
    alpha, beta = attribute(call, "alpha", 1e-4), attribute(call, "beta", 0.75)
    mean = f"{alpha} / {size} * {points.at_point('Squares')}"
    base = f"{attribute(call, 'bias', 1.0)} + {mean}"
    body = [
        statement("Squares", points.point, square, assign="+=!", reduce=(channels.tap,)),
        points.each_point("Y", f"{points.at_point('X')} / pow({base}, {beta})"),
    ]
    return definition(call, {"X": x}, {"Y": only_output(call)}, body)
