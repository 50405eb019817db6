"""Shape rules of operators that reorder axes or give the same elements other axes."""

from __future__ import annotations

from tcfuse.graph.shape_call import (
    Call,
    Shapes,
    UnknownShapeError,
    axes_of,
    normalize_axis,
    shape_rule,
    sizes_input,
)
from tcfuse.graph.symbols import (
    Dim,
    exact_divide,
    multiply,
    product,
)


@shape_rule("Transpose")
def transpose(call: Call) -> Shapes:
    """Axes in the order of ``perm``, reversed without one."""
    x = call.shape(0)
    order = call.attribute("perm") or tuple(reversed(range(len(x))))
    if sorted(order) != list(range(len(x))):
        raise UnknownShapeError
    return [tuple(x[k] for k in order)]


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
