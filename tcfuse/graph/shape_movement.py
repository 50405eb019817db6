"""Shape rules of operators that join, select, repeat or pad."""

from __future__ import annotations

from collections.abc import Sequence

from tcfuse.graph.shape_call import (
    Call,
    Elements,
    Shapes,
    UnknownShapeError,
    normalize_axis,
    shape_rule,
    sizes_input,
)
from tcfuse.graph.shape_pointwise import broadcast
from tcfuse.graph.symbols import (
    Dim,
    Dims,
    add,
    ceil_divide,
    clamp_length,
    equal,
    floor_divide,
    minimum,
    multiply,
    nonnegative,
    subtract,
)

_TO_THE_END = 10**9  # ends of slices beyond this mean "all of it"


@shape_rule("Concat")
def concat(call: Call) -> Shapes:
    """The inputs one after the other."""
    return [joined(call, [call.shape(k) for k in range(len(call.node.inputs))])]


def joined(call: Call, shapes: Sequence[Dims]) -> Dims:
    """Sizes along ``axis`` add up; on the others any input that knows a number decides."""
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
    return tuple(result)


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
