"""Resize and Upsample: nearest elements, linear and cubic interpolation, with antialiasing.

Source: https://onnx.ai/onnx/operators/onnx__Resize.html; where ONNX leaves something open, the
definitions do as ONNX Runtime does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil

import numpy as np

from op_library._coordinates import Line, Places, Resized, places
from op_library._filters import Filter, blended, filtered
from op_library._text import (
    at,
    attribute,
    definition,
    loops,
    names,
    needed,
    only_output,
    select,
    statement,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op, same_size
from tcfuse.types import TensorType

CROP = "tf_crop_and_resize"


@onnx_op("Upsample", since=7, kind=Kind.REDUCTION)
def upsample_by_attribute(call: OpCall) -> str:
    """``X`` enlarged by factors of an attribute."""
    return resize(call, call.attributes.get("scales"), mode="asymmetric", nearest="simple")


@onnx_op("Upsample", since=9, kind=Kind.REDUCTION, static=[1])
@onnx_op("Resize", since=10, kind=Kind.REDUCTION, static=[1])
def resize_by_scales(call: OpCall) -> str:
    """``X`` resized by factors of an input; its first element stays where it is."""
    return resize(call, call.constant(1), mode="asymmetric", nearest="simple")


@onnx_op("Resize", since=11, kind=Kind.REDUCTION, static=[1, 2, 3])
def resize_11(call: OpCall) -> str:
    """``X`` resized by factors or to sizes, in any way there is."""
    mode = str(call.attributes.get("coordinate_transformation_mode", "half_pixel"))
    nearest = str(call.attributes.get("nearest_mode", "round_prefer_floor"))
    scales = call.constant(2)
    return resize(call, None if scales is None or not scales.size else scales, mode, nearest)


def resize(
    call: OpCall, scales: Sequence[float] | np.ndarray | None, mode: str, nearest: str
) -> str:
    """The definition of a resize by ``scales``, or to the sizes of the output."""
    x, y = needed(call, 0), only_output(call)
    point = loops(y.shape)
    found = dimensions(call, x, y, scales)
    if all(same_size(a, b) for a, b in zip(x.shape, y.shape, strict=True)):
        found = {}
    how, smooths = call.attributes.get("mode", "nearest"), call.attributes.get("antialias", 0)
    if smooths:
        found = {d: r for d, r in found.items() if not same_size(r.size, r.count)}
    resized = {d: places(mode, point[d], r) for d, r in found.items()}
    body: list[str] = []
    lets: dict[str, str] = {}
    if not resized:
        value = at("X", names(point))
    elif how == "nearest":
        value = nearest_element(resized, names(point), nearest, found)
    elif not x.dtype.is_float:
        raise UnsupportedError(f"{call.op_type} of {x.dtype.tc} in mode {how!r}")
    elif how == "linear" and not smooths:
        lets = {f"part{d}": place.part(x.dtype) for d, place in resized.items()}
        value = linear_element(resized, names(point))
    elif how in ("linear", "cubic"):
        filters = {d: filter_of(call, r) for d, r in found.items()}
        body, name = filtered(resized, filters, list(x.shape), x.dtype)
        value = at(name, names(point))
    else:
        raise UnsupportedError(f"{call.op_type} in mode {how!r}")
    if mode == CROP:
        tests = [test for place in resized.values() for test in place.inside()]
        outside = attribute(call, "extrapolation_value", 0.0)
        outside = outside if x.dtype.is_float else f"{x.dtype.tc}({outside})"
        value = select(" && ".join(tests), value, outside) if tests else value
    return definition(
        call, {"X": x}, {"Y": y}, [*body, statement("Y", point, value, lets=lets)]
    )


def dimensions(
    call: OpCall, x: TensorType, y: TensorType, scales: Sequence[float] | np.ndarray | None
) -> dict[int, Resized]:
    """The dimensions that are resized.

    Raises:
        UnsupportedError: How is not known.
    """
    axes = [int(a) % x.rank for a in call.attributes.get("axes") or range(x.rank)]
    if scales is None:
        factors = scales_to_sizes(call, x, y, axes)
    else:
        factors = np.asarray(scales, np.float32).reshape(-1).tolist()
    if len(factors) != len(axes) or any(not 0 < f < np.inf for f in factors):
        raise UnsupportedError(f"{call.op_type} of rank {x.rank} by {len(factors)} factors")
    starts, ends = [0.0] * len(axes), [1.0] * len(axes)
    if call.attributes.get("coordinate_transformation_mode") == CROP:
        if scales is not None:
            raise UnsupportedError(f"{call.op_type} of a crop by factors")
        region = call.constant(1)
        if region is not None and region.size:
            starts, ends = np.asarray(region, np.float32).reshape(2, -1).tolist()
    return {
        d: Resized(x.shape[d], y.shape[d], *map(np.float32, (factor, start, end)))
        for d, factor, start, end in zip(axes, factors, starts, ends, strict=True)
        if factor != 1
    }


def scales_to_sizes(
    call: OpCall, x: TensorType, y: TensorType, axes: Sequence[int]
) -> list[float]:
    """The factors by which ONNX Runtime says that dimensions grow to sizes.

    Raises:
        UnsupportedError: A size is not constant.
    """
    policy = call.attributes.get("keep_aspect_ratio_policy", "stretch")
    wanted = [y.shape[d] for d in axes]
    if policy != "stretch":
        sizes = call.constant(3)
        wanted = [] if sizes is None else sizes.reshape(-1).tolist()
    factors = []
    for d, size in zip(axes, wanted, strict=True):
        old = x.shape[d]
        if same_size(old, size):
            factors.append(1.0)
        elif isinstance(old, int) and isinstance(size, int):
            factors.append(float(np.float32(size) / np.float32(max(old, 1))))
        else:
            raise UnsupportedError(f"{call.op_type} of {old} elements to {size}")
    if policy == "stretch" or not factors:
        return factors
    return [min(factors) if policy == "not_larger" else max(factors)] * len(factors)


def nearest_element(
    resized: Mapping[int, Places],
    point: Sequence[str],
    mode: str,
    found: Mapping[int, Resized],
) -> str:
    """The element nearest to the place of a point."""
    read = list(point)
    for d, place in resized.items():
        how = mode
        if mode == "simple":
            how = "ceil" if found[d].scale < 1 else "floor"
        read[d] = place.nearest(how)
    return at("X", read)


def linear_element(resized: Mapping[int, Places], point: Sequence[str]) -> str:
    """The elements around the place of a point, weighted by how near they are."""
    dims, subscripts = sorted(resized), list(point)

    def read(taps: Sequence[int]) -> str:
        for d, tap in zip(dims, taps, strict=True):
            subscripts[d] = resized[d].subscript(resized[d].line.plus(tap))
        return at("X", subscripts)

    return blended(dims, read)


def filter_of(call: OpCall, resized: Resized) -> Filter:
    """The filter that interpolates along a dimension."""
    cubic = call.attributes.get("mode") == "cubic"
    stretch = Fraction(1)
    if call.attributes.get("antialias", 0) and resized.scale < 1:
        stretch = Line(resized.step, Fraction(0)).simplified(2, ceil(resized.step)).slope
    return Filter(
        float(attribute(call, "cubic_coeff_a", -0.75)) if cubic else None,
        stretch,
        bool(call.attributes.get("exclude_outside", 0)),
    )
