"""Shape rules of operators whose result has the size an input asks for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcfuse.graph.shape_call import (
    Call,
    Shapes,
    UnknownShapeError,
    normalize_axis,
    shape_rule,
    sizes_input,
)
from tcfuse.graph.symbols import (
    Dim,
    ceil_divide,
    floor_divide,
    maximum,
    multiply,
    number,
    subtract,
)


@shape_rule("Resize", "Upsample")
def resize(call: Call) -> Shapes:
    """Sizes given, or each size times its scale rounded down in float32, as at run time."""
    x = call.shape(0)
    axes = [normalize_axis(a, len(x)) for a in call.attribute("axes") or range(len(x))]
    policy = call.attribute("keep_aspect_ratio_policy", "stretch")
    mode = call.attribute("coordinate_transformation_mode", "")
    if policy == "stretch" and mode != "tf_crop_and_resize":
        new = _resized(call, [x[a] for a in axes])
    elif all(isinstance(d, int) for d in x):
        raise UnknownShapeError  # ONNX's inference knows
    else:
        new = [None] * len(axes)
    result = list(x)
    for axis, size in zip(axes, new, strict=True):
        result[axis] = call.fresh() if size is None else size
    return [tuple(result)]


def _resized(call: Call, old: Sequence[Dim]) -> Sequence[Dim | None]:
    """What ``old`` becomes; ``None`` for a size computed at run time."""
    sizes = call.elements(3)
    if call.input(3) is not None and sizes != ():
        return [None] * len(old) if sizes is None else sizes
    scales = _scales(call, len(old))
    return [None if s is None else _scaled(d, s) for d, s in zip(old, scales, strict=True)]


def _scales(call: Call, n: int) -> Sequence[float | None]:
    """The scales of ``Resize`` or ``Upsample``; ``None`` for those computed at run time."""
    attribute = call.attribute("scales")
    if attribute is not None:
        return tuple(attribute)
    at = 1 if call.node.op_type == "Upsample" or call.opset < 11 else 2
    array = call.array(at)
    return [None] * n if array is None else [float(s) for s in array.ravel()]


def _scaled(size: Dim, scale: float) -> Dim | None:
    if isinstance(size, int):
        return int(np.float32(size) * np.float32(scale))
    numerator, denominator = float(scale).as_integer_ratio()
    if denominator > 1 << 10:
        return None  # how float32 rounds depends on the size
    return floor_divide(number(multiply(size, numerator)), denominator) if numerator else 0


@shape_rule("OneHot")
def one_hot(call: Call) -> Shapes:
    """A new axis of the depth given."""
    indices = call.shape(0)
    axis = call.axis(len(indices) + 1, -1)
    depth = (call.elements(1) or (None,))[0]
    new = call.fresh() if depth is None else depth
    return [(*indices[:axis], new, *indices[axis:])]


@shape_rule("Shape")
def shape(call: Call) -> Shapes:
    """One element an axis between ``start`` and ``end``."""
    rank = len(call.shape(0))
    start, end = call.attribute("start", 0), call.attribute("end", rank)
    return [(len(range(*slice(start, end).indices(rank))),)]


@shape_rule("Size")
def size(call: Call) -> Shapes:
    """A scalar."""
    return [()]


@shape_rule("ConstantOfShape")
def constant_of_shape(call: Call) -> Shapes:
    """The shape given."""
    return [tuple(call.fresh() if s is None else s for s in sizes_input(call, 0))]


@shape_rule("RandomNormal", "RandomUniform")
def random(call: Call) -> Shapes:
    """The shape given."""
    return [tuple(call.attribute("shape"))]


@shape_rule("Range")
def range_(call: Call) -> Shapes:
    """How many steps fit."""
    start, limit, delta = ((call.elements(k) or (None,))[0] for k in range(3))
    if start is None or limit is None or not isinstance(delta, int) or delta == 0:
        return [(call.fresh(),)]
    span = subtract(limit, start) if delta > 0 else subtract(start, limit)
    return [(maximum(ceil_divide(span, abs(delta)), 0),)]
