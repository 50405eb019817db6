"""RoiAlign: regions of images pooled from points between their elements.

Source: https://onnx.ai/onnx/operators/onnx__RoiAlign.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

from op_library._filters import blended
from op_library._text import (
    Loop,
    at,
    attribute,
    definition,
    loops,
    minus,
    names,
    needed,
    only_output,
    plus,
    require_equal,
    select,
    statement,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op


@onnx_op("RoiAlign", since=16, kind=Kind.REDUCTION)
def roi_align_16(call: OpCall) -> str:
    """Regions whose coordinates count from the borders or the centres of elements."""
    mode = call.attributes.get("coordinate_transformation_mode", "half_pixel")
    if mode not in ("half_pixel", "output_half_pixel"):
        raise UnsupportedError(f"RoiAlign with coordinate_transformation_mode {mode!r}")
    return roi_align(call, half_pixel=mode == "half_pixel")


@onnx_op("RoiAlign", since=10, kind=Kind.REDUCTION)
def roi_align_10(call: OpCall) -> str:
    """Regions whose coordinates count from the centres of elements."""
    return roi_align(call, half_pixel=False)


def roi_align(call: OpCall, *, half_pixel: bool) -> str:
    """The definition of a node; a region is divided into bins with a fixed number of points.

    Raises:
        UnsupportedError: How many points there are depends on data.
    """
    x, regions, images = (needed(call, k) for k in range(3))
    y, count = only_output(call), int(call.attributes.get("sampling_ratio", 0))
    if count < 1:
        raise UnsupportedError("RoiAlign with as many points as a region is large")
    require_equal(regions.shape[0], images.shape[0])
    point = loops(y.shape)
    region, channel = names(point)[:2]
    sizes = x.shape[2:]
    lets: dict[str, str] = {}
    for d, size in enumerate(sizes):
        last = minus(str(size), 1)
        lets[f"place{d}"] = place(call, region, point[2 + d], d, half_pixel=half_pixel)
        lets[f"near{d}"] = f"min(max(place{d}, 0), {last})"
        lets[f"before{d}"] = f"int64(floor(near{d}))"
        lets[f"part{d}"] = f"{x.dtype.compute.tc}(near{d} - floor(near{d}))"

    def read(taps: Sequence[int]) -> str:
        elements = [
            f"min({plus(f'before{d}', tap)}, {minus(str(sizes[d]), 1)})"
            for d, tap in enumerate(taps)
        ]
        return at("X", (f"Images({region})", channel, *elements))

    match call.attributes.get("mode", "avg"):
        case "avg":
            value, assign, divisor = blended((0, 1), read), "+=!", f" / {count * count}"
        case "max":
            value, assign, divisor = largest(read), "max=!", ""
        case mode:
            raise UnsupportedError(f"RoiAlign in mode {mode!r}")
    inside = [f"place{d} >= -1 && place{d} <= {size}" for d, size in enumerate(sizes)]
    value = select(" && ".join(inside), value, "0")
    points = tuple((f"s{d}", count) for d in range(2))
    body = [
        statement("All", point, value, assign=assign, reduce=points, lets=lets),
        statement("Y", point, f"{at('All', names(point))}{divisor}"),
    ]
    params = {"X": x, "Regions": regions, "Images": images}
    return definition(call, params, {"Y": y}, body)


def place(call: OpCall, region: str, bins: Loop, d: int, *, half_pixel: bool) -> str:
    """Where a point of a bin lies along a dimension; a region is x, y, x, y."""
    scale, count = attribute(call, "spatial_scale", 1.0), call.attributes["sampling_ratio"]
    start, end = (f"Regions({region}, {k}) * {scale}" for k in (1 - d, 3 - d))
    extent = f"({end} - {start})"
    if not half_pixel:
        extent = f"max({extent}, 1)"
    first = f"{start} - 0.5" if half_pixel else start
    return f"{first} + ({bins[0]} + (s{d} + 0.5) / {count}) * ({extent} / {bins[1]})"


def largest(read: Callable[[Sequence[int]], str]) -> str:
    """The largest of the four elements around a place, each times its weight."""
    terms = []
    for taps in product((0, 1), repeat=2):
        weights = (f"part{d}" if tap else f"(1 - part{d})" for d, tap in enumerate(taps))
        terms.append(" * ".join((*weights, read(taps))))
    return reduce(lambda a, b: f"max({a}, {b})", terms)
