"""Where the points of a resized dimension lie in the original one.

A place is a line, ``slope * o + offset`` with fractions for coefficients, so that floors of it
are exact integer expressions of the index: what is read does not depend on how a kernel rounds.
ONNX Runtime computes places in single precision, which decides what is nearest halfway between
two elements; where sizes are constants, ``Places.rounded`` has its numbers.

Source: https://onnx.ai/onnx/operators/onnx__Resize.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm

import numpy as np

from op_library._text import Loop, plus, stepped
from tcfuse.errors import UnsupportedError
from tcfuse.types import DType, Size

HALF = Fraction(1, 2)
PRECISION = Fraction(1, 2**24)
"""How far single precision may be off, in parts of a value."""
HALFWAY = 1e-6
"""As near to the middle between two elements, a place is there for ONNX Runtime 1.32."""

FINEST = 2**20
"""The largest denominator of a coefficient: numerators must stay far from overflowing."""


@dataclass(frozen=True, slots=True)
class Line:
    """``slope * o + offset``."""

    slope: Fraction
    offset: Fraction

    @property
    def denominator(self) -> int:
        """Of all values of the line."""
        return lcm(self.slope.denominator, self.offset.denominator)

    def at(self, o: int) -> Fraction:
        """The value at a point."""
        return self.slope * o + self.offset

    def plus(self, by: Fraction | int) -> Line:
        """The line with ``by`` added."""
        return Line(self.slope, self.offset + by)

    def numerator(self, index: str, denominator: int) -> str:
        """The values in units of ``1 / denominator``, as an integer expression."""
        return stepped(index, int(self.slope * denominator), int(self.offset * denominator))

    def floor(self, index: str) -> str:
        """The values rounded down, as an integer expression."""
        whole = self.denominator
        if self.slope == 0:
            return str(int(self.offset * whole) // whole)
        over = self.numerator(index, whole)
        if whole == 1:
            return over
        return f"{over} / {whole}" if over == index else f"({over}) / {whole}"

    def simplified(self, count: int, size: int) -> Line:
        """The simplest line that single precision cannot tell from this one.

        Args:
            count: Points at which it is used.
            size: Elements that the values are places among.

        Raises:
            UnsupportedError: Every such line has enormous coefficients.
        """
        off, ends = PRECISION * max(size, 1), (0, max(count - 1, 0))
        finest = 1
        while finest <= FINEST:
            offset = self.offset.limit_denominator(finest)
            line = Line(self.slope.limit_denominator(finest), offset)
            if all(abs(line.at(o) - self.at(o)) <= off for o in ends):
                return line
            finest *= 2
        raise UnsupportedError(f"places {float(self.slope)} elements apart")


NEAREST: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5 - HALFWAY),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5 + HALFWAY),
}
"""The nearest element by ``nearest_mode``, apart from those below zero."""


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one dimension's points.

    Attributes:
        loop: The loop over the resized dimension.
        size: The size of the original dimension.
        line: The places.
        rounded: The places as ONNX Runtime computes them; ``None`` for sizes that are names.
    """

    loop: Loop
    size: Size
    line: Line
    rounded: np.ndarray | None

    @property
    def index(self) -> str:
        """The index of the resized dimension."""
        return self.loop[0]

    def inside(self) -> list[str]:
        """Conditions that hold for places in the original dimension."""
        assert self.rounded is not None
        assert isinstance(self.size, int)
        (within,) = np.nonzero((self.rounded >= 0) & (self.rounded <= self.size - 1))
        if within.size == 0:
            return ["false"]
        first, last = int(within[0]), int(within[-1])
        tests = [f"{self.index} >= {first}"] if first > 0 else []
        return tests if last + 1 == self.loop[1] else [*tests, f"{self.index} <= {last}"]

    def subscript(self, line: Line, tap: Loop | None = None) -> str:
        """``line`` rounded down, plus an index, moved into the original dimension."""
        read, taps = line.floor(self.index), 1
        if tap is not None:
            read, taps = f"{read} + {tap[0]}", int(tap[1])
        least, beyond = self._range(line)
        if least < 0:
            read = f"max({read}, 0)"
        if beyond + taps > 0:
            read = f"min({read}, {plus(str(self.size), -1)})"
        return read

    def part(self, dtype: DType) -> str:
        """How far each place is behind the element before it."""
        whole = self.line.denominator
        over = self.line.numerator(self.index, whole)
        return f"{dtype.compute.tc}(({over}) % {whole}) / {whole}"

    def nearest(self, mode: str) -> str:
        """The subscript of the element nearest to each place.

        Raises:
            UnsupportedError: The mode is unknown, or what ONNX Runtime takes halfway between
                elements follows no rule.
        """
        whole = lcm(self.line.denominator, 2)
        # Places are multiples of 1 / whole, so all between two of these have the same floor.
        shifts = {
            "floor": Fraction(0),
            "ceil": 1 - Fraction(1, whole),
            "round_prefer_floor": HALF - Fraction(1, whole),
            "round_prefer_ceil": HALF,
        }
        if mode not in shifts:
            raise UnsupportedError(f"nearest_mode {mode!r}")
        if self.rounded is None:
            return self.subscript(self.line.plus(shifts[mode]))
        assert isinstance(self.size, int)
        wanted = np.clip(NEAREST[mode](self.rounded.astype(np.float64)), 0, self.size - 1)
        for nudge in (0, -1, 1):
            line = self.line.plus(shifts[mode] + Fraction(nudge, whole))
            floors = [min(max(floor(line.at(o)), 0), self.size - 1) for o in range(len(wanted))]
            if np.array_equal(floors, wanted):
                return self.subscript(line)
        raise UnsupportedError(f"{mode} of places halfway between elements")

    def _range(self, line: Line) -> tuple[int, int]:
        """The least value rounded down, and by how much the greatest exceeds the size."""
        count = self.loop[1]
        if isinstance(count, int) and isinstance(self.size, int):
            ends = [floor(line.at(o)) for o in (0, max(count - 1, 0))]
            return min(ends), max(ends) - self.size
        # There are at most scale * size points, and size / slope is that.
        return floor(line.offset), floor(line.offset - line.slope)


