"""Shape rules of operators that read images at places computed from data, or enlarge them."""

from __future__ import annotations

from tcfuse.graph.shape_call import (
    Call,
    Shapes,
    UnknownShapeError,
    normalize_axis,
    shape_rule,
    sizes_input,
)
from tcfuse.graph.symbols import Dim, add, multiply, subtract


@shape_rule("GridSample")
def grid_sample(call: Call) -> Shapes:
    """Images and channels of the input, the points of the grid."""
    x, grid = call.shape(0), call.shape(1)
    call.scope.require(x[0], grid[0])
    call.scope.require(grid[-1], len(x) - 2)
    return [(*x[:2], *grid[1:-1])]


@shape_rule("AffineGrid")
def affine_grid(call: Call) -> Shapes:
    """The size given without its channels, and as many coordinates as it has axes left."""
    theta = call.shape(0)
    image, _, *spatial = (call.fresh() if s is None else s for s in sizes_input(call, 1))
    for size, wanted in zip(theta, (image, len(spatial), len(spatial) + 1), strict=True):
        call.scope.require(size, wanted)
    return [(image, *spatial, len(spatial))]


@shape_rule("RoiAlign")
def roi_align(call: Call) -> Shapes:
    """A few bins for each region and channel."""
    bins = (int(call.attribute(f"output_{side}", 1)) for side in ("height", "width"))
    regions, coordinates = call.shape(1)
    call.scope.require(regions, call.shape(2)[0])
    call.scope.require(coordinates, 4)
    return [(regions, call.shape(0)[1], *bins)]


@shape_rule("CenterCropPad")
def center_crop_pad(call: Call) -> Shapes:
    """The sizes given along some axes."""
    x = list(call.shape(0))
    axes = call.attribute("axes") or range(len(x))
    for axis, size in zip(axes, sizes_input(call, 1), strict=True):
        x[normalize_axis(int(axis), len(x))] = call.fresh() if size is None else size
    return [tuple(x)]


@shape_rule("MaxUnpool")
def max_unpool(call: Call) -> Shapes:
    """The size given, or what the windows cover."""
    if call.input(2) is not None:
        return [tuple(call.fresh() if s is None else s for s in sizes_input(call, 2))]
    x, kernel = call.shape(0), call.attribute("kernel_shape")
    n = len(x) - 2
    if kernel is None or len(kernel) != n:
        raise UnknownShapeError
    strides, pads = (
        call.attribute("strides") or (1,) * n,
        call.attribute("pads") or (0,) * 2 * n,
    )
    spatial: list[Dim] = []
    for k, size in enumerate(x[2:]):
        covered = add(multiply(subtract(size, 1), strides[k]), kernel[k])
        spatial.append(subtract(covered, pads[k] + pads[n + k]))
    return [(*x[:2], *spatial)]
