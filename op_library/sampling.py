"""AffineGrid and GridSample: places computed from data, and a tensor read there.

Source: https://onnx.ai/onnx/operators/onnx__GridSample.html and its siblings; where ONNX leaves
something open, the definitions do as ONNX Runtime does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from op_library._filters import Filter, blended
from op_library._text import (
    Loops,
    at,
    definition,
    loops,
    minus,
    names,
    needed,
    only_output,
    plus,
    require_equal,
    statement,
    total,
    widened,
)
from op_library._windows import guarded
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, Size, TensorType

CUBIC = Filter(-0.75, Fraction(1), excludes=False)
FAR = 4
"""Elements from a border from which all places are alike: infinity is not subtracted there."""

MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""The names that GridSample's modes had before opset 20."""


@onnx_op("AffineGrid", since=20, kind=Kind.MOVEMENT, static=[1])
def affine_grid(call: OpCall) -> str:
    """The places that affine maps take the points of an evenly spaced grid to."""
    theta, y = needed(call, 0), only_output(call)
    point = loops(y.shape)
    image, *places, along = names(point)
    require_equal(theta.shape[0], y.shape[0])
    aligned = bool(call.attributes.get("align_corners", 0))
    terms = [
        f"Theta({image}, {along}, {k}) * {normalized(theta.dtype, index, size, aligned)}"
        for k, (index, size) in enumerate(reversed(point[1:-1]))
    ]
    value = " + ".join([*terms, f"Theta({image}, {along}, {len(places)})"])
    body = [statement("Grid", point, value)]
    return definition(call, {"Theta": theta}, {"Grid": y}, body)


def normalized(dtype: DType, index: str, size: Size, aligned: bool) -> str:
    """The place of an element between -1 and 1, the centres or the borders of the outer ones.

    Raises:
        UnsupportedError: There is, or may be, one element to align both ends with.
    """
    if aligned and (isinstance(size, str) or size == 1):
        raise UnsupportedError(f"AffineGrid of {size} elements with both corners aligned")
    over = minus(f"2 * {index}", total([size, -1]))
    under = minus(str(size), 1) if aligned else str(size)
    return f"({dtype.compute.tc}({over}) / ({under}))"