@dataclass(frozen=True, slots=True)
class Resized:
    """A dimension and what it becomes.

    Attributes:
        size: Of the original dimension.
        count: Of the resized dimension.
        scale: In single precision.
        start: Of the region of interest, as a part of the original dimension.
        end: Of it.
    """

    size: Size
    count: Size
    scale: np.float32
    start: np.float32
    end: np.float32

    @property
    def step(self) -> Fraction:
        """The distance of places."""
        return 1 / Fraction(float(self.scale))

    def sizes(self) -> tuple[int, int]:
        """Both sizes.

        Raises:
            UnsupportedError: They are not constants.
        """
        if isinstance(self.size, int) and isinstance(self.count, int):
            return self.size, self.count
        raise UnsupportedError(f"places of {self.count} elements in {self.size}")


def half_pixel(r: Resized) -> Line:
    """Points and elements have the same centre."""
    return Line(r.step, r.step / 2 - HALF)


def pytorch_half_pixel(r: Resized) -> Line:
    """The same, and a single point lies at the first element.

    Raises:
        UnsupportedError: It is not known whether there is a single point.
    """
    if r.count == 1:
        return Line(Fraction(0), Fraction(0))
    if isinstance(r.count, str) and r.scale < 2:
        raise UnsupportedError(f"places of {r.count} elements, of which there may be one")
    return half_pixel(r)


def half_pixel_symmetric(r: Resized) -> Line:
    """The same, and what does not fit is cut off on both sides."""
    if isinstance(r.count, str) and r.scale == int(r.scale):
        return half_pixel(r)
    size, count = r.sizes()
    cut = Fraction(size, 2) * (1 - count * r.step / size)
    return half_pixel(r).plus(cut)


def align_corners(r: Resized) -> Line:
    """The first and the last points lie at the first and the last elements.

    Raises:
        UnsupportedError: ONNX and ONNX Runtime differ on where the last point lies.
    """
    size, count = r.sizes()
    if round(float(r.scale) * size, 4) != count:
        raise UnsupportedError(
            "align_corners where a factor leaves a part of a point: ONNX Runtime leaves it out"
        )
    return Line(Fraction(size - 1, count - 1) if count > 1 else Fraction(0), Fraction(0))


def tf_crop_and_resize(r: Resized) -> Line:
    """The first and the last points lie at the ends of the region of interest."""
    size, count = r.sizes()
    start, end = (Fraction(float(x)) * (size - 1) for x in (r.start, r.end))
    if count > 1:
        return Line((end - start) / (count - 1), start)
    return Line(Fraction(0), (start + end) / 2)


LINES: Mapping[str, Callable[[Resized], Line]] = {
    "half_pixel": half_pixel,
    "pytorch_half_pixel": pytorch_half_pixel,
    "half_pixel_symmetric": half_pixel_symmetric,
    "asymmetric": lambda r: Line(r.step, Fraction(0)),
    "tf_half_pixel_for_nn": lambda r: Line(r.step, r.step / 2),
    "align_corners": align_corners,
    "tf_crop_and_resize": tf_crop_and_resize,
}
"""The places by ``coordinate_transformation_mode``."""


def rounded(mode: str, r: Resized) -> np.ndarray:
    """The places in single precision, by the operations of ONNX Runtime."""
    size, count = (np.float32(n) for n in r.sizes())
    o, half, one = np.arange(count, dtype=np.float32), np.float32(0.5), np.float32(1)
    match mode:
        case "asymmetric":
            return o / r.scale
        case "tf_half_pixel_for_nn":
            return (o + half) / r.scale
        case "align_corners" if count > 1:
            return o * (size - one) / (count - one)
        case "tf_crop_and_resize" if count > 1:
            inside = o * (r.end - r.start) * (size - one) / (count - one)
            return r.start * (size - one) + inside
        case "tf_crop_and_resize":
            return half * (r.start + r.end) * (size - one) + o
        case "half_pixel_symmetric":
            cut = size / np.float32(2) * (one - count / (r.scale * size))
            return (cut + (o.astype(np.float64) + 0.5) / r.scale - 0.5).astype(np.float32)
        case "half_pixel" | "pytorch_half_pixel" if mode == "half_pixel" or count > 1:
            return (o + half) / r.scale - half
        case _:
            return np.zeros_like(o)


def places(mode: str, loop: Loop, r: Resized) -> Places:
    """The places of the points of a resized dimension.

    Raises:
        UnsupportedError: The mode is unknown, or the sizes it needs are.
    """
    if mode not in LINES:
        raise UnsupportedError(f"coordinate_transformation_mode {mode!r}")
    line = LINES[mode](r)
    if isinstance(r.size, int) and isinstance(r.count, int):
        return Places(loop, r.size, line.simplified(r.count, r.size), rounded(mode, r))
    if line.denominator > FINEST:
        raise UnsupportedError(f"places of {r.count} elements in {r.size}")
    return Places(loop, r.size, line, None)
