"""Shape rules of operators that move, select, repeat or reinterpret elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcfuse.graph.shape_call import (
    MAX_RANK,
    Call,
    Elements,
    Shapes,
    UnknownShapeError,
    normalize_axis,
    shape_rule,
)
from tcfuse.graph.shape_pointwise import broadcast
from tcfuse.graph.symbols import (
    Dim,
    Dims,
    add,
    ceil_divide,
    clamp_length,
    equal,
    exact_divide,
    floor_divide,
    maximum,
    minimum,
    multiply,
    nonnegative,
    number,
    product,
    subtract,
)

_TO_THE_END = 10**9  # ends of slices beyond this mean "all of it"


@shape_rule("Transpose")
def transpose(call: Call) -> Shapes:
    """Axes in the order of ``perm``, reversed without one."""
    x = call.shape(0)
    order = call.attribute("perm") or tuple(reversed(range(len(x))))
    if sorted(order) != list(range(len(x))):
        raise UnknownShapeError
    return [tuple(x[k] for k in order)]


def vector_length(call: Call, k: int) -> int:
    """Number of elements of input ``k``, which is a vector of sizes.

    Raises:
        UnknownShapeError: It is not known, or larger than any rank.
    """
    (length,) = call.shape(k) or (1,)
    if not isinstance(length, int) or length > MAX_RANK:
        raise UnknownShapeError
    return length


def sizes_input(call: Call, k: int) -> Elements:
    """Elements of input ``k``; ``None`` for each when only their number is known."""
    elements = call.elements(k)
    return (None,) * vector_length(call, k) if elements is None else elements


@shape_rule("Reshape")
def reshape(call: Call) -> Shapes:
    """0 copies a size, -1 (or one size that is not known) is what is left."""
    source = call.shape_or_none(0)
    target: list[Dim | None] = list(sizes_input(call, 1))
    open_axes: list[int] = []
    for axis, size in enumerate(target):
        if size is None or size == -1:
            open_axes.append(axis)
        elif size == 0 and not call.attribute("allowzero", 0):
            target[axis] = source[axis] if source is not None else None
            if source is None:
                open_axes.append(axis)
    known = product(
        s for axis, s in enumerate(target) if axis not in open_axes and s is not None
    )
    if len(open_axes) == 1 and source is not None and known != 0:
        target[open_axes[0]] = exact_divide(product(source), known)
        open_axes = []
    for axis in open_axes:
        target[axis] = call.fresh()
    return [tuple(s for s in target if s is not None)]


@shape_rule("Flatten")
def flatten(call: Call) -> Shapes:
    """Two axes: all before ``axis``, all from it on."""
    x = call.shape(0)
    axis = int(call.attribute("axis", 1))
    if not -len(x) <= axis <= len(x):
        raise UnknownShapeError
    axis = axis + len(x) if axis < 0 else axis
    return [(product(x[:axis]), product(x[axis:]))]


def axes_of(call: Call, since: int) -> tuple[int, ...] | None:
    """Axes from input 1 from opset ``since`` on, from the attribute before."""
    if call.opset >= since:
        return call.integers(1)
    axes = call.attribute("axes")
    return None if axes is None else tuple(axes)


@shape_rule("Squeeze")
def squeeze(call: Call) -> Shapes:
    """Without axes every size of 1 goes, which is only known when all sizes are numbers."""
    x = call.shape(0)
    axes = axes_of(call, 13)
    if axes is None:
        if not all(isinstance(d, int) for d in x):
            raise UnknownShapeError
        return [tuple(d for d in x if d != 1)]
    gone = {normalize_axis(a, len(x)) for a in axes}
    return [tuple(d for k, d in enumerate(x) if k not in gone)]


@shape_rule("Unsqueeze")
def unsqueeze(call: Call) -> Shapes:
    """New axes of size 1 at these positions of the result."""
    x = call.shape(0)
    axes = axes_of(call, 13) or ()
    rank = len(x) + len(axes)
    new = {normalize_axis(a, rank) for a in axes}
    rest = iter(x)
    return [tuple(1 if k in new else next(rest) for k in range(rank))]


@shape_rule("Concat")
def concat(call: Call) -> Shapes:
    """Sizes along ``axis`` add up; on the others any input that knows a number decides."""
    shapes = [call.shape(k) for k in range(len(call.node.inputs))]
    rank = len(shapes[0])
    axis = call.axis(rank, 0)
    if any(len(shape) != rank for shape in shapes):
        raise UnknownShapeError
    result: list[Dim] = []
    for k in range(rank):
        sizes = [shape[k] for shape in shapes]
        if k == axis:
            total: Dim = 0
            for size in sizes:
                total = add(total, size)
            result.append(total)
        else:
            for other in sizes[1:]:
                call.scope.require(sizes[0], other)
            result.append(next((s for s in sizes if isinstance(s, int)), sizes[0]))
    return [tuple(result)]


def slice_arguments(
    call: Call, rank: int
) -> list[tuple[int, Dim | None, Dim | None, int | None]]:
    """For each sliced axis: axis, start, end and step; ``None`` for what is not known."""
    if call.opset < 10:
        starts: Elements = tuple(call.attribute("starts"))
        ends: Elements = tuple(call.attribute("ends"))
        axes: Sequence[int] | None = call.attribute("axes")
        steps: Elements | None = None
    else:
        starts, ends = sizes_input(call, 1), sizes_input(call, 2)
        axes = call.integers(3)
        steps = sizes_input(call, 4) if call.input(4) is not None else None
    axes = range(len(starts)) if axes is None else axes
    result = []
    for k, axis in enumerate(axes):
        step = 1 if steps is None else steps[k]
        known_step = step if isinstance(step, int) and step != 0 else None
        result.append((normalize_axis(axis, rank), starts[k], ends[k], known_step))
    return result


@shape_rule("Slice")
def slice_(call: Call) -> Shapes:
    """Each sliced axis on its own."""
    x = list(call.shape(0))
    for axis, start, end, step in slice_arguments(call, len(x)):
        length = slice_length(x[axis], start, end, step)
        x[axis] = call.fresh() if length is None else length
    return [tuple(x)]


# A size is taken to be at least 1 here, so that cutting one off leaves ``n - 1``, no maximum.
def slice_length(size: Dim, start: Dim | None, end: Dim | None, step: int | None) -> Dim | None:
    """Number of elements a slice of an axis selects; ``None`` when it cannot be told."""
    if step is None or start is None or end is None:
        return None
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(*slice(start, end, step).indices(size)))
    if step < 0:
        whole = isinstance(start, int) and (start == -1 or start >= _TO_THE_END)
        whole = whole or equal(start, subtract(size, 1))
        backwards = isinstance(end, int) and end <= -_TO_THE_END
        return ceil_divide(size, -step) if whole and backwards else None
    first, last = _clamp(size, start), _clamp(size, end)
    if first is None or last is None:
        return None
    length = subtract(last, first)
    if any(equal(length, whole) for whole in (size, subtract(size, 1))):
        return ceil_divide(length, step)
    return clamp_length(ceil_divide(length, step))


def _clamp(size: Dim, bound: Dim) -> Dim | None:
    """A bound of a forward slice as a position between 0 and ``size``."""
    if isinstance(bound, int):
        if bound >= _TO_THE_END:
            return size
        if bound < 0:
            if bound <= -_TO_THE_END:
                return 0
            return add(size, bound) if bound == -1 else clamp_length(add(size, bound))
        return bound if bound <= 1 and not isinstance(size, int) else minimum(bound, size)
    if equal(bound, size):
        return size
    return minimum(bound, size) if nonnegative(bound) else None


@shape_rule("Split")
def split(call: Call) -> Shapes:
    """Sizes given, or equal parts of which the last may be smaller."""
    x = call.shape(0)
    axis = call.axis(len(x), 0)
    n = call.n_outputs
    given: Elements | None = None
    if call.opset >= 13:
        given = sizes_input(call, 1) if call.input(1) is not None else None
    elif call.attribute("split") is not None:
        given = tuple(call.attribute("split"))
    parts: list[Dim]
    if given is not None:
        parts = [call.fresh() if g is None else g for g in given]
    elif equal(multiply(floor_divide(x[axis], n), n), x[axis]):
        parts = [floor_divide(x[axis], n)] * n
    else:
        part = ceil_divide(x[axis], n)
        parts = [part] * (n - 1) + [subtract(x[axis], multiply(part, n - 1))]
    return [(*x[:axis], part, *x[axis + 1 :]) for part in parts]


@shape_rule("Gather")
def gather(call: Call) -> Shapes:
    """The axis is replaced by the axes of the indices."""
    x, indices = call.shape(0), call.shape(1)
    axis = call.axis(len(x), 0)
    return [x[:axis] + indices + x[axis + 1 :]]


@shape_rule("GatherElements")
def gather_elements(call: Call) -> Shapes:
    """As the indices."""
    return [call.shape(1)]


@shape_rule("GatherND")
def gather_nd(call: Call) -> Shapes:
    """Positions from the indices, then the axes of the data they leave open."""
    x, indices = call.shape(0), call.shape(1)
    depth = indices[-1]
    if not isinstance(depth, int):
        raise UnknownShapeError
    return [indices[:-1] + x[int(call.attribute("batch_dims", 0)) + depth :]]


@shape_rule("Expand")
def expand(call: Call) -> Shapes:
    """Two-way broadcast with the shape given."""
    target = tuple(call.fresh() if s is None else s for s in sizes_input(call, 1))
    if call.elements(1) is None or None in sizes_input(call, 1):
        return [_expand_partly(call, target)]
    return [broadcast([call.shape(0), target], call.scope)]


def _expand_partly(call: Call, target: Dims) -> Dims:
    """Expand to a target with sizes nobody knows: they stay unless the source decides."""
    x = call.shape(0)
    rank = max(len(x), len(target))
    source = (1,) * (rank - len(x)) + x
    wanted = (1,) * (rank - len(target)) + target
    return tuple(
        s if isinstance(s, int) and s != 1 else w for s, w in zip(source, wanted, strict=True)
    )


@shape_rule("Tile")
def tile(call: Call) -> Shapes:
    """Each size times its repeats."""
    x, repeats = call.shape(0), sizes_input(call, 1)
    return [
        tuple(
            call.fresh() if r is None else multiply(d, r)
            for d, r in zip(x, repeats, strict=True)
        )
    ]


@shape_rule("Pad")
def pad(call: Call) -> Shapes:
    """Each size plus what is added before and after it."""
    x = call.shape(0)
    if call.opset < 11:
        pads: Elements = tuple(call.attribute("pads"))
    else:
        elements = call.elements(1)
        axes = call.integers(3) if call.opset >= 18 else None
        n = len(x) if axes is None else len(axes)
        pads = (None,) * (2 * n) if elements is None else elements
        if axes is not None:
            pads = _all_pads(pads, axes, len(x))
    result: list[Dim] = []
    for d, before, after in zip(x, pads[: len(x)], pads[len(x) :], strict=True):
        known = before is not None and after is not None
        result.append(add(d, add(before, after)) if known else call.fresh())
    return [tuple(result)]


def _all_pads(pads: Elements, axes: Sequence[int], rank: int) -> Elements:
    """Pads of all axes, from those of a few."""
    result: list[Dim | None] = [0] * (2 * rank)
    for k, axis in enumerate(axes):
        at = normalize_axis(axis, rank)
        result[at], result[rank + at] = pads[k], pads[len(axes) + k]
    return tuple(result)


@shape_rule("DepthToSpace")
def depth_to_space(call: Call) -> Shapes:
    """Channels become blocks."""
    n, c, h, w = call.shape(0)
    block = int(call.attribute("blocksize"))
    return [(n, exact_divide(c, block * block), multiply(h, block), multiply(w, block))]


@shape_rule("SpaceToDepth")
def space_to_depth(call: Call) -> Shapes:
    """Blocks become channels."""
    n, c, h, w = call.shape(0)
    block = int(call.attribute("blocksize"))
    return [(n, multiply(c, block * block), exact_divide(h, block), exact_divide(w, block))]


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


@shape_rule("NonZero")
def non_zero(call: Call) -> Shapes:
    """One row an axis, one column an element found."""
    return [(len(call.shape(0)), call.fresh())]


@shape_rule("Compress")
def compress(call: Call) -> Shapes:
    """As many along the axis as conditions are true."""
    if call.attribute("axis") is None:
        return [(call.fresh(),)]
    x = call.shape(0)
    axis = call.axis(len(x))
    return [(*x[:axis], call.fresh(), *x[axis + 1 :])]


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
