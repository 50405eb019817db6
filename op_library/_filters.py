"""Interpolation by a filter: an element is a weighted sum of the elements around its place.

A filter is a function of the distance from the place, zero from ``radius`` elements on.  One
dimension is resized after the other, the last one first, and each needs its weights once.

Source: R. Keys, Cubic convolution interpolation, IEEE ASSP 29 (1981); the stretched filters are
those of Pillow, as ONNX has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from op_library._coordinates import Line, Places
from op_library._text import at, loops, names, number, select, statement
from tcfuse.errors import UnsupportedError
from tcfuse.types import DType, Size

MOST_BLENDED = 4
"""Dimensions interpolated linearly at once: each doubles the elements that are read."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter and how its weights are used.

    Attributes:
        coefficient: The slope of a cubic filter at distance 1; ``None`` for the linear one.
        stretch: By how much it is wider than usual; more than 1 against aliasing.
        excludes: Whether elements outside of the tensor have no weight, and do not count as
            repetitions of the first or the last one.
    """

    coefficient: float | None
    stretch: Fraction
    excludes: bool

    @property
    def radius(self) -> Fraction:
        """The distance from which weights are zero."""
        return (1 if self.coefficient is None else 2) * self.stretch

    @property
    def taps(self) -> int:
        """Elements that may have a weight."""
        return ceil(2 * self.radius)

    @property
    def normalizes(self) -> bool:
        """Whether the weights have to be divided by their sum."""
        return self.excludes or self.stretch > 1

    def first(self, line: Line) -> Line:
        """The places whose floors are the first elements that may have a weight."""
        return line.plus(1 - self.radius)

    def weight(self, distance: str) -> str:
        """The weight of an element at a distance in units of ``stretch``."""
        if self.coefficient is None:
            return f"max(1 - {distance}, 0)"
        a = self.coefficient
        near = f"({number(a + 2)} * {distance} - {number(a + 3)}) * {distance} * {distance} + 1"
        far = f"((({distance} - 5) * {distance} + 8) * {distance} - 4) * {number(a)}"
        return select(f"{distance} < 1", near, select(f"{distance} < 2", far, "0"))

    def weights(self, places: Places, name: str, dtype: DType) -> list[str]:
        """The statements that compute the weights ``name`` of each point's taps."""
        point, tap = (places.loop, ("t", self.taps)), ("t", self.taps)
        element = f"{self.first(places.line).floor(places.index)} + t"
        units = places.line.denominator
        ahead = f"(element) * {units} - ({places.line.numerator(places.index, units)})"
        scale = 1 / (units * self.stretch)
        lets = {
            "element": element,
            "distance": f"abs({dtype.compute.tc}({ahead}) * {number(float(scale))})",
        }
        value = self.weight("distance")
        if self.excludes:
            within = f"element >= 0 && element < {places.size}"
            value = select(within, value, "0")
        if not self.normalizes:
            return [statement(name, (places.loop, tap), value, lets=lets)]
        raw, total = f"Raw{name}", f"Total{name}"
        share = f"{at(raw, names(point))} / {total}({places.index})"
        return [
            statement(raw, (places.loop, tap), value, lets=lets),
            statement(
                total, (places.loop,), at(raw, (places.index, "t")), assign="+=!", reduce=(tap,)
            ),
            statement(name, (places.loop, tap), share),
        ]


def blended(dims: Sequence[int], read: Callable[[Sequence[int]], str]) -> str:
    """The elements around a place, weighted by how near they are: linear interpolation.

    Args:
        dims: The dimensions; ``part2`` is how far the place is along dimension 2 from the
            element before it to the one behind it.
        read: The element before (0) or behind (1) the place along each of ``dims``.

    Raises:
        UnsupportedError: There are too many of them.
    """
    if len(dims) > MOST_BLENDED:
        raise UnsupportedError(f"linear interpolation along {len(dims)} dimensions")

    def blend(taps: tuple[int, ...]) -> str:
        if len(taps) == len(dims):
            return read(taps)
        part = f"part{dims[len(taps)]}"
        return f"({blend((*taps, 0))} * (1 - {part}) + {blend((*taps, 1))} * {part})"

    return blend(())


def filtered(
    resized: Mapping[int, Places],
    filters: Mapping[int, Filter],
    shape: list[Size],
    dtype: DType,
) -> tuple[list[str], str]:
    """The statements that resize ``X`` along some dimensions, and the name of the result.

    Args:
        resized: The places along each dimension that is resized.
        filters: What is used along each.
        shape: Of ``X``.
        dtype: Of ``X``.
    """
    body, source, sizes = [], "X", list(shape)
    for d in sorted(resized, reverse=True):
        places, tap = resized[d], ("t", filters[d].taps)
        sizes[d] = places.loop[1]
        body += filters[d].weights(places, f"Weight{d}", dtype)
        point = loops(sizes)
        read = list(names(point))
        read[d] = places.subscript(filters[d].first(places.line), tap)
        value = f"Weight{d}({places.index}, t) * {at(source, read)}"
        source = f"Along{d}"
        body.append(statement(source, point, value, assign="+=!", reduce=(tap,)))
    return body, source
