"""Division by a constant as two products gives the quotient of every number."""

from fractions import Fraction

import numpy as np
import pytest

from tcfuse.codegen.reciprocals import reciprocal
from tcfuse.types import DType

DIVISORS = [1.4142135381698608, 3, 6, 0.04, 10, 255, -7, 768, 1.2021681070327759]


def single(value: float) -> float:
    return float(np.float32(value))


@pytest.mark.parametrize("divisor", DIVISORS)
def test_every_fraction_of_a_float(divisor: float) -> None:
    divisor = single(divisor)
    parts = reciprocal(divisor, DType.FLOAT32)
    assert parts is not None
    high, low = parts
    x = np.arange(2**23, 2**24, dtype=np.float32)
    # The product with the high part has 48 bits, and what is added is below it: long doubles
    # lose at most 2^-64 of the sum, far less than lies between it and the middle of two floats.
    total = x.astype(np.longdouble) * np.longdouble(high) + np.longdouble(1) * (
        x * np.float32(low)
    )
    assert np.array_equal(total.astype(np.float32), x / np.float32(divisor))


def test_constants_that_some_quotient_is_wrong_for_are_left_alone() -> None:
    third = single(1 / 3)
    assert reciprocal(third, DType.FLOAT32) is None
    high = np.nextafter(np.float32(1 / Fraction(third)), np.float32(0))
    low = np.float32(float(1 / Fraction(third) - Fraction(float(high))))
    x = np.arange(2**23, 2**24, dtype=np.float32)
    total = x.astype(np.longdouble) * np.longdouble(high) + np.longdouble(1) * (x * low)
    assert (total.astype(np.float32) != x / np.float32(third)).any()


@pytest.mark.parametrize(
    "divisor", [0.0, 0.5, 2.0**40, 1e-30, 1e30, float("inf"), float("nan")]
)
def test_powers_of_two_and_extremes_are_left_alone(divisor: float) -> None:
    assert reciprocal(divisor, DType.FLOAT32) is None


def test_infinities_stay_infinite() -> None:
    """The low part of an infinity must not be the other infinity."""
    for divisor in DIVISORS:
        for dtype in (DType.FLOAT32, DType.FLOAT64):
            parts = reciprocal(single(divisor), dtype)
            assert parts is not None
            assert parts[0] * divisor > 0
            assert parts[1] * divisor >= 0


def test_doubles_near_the_middle() -> None:
    """Of 53 bits not all can be tried, but exact quotients and their neighbours can."""
    rng = np.random.default_rng(0)
    parts = reciprocal(0.1, DType.FLOAT64)
    assert parts is not None
    high, low = map(Fraction, parts)
    for quotient in rng.integers(2**52, 2**53, 200):
        for step in (-1, 0, 1):
            x = float(Fraction(0.1) * int(quotient)) + step * 0.0625
            total = Fraction(x) * high + Fraction(x * parts[1])
            assert float(total) == x / 0.1, (x, low)


@pytest.mark.parametrize("dtype", [DType.INT32, DType.FLOAT16])
def test_other_types_have_none(dtype: DType) -> None:
    assert reciprocal(3.0, dtype) is None