@dataclass(frozen=True, slots=True)
class Sampled:
    """How GridSample reads one dimension.

    Attributes:
        size: Its size.
        padding: What lies outside of it.
        aligned: Whether -1 and 1 are the centres of the outer elements, not their borders.
    """

    size: Size
    padding: str
    aligned: bool

    def place(self, grid: str) -> str:
        """The place in units of elements, at most ``FAR`` outside of what has any influence."""
        if self.aligned:
            place = f"({grid} + 1) / 2 * ({minus(str(self.size), 1)})"
        else:
            place = f"(({grid} + 1) * ({self.size}) - 1) / 2"
        if self.padding == "reflection":
            return place
        return f"min(max({place}, {-FAR}), {total([self.size, FAR])})"

    def subscript(self, element: str) -> str:
        """Where an element is read that may lie outside.

        Raises:
            UnsupportedError: The size is not constant and elements are reflected.
        """
        if self.padding == "zeros":
            return element
        if self.padding == "border":
            return f"min(max({element}, 0), {minus(str(self.size), 1)})"
        if isinstance(self.size, str):
            raise UnsupportedError(f"GridSample reflects {self.size} elements")
        if self.size == 1:
            return "0"
        # Back and forth between the centres of the outer elements, or between their borders.
        period = 2 * (self.size - 1) if self.aligned else 2 * self.size
        there = f"({element}) % {period}"
        return f"min({there}, {period if self.aligned else period - 1} - {there})"

    def tests(self, element: str) -> list[str]:
        """Conditions that hold for an element that is read."""
        if self.padding != "zeros":
            return []
        return [f"{element} >= 0", f"{element} < {self.size}"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """The points of GridSample and what is read for them.

    Attributes:
        point: The loops of the output.
        dims: The spatial dimensions.
        dtype: Of the elements.
    """

    point: Loops
    dims: tuple[Sampled, ...]
    dtype: DType

    def places(self, grid: TensorType) -> dict[str, str]:
        """The place along every dimension; the grid lists the last dimension first."""
        image, _, *inner = names(self.point)
        found = {}
        for d, dim in enumerate(self.dims):
            coordinate = at("Grid", (image, *inner, str(len(self.dims) - 1 - d)))
            found[f"place{d}"] = dim.place(widened(grid.dtype, coordinate))
        return found

    def around(self, grid: TensorType) -> dict[str, str]:
        """The element before each place, and how far behind it the place is."""
        lets = self.places(grid)
        for d in range(len(self.dims)):
            lets[f"before{d}"] = f"int64(floor(place{d}))"
            lets[f"part{d}"] = f"{self.dtype.compute.tc}(place{d} - floor(place{d}))"
        return lets

    def read(self, elements: Sequence[str]) -> str:
        """The element at some subscripts, which may lie outside."""
        inside = list(zip(self.dims, elements, strict=True))
        tests = [test for dim, element in inside for test in dim.tests(element)]
        subscripts = [dim.subscript(element) for dim, element in inside]
        image, channel = names(self.point)[:2]
        zero = "false" if self.dtype is DType.BOOL else "0"
        return guarded(tests, at("X", (image, channel, *subscripts)), zero)

    def nearest(self, grid: TensorType) -> list[str]:
        """The statement that reads the element nearest to each place."""
        lets = self.places(grid)
        every = range(len(self.dims))
        lets |= {f"nearest{d}": f"int64(roundeven(place{d}))" for d in every}
        value = self.read([f"nearest{d}" for d in every])
        return [statement("Y", self.point, value, lets=lets)]

    def linear(self, grid: TensorType) -> list[str]:
        """The statement that interpolates between two elements along each dimension."""

        def read(taps: Sequence[int]) -> str:
            return f"({self.read([plus(f'before{d}', tap) for d, tap in enumerate(taps)])})"

        value = blended(range(len(self.dims)), read)
        return [statement("Y", self.point, value, lets=self.around(grid))]

    def cubic(self, grid: TensorType) -> list[str]:
        """The statements that interpolate between four elements along each dimension."""
        lets, every = self.around(grid), range(len(self.dims))
        for d in every:
            lets[f"distance{d}"] = f"abs(part{d} + 1 - t{d})"
            lets[f"weight{d}"] = CUBIC.weight(f"distance{d}")
        element = self.read([f"before{d} + t{d} - 1" for d in every])
        value = " * ".join([*(f"weight{d}" for d in every), f"({element})"])
        taps: Loops = tuple((f"t{d}", CUBIC.taps) for d in every)
        return [
            statement("Sum", self.point, value, assign="+=!", reduce=taps, lets=lets),
            statement("Y", self.point, at("Sum", names(self.point))),
        ]


@onnx_op("GridSample", since=16, kind=Kind.REDUCTION)
def grid_sample(call: OpCall) -> str:
    """``X`` at the places that a grid holds, interpolated."""
    x, grid, y = needed(call, 0), needed(call, 1), only_output(call)
    mode = str(call.attributes.get("mode", "linear"))
    padding = str(call.attributes.get("padding_mode", "zeros"))
    point, aligned = loops(y.shape), bool(call.attributes.get("align_corners", 0))
    if padding not in ("zeros", "border", "reflection"):
        raise UnsupportedError(f"GridSample with padding_mode {padding!r}")
    for size, (_, extent) in zip(grid.shape, (point[0], *point[2:]), strict=False):
        require_equal(size, extent)
    require_equal(grid.shape[-1], x.rank - 2)
    dims = tuple(Sampled(size, padding, aligned) for size in x.shape[2:])
    sampling, mode = Sampling(point, dims, x.dtype), MODES.get(mode, mode)
    if mode == "nearest":
        body = sampling.nearest(grid)
    elif not x.dtype.is_float:
        raise UnsupportedError(f"GridSample of {x.dtype.tc} in mode {mode!r}")
    elif mode == "linear":
        body = sampling.linear(grid)
    elif mode == "cubic":
        body = sampling.cubic(grid)
    else:
        raise UnsupportedError(f"GridSample in mode {mode!r}")
    return definition(call, {"X": x, "Grid": grid}, {"Y": y}, body)
