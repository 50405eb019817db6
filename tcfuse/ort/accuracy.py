"""Whether a kernel's answer is acceptable, given the original's and the float64 answer.

The rule: never further from float64 than twice the original, or than a few units in the last
place where the original happens to be exact; NaN and infinities where the original (or float64)
has them and nowhere else, of any kind where the original overflows on the way; integers exact.
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
    """One output's verdict.

    Attributes:
        problem: A sentence when it is not acceptable.
        error: Largest difference from float64, relative to the largest value.
        original_error: The same of the original operators.
    """

    problem: str
    error: float
    original_error: float


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
    exact = exact.reshape(original.shape)
    if not dtype.is_float:
        return _integers(ours, original, exact)
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype.numpy).astype(np.float64)
        return _floats(
            ours.astype(np.float64), original.astype(np.float64), exact.astype(np.float64),
            rounded, dtype, length,
        )  # fmt: skip


def _integers(ours: np.ndarray, original: np.ndarray, exact: np.ndarray) -> Comparison:
    """Equal to the original or to the exact answer, element by element."""
    wrong = (ours != original) & (ours != exact)
    error = float(np.abs(ours.astype(np.float64) - exact.astype(np.float64)).max())
    theirs = float(np.abs(original.astype(np.float64) - exact.astype(np.float64)).max())
    n_wrong, n_theirs = int(wrong.sum()), int((original != exact).sum())
    if n_wrong == 0 or (n_wrong <= 2 * n_theirs and error <= max(theirs, 1.0)):
        return Comparison("", error, theirs)
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    place = f"at {tuple(map(int, at))}: {ours[at]!s} instead of {original[at]!s}"
    return Comparison(f"{n_wrong} of {ours.size} integers differ, {place}", error, theirs)


def _floats(
    ours: np.ndarray,
    original: np.ndarray,
    exact: np.ndarray,
    rounded: np.ndarray,
    dtype: DType,
    length: int,
) -> Comparison:
    """The rule for floating point; all arrays are float64."""
    with np.errstate(all="ignore"):
        overflown = ~np.isfinite(original) & np.isfinite(exact) & ~np.isfinite(ours)
        agreed = _same(ours, original) | _same(ours, rounded) | overflown
        known = np.where(np.isfinite(rounded), exact, original)
        differences = np.where(agreed, 0.0, np.abs(ours - known))
        theirs = np.abs(original - exact)
        theirs = np.where(np.isfinite(theirs), theirs, 0.0)
        scale = float(np.abs(known[np.isfinite(known)]).max(initial=0.0))
    odd = ~np.isfinite(differences)
    if odd.any():
        at = np.unravel_index(int(np.argmax(odd)), odd.shape)
        place = f"{ours[at]} instead of {original[at]} at {tuple(map(int, at))}"
        return Comparison(f"{place}, float64 has {exact[at]}", math.inf, 0.0)
    worst, worst_theirs = float(differences.max()), float(theirs.max())
    floor = 4 * SMALLEST[dtype]
    allowed = max(2 * worst_theirs, tolerance(dtype, length) * scale, floor)
    unit = max(scale, floor)
    problem = ""
    if worst > allowed:
        at = np.unravel_index(int(np.argmax(differences)), differences.shape)
        problem = (
            f"error {worst / unit:.2g} relative to the largest value, the original has "
            f"{worst_theirs / unit:.2g}; {ours[at]:.9g} instead of {exact[at]:.9g} "
            f"at {tuple(map(int, at))}"
        )
    return Comparison(problem, worst / unit, worst_theirs / unit)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equal, or both NaN."""
    equal: np.ndarray = (a == b) | (np.isnan(a) & np.isnan(b))
    return equal
