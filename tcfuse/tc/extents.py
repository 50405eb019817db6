"""What an explicit or inferred range may be, seen from the tensor that is written."""

from __future__ import annotations

from collections.abc import Iterable

from tcfuse.errors import TcError
from tcfuse.tc.ast import Comprehension, Range
from tcfuse.tc.linear import Linear, linear_of, nonnegative
from tcfuse.tc.ranges import Bounds

HALF_OPEN = "ranges are half open: 0:3 is 0, 1, 2"


def empty(r: Range, bounds: Bounds) -> bool:
    """Whether the explicit range ``r`` is empty for all sizes.

    Raises:
        TcError: It even ends before it starts.
    """
    low, high = linear_of(bounds.low, {}), linear_of(bounds.high, {})
    if low is None or high is None:
        return False
    if nonnegative(low - high - 1):
        message = f"the range of {r.name!r} ends before it starts"
        raise TcError(message, r.span, HALF_OPEN, code="TC26")
    return low == high


def extent_of(statement: Comprehension, written: Range) -> Linear:
    """The number of elements ``written`` covers.

    Raises:
        TcError: It cannot be computed from sizes.
    """
    low, high = linear_of(written.low, {}), linear_of(written.high, {})
    if low is None or high is None:
        raise TcError(
            f"the extent of {written.name!r} is not computed from sizes",
            statement.left_span,
            f"declare the shape of {statement.tensor!r} in the returns",
            code="TC44",
        )
    return high - low


def check_affine(statement: Comprehension, what: str, form: Linear) -> None:
    """Raise when ``form`` cannot be handed to the polyhedral stages but has to be."""
    if not form.is_affine:
        raise TcError(
            f"{what} is {form}, which is not affine in the sizes",
            statement.left_span,
            "give every index an explicit range: 'where i in 0:N'",
            code="TC44",
        )


def check_inside(
    statement: Comprehension, written: Iterable[Range], bounds: Iterable[Bounds]
) -> None:
    """Raise when ``written`` cannot lie within the bounds of the tensor."""
    for found, inner in zip(written, bounds, strict=True):
        if found.low == inner.low and found.high == inner.high:
            continue
        low, high = linear_of(found.low, {}), linear_of(found.high, {})
        least, most = linear_of(inner.low, {}), linear_of(inner.high, {})
        if low is None or high is None or least is None or most is None:
            continue
        if nonnegative(least - low - 1, 1) or nonnegative(high - most - 1, 1):
            raise TcError(
                f"{found.name!r} runs from {low} to {high}, outside {statement.tensor!r}, "
                f"which starts at {least} and ends at {most}",
                statement.left_span,
                f"declare the shape of {statement.tensor!r} in the returns",
                code="TC45",
            )
