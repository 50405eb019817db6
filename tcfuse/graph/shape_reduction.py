"""Shape rules of operators that combine the elements of an axis."""

from __future__ import annotations

from collections.abc import Sequence

from tcfuse.graph.shape_call import Call, Shapes, UnknownShapeError, normalize_axis, shape_rule
from tcfuse.graph.symbols import Dim, Dims

REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)


def without(x: Dims, axes: Sequence[int], keep: bool) -> Dims:
    """``x`` with these axes gone, or of size 1 if kept."""
    gone = {normalize_axis(a, len(x)) for a in axes}
    if keep:
        return tuple(1 if k in gone else d for k, d in enumerate(x))
    return tuple(d for k, d in enumerate(x) if k not in gone)


def reduction_axes(call: Call, rank: int) -> Sequence[int]:
    """Axes a ``Reduce*`` combines: an input from opset 18 on (13 for the sum).

    Raises:
        UnknownShapeError: They are computed at run time.
    """
    since = 13 if call.node.op_type == "ReduceSum" else 18
    if call.opset < since:
        axes: Sequence[int] | None = call.attribute("axes")
    else:
        axes = call.integers(1)
    if axes:
        return axes
    if call.opset >= since and call.attribute("noop_with_empty_axes", 0):
        return ()
    return range(rank)


@shape_rule(*REDUCTIONS)
def reduce(call: Call) -> Shapes:
    """The reduced axes go, or stay as 1; with unknown axes only a kept rank is known."""
    x = call.shape(0)
    keep = bool(call.attribute("keepdims", 1))
    try:
        axes = reduction_axes(call, len(x))
    except UnknownShapeError:
        if not keep:
            raise
        return [tuple(call.fresh() for _ in x)]
    return [without(x, axes, keep)]


@shape_rule("ArgMax", "ArgMin")
def arg_extremum(call: Call) -> Shapes:
    """The axis goes, or stays as 1."""
    x = call.shape(0)
    axis = int(call.attribute("axis", 0))
    return [without(x, (axis,), bool(call.attribute("keepdims", 1)))]


@shape_rule("TopK")
def top_k(call: Call) -> Shapes:
    """Values and indices: ``k`` along the axis."""
    x = call.shape(0)
    axis = call.axis(len(x), -1)
    k: Dim | None = call.attribute("k") if call.opset < 10 else (call.elements(1) or (None,))[0]
    found = (*x[:axis], call.fresh() if k is None else k, *x[axis + 1 :])
    return [found, found]


@shape_rule("NonMaxSuppression")
def non_max_suppression(call: Call) -> Shapes:
    """One row of batch, class and box a box kept."""
    return [(call.fresh(), 3)]
