"""Losses of classifiers: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.

Source: https://onnx.ai/onnx/operators/onnx__NegativeLogLikelihoodLoss.html and its sibling.
"""

from __future__ import annotations

from op_library._rows import Rows, rows_of
from op_library._statistics import first_output, output
from op_library._text import (
    at,
    definition,
    names,
    needed,
    only_output,
    product,
    require_equal,
    select,
    statement,
    widened,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import TensorType


def class_rows(call: OpCall) -> Rows:
    """One row for each label, over the classes.

    Raises:
        UnsupportedError: Scores and labels do not fit together.
    """
    x, labels = needed(call, 0), needed(call, 1)
    if x.rank < 2 or labels.rank != x.rank - 1:
        raise UnsupportedError(f"{call.op_type} of rank {x.rank} with labels of {labels.rank}")
    rows = rows_of(call, x, [1])
    for (_, extent), size in zip(rows.kept, labels.shape, strict=True):
        require_equal(size, extent)
    return rows


def losses(call: OpCall, rows: Rows, logarithm: str) -> list[str]:
    """Statements that make ``Y`` of the logarithms of probabilities.

    Args:
        call: The node.
        rows: One row for each label.
        logarithm: Template of the logarithm for a class ``{0}`` at the row.
    """
    dtype = needed(call, 0).dtype
    own, weight = f"-{logarithm.format('label')}", "1"
    if (weights := call.input(2)) is not None:
        require_equal(weights.shape[0], rows.reduced[0][1])
        own, weight = f"{own} * W(label)", "W(label)"
    counts = weight == "1"
    if (ignored := call.attributes.get("ignore_index")) is not None:
        own, weight = (select(f"label == {ignored}", "0", v) for v in (own, weight))
        counts = False
    lets = {"label": rows.at_row("Labels")}
    reduction = call.attributes.get("reduction", "mean")
    if reduction == "none":
        return [statement("Y", rows.kept, own, lets=lets)]
    if reduction not in ("mean", "sum"):
        raise UnsupportedError(f"{call.op_type} with reduction {reduction!r}")

    def fold(target: str, value: str) -> str:
        return statement(target, (), value, assign="+=!", reduce=rows.kept, lets=lets)

    if reduction == "sum":
        return [fold("Sum", widened(dtype, own)), statement("Y", (), "Sum")]
    if counts:
        count = product(size for _, size in rows.kept)
        return [fold("Sum", widened(dtype, own)), statement("Y", (), f"Sum / {count}")]
    return [
        fold("Sum", widened(dtype, own)),
        fold("Weight", f"{dtype.compute.tc}({weight})"),
        statement("Y", (), "Sum / Weight"),
    ]


@onnx_op("NegativeLogLikelihoodLoss", since=12, kind=Kind.REDUCTION)
def negative_log_likelihood_loss(call: OpCall) -> str:
    """The weighted mean or sum of ``-X`` at the labels; ``ignore_index`` is no label."""
    rows = class_rows(call)
    params = {"X": needed(call, 0), "Labels": needed(call, 1), "W": call.input(2)}
    body = losses(call, rows, at_class("X", rows))
    return definition(call, params, {"Y": only_output(call)}, body)


@onnx_op("SoftmaxCrossEntropyLoss", since=12, kind=Kind.REDUCTION)
def softmax_cross_entropy_loss(call: OpCall) -> str:
    """The same of the logarithm of the softmax of ``X``, which is the second output."""
    rows = class_rows(call)
    params = {"X": needed(call, 0), "Labels": needed(call, 1), "W": call.input(2)}
    returns: dict[str, TensorType | None] = {"Y": first_output(call), "Logs": output(call, 1)}
    normalized = f"{{}} - {rows.at_row('Max')} - {rows.at_row('LogSum')}"
    body = [
        rows.fold("Max", rows.at_point("X"), "max=!"),
        rows.fold("Sums", f"exp({rows.at_point('X')} - {rows.at_row('Max')})"),
        rows.each_row("LogSum", f"log({rows.at_row('Sums')})"),
    ]
    if returns["Logs"]:
        body.append(rows.each_point("Logs", normalized.format(rows.at_point("X"))))
    body += losses(call, rows, f"({normalized.format(at_class('X', rows))})")
    return definition(call, params, returns, body)


def at_class(tensor: str, rows: Rows) -> str:
    """Template of the element of a tensor for a class ``{0}`` at the row."""
    batch, *pixel = names(rows.kept)
    return at(tensor, (batch, "{0}", *pixel))
