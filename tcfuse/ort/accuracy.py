"""Whether a kernel's answer is acceptable, given the original's and the float64 answer.

The rule: never further from float64 than twice the original, or than a few units in the last
place where the original happens to be exact; NaN and infinities where the original (or float64)
has them and nowhere else; anything where the original overflows on the way, which is infinitely
far from float64; integers and floats of a byte exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tcfuse.types import DType

ULPS = 6.0
ULPS_HALF = 1.5
# Distance from one to the next number, and the smallest number above zero.
EPSILON = {
    DType.FLOAT16: 2.0**-10,
    DType.BFLOAT16: 2.0**-7,
    DType.FLOAT32: 2.0**-23,
    DType.FLOAT64: 2.0**-52,
}
SMALLEST = {
    DType.FLOAT16: 2.0**-24,
    DType.BFLOAT16: 2.0**-133,
    DType.FLOAT32: 2.0**-149,
    DType.FLOAT64: 2.0**-1074,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One output of one run, or the worst of several.

    Attributes:
        problem: A sentence when it is not acceptable whatever other runs show.
        error: Largest difference from float64, relative to the largest value.
        original_error: The same of the original operators.
        allowed: Error that is accepted even where the original has none.
        place: Where the largest difference is.
    """

    problem: str
    error: float
    original_error: float
    allowed: float = 0.0
    place: str = ""

    def worst(self, other: Comparison) -> Comparison:
        """The worse of two: what the original does in one run counts for the other too."""
        larger = self if self.error >= other.error else other
        return Comparison(
            self.problem or other.problem,
            larger.error,
            max(self.original_error, other.original_error),
            max(self.allowed, other.allowed),
            larger.place,
        )

    @property
    def verdict(self) -> str:
        """Empty when the answer is acceptable, else a sentence."""
        if self.problem or self.error <= max(2 * self.original_error, self.allowed):
            return self.problem
        return (
            f"error {self.error:.2g} relative to the largest value, the original has "
            f"{self.original_error:.2g}; {self.place}"
        )


def tolerance(dtype: DType, length: int) -> float:
    """Error relative to the largest value that is always accepted.

    Args:
        dtype: Element type of the output.
        length: Most elements any output element sums over; 1 when there is no reduction.
    """
    growth = 1.0 + math.log2(max(length, 1))
    if dtype.is_half:
        return ULPS_HALF * EPSILON[dtype] + 1e-6 * growth
    return ULPS * EPSILON[dtype] * growth


def compare(
    ours: np.ndarray, original: np.ndarray, exact: np.ndarray, dtype: DType, length: int
) -> Comparison:
    """Judge one output of one run."""
    if ours.shape != original.shape:
        return Comparison(f"shape {ours.shape} instead of {original.shape}", math.inf, 0.0)
    if ours.size == 0:
        return Comparison("", 0.0, 0.0)
    exact = np.atleast_1d(exact.reshape(original.shape))
    ours, original = np.atleast_1d(ours), np.atleast_1d(original)
    if not dtype.is_float:
        return _stepwise(ours, original, exact, 1.0)
    if dtype.bytes == 1:
        largest = float(np.abs(exact).max(where=np.isfinite(exact), initial=0.0))
        step = largest * float(dtype.finfo.eps)
        return _stepwise(ours, original, exact.astype(dtype.numpy), step)
    with np.errstate(all="ignore"):
        return _floats(ours, original, exact.astype(np.float64, copy=False), dtype, length)


def _stepwise(
    ours: np.ndarray, original: np.ndarray, exact: np.ndarray, step: float
) -> Comparison:
    """Equal to the original or to the exact answer, element by element.

    Args:
        ours: Integers, or floats of a byte.
        original: What the original operators give.
        exact: What float64 gives, rounded.
        step: Between neighbours, at most.
    """
    right, theirs_right = _same(ours, exact), _same(original, exact)
    if right.all():
        return Comparison("", 0.0, 0.0)
    wrong = ~right & ~_same(ours, original)
    error, theirs = _distance(ours, exact), _distance(original, exact)
    n_wrong, n_theirs = int(wrong.sum()), int((~theirs_right).sum())
    if n_wrong == 0 or (n_wrong <= 2 * n_theirs and error <= max(theirs, step)):
        return Comparison("", error, max(error, theirs))
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    place = f"at {tuple(map(int, at))}: {ours[at]!s} instead of {original[at]!s}"
    return Comparison(f"{n_wrong} of {ours.size} elements differ, {place}", error, theirs)


def _floats(
    ours: np.ndarray, original: np.ndarray, exact: np.ndarray, dtype: DType, length: int
) -> Comparison:
    """The rule for floating point."""
    errors = np.abs(np.subtract(ours, exact, dtype=np.float64))
    theirs = np.abs(np.subtract(original, exact, dtype=np.float64))
    errors[~np.isfinite(original) & np.isfinite(exact.astype(dtype.numpy))] = 0.0
    if not math.isfinite(float(errors.max())):
        odd = np.nonzero(~np.isfinite(errors))
        errors[odd] = _odd(ours[odd], original[odd], exact[odd], dtype)
        bad = np.nonzero(np.isinf(errors))
        if bad[0].size:
            at = tuple(int(axis[0]) for axis in bad)
            place = f"{ours[at]} instead of {original[at]} at {at}, float64 has {exact[at]}"
            return Comparison(place, math.inf, 0.0)
    worst = float(errors.max())
    worst_theirs = float(theirs.max(where=np.isfinite(theirs), initial=0.0))
    finite = np.isfinite(exact)
    scale = float(np.abs(exact).max(where=finite, initial=0.0))
    unit = max(scale, 4 * SMALLEST[dtype])
    allowed = max(tolerance(dtype, length), 4 * SMALLEST[dtype] / unit)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(errors)), errors.shape))
    place = f"{ours[at]:.9g} instead of {exact[at]:.9g} at {at}"
    return Comparison("", worst / unit, worst_theirs / unit, allowed, place)


def _odd(ours: np.ndarray, original: np.ndarray, exact: np.ndarray, dtype: DType) -> np.ndarray:
    """Errors where ours or float64 is not finite; infinite where that is not acceptable."""
    ours, original = ours.astype(np.float64), original.astype(np.float64)
    rounded = exact.astype(dtype.numpy).astype(np.float64)  # what float64 is in this type
    overflown = ~np.isfinite(original) & np.isfinite(exact) & ~np.isfinite(ours)
    agreed = _same(ours, original) | _same(ours, rounded) | overflown
    between = np.abs(ours - original)  # float64 alone is not finite
    errors: np.ndarray = np.where(agreed, 0.0, np.where(np.isfinite(between), between, np.inf))
    return errors


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equal, or both NaN, which alone differs from itself."""
    equal: np.ndarray = (a == b) | ((a != a) & (b != b))
    return equal


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference; infinite where one is not finite and the other is another."""
    between = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return float(np.where(_same(a, b), 0.0, np.nan_to_num(between, nan=np.inf)).max())
