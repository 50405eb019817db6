"""Division by a constant as two products: the quotient itself, of every number.

With ``1 / c`` as a high part, rounded to zero, and a low part, ``x / c`` is
``fma(x, high, x * low)``.  Its error before the last rounding is below 2^-44 (2^-102 for
doubles) of it, so only quotients that near the middle of two numbers may be rounded to the
wrong one.  There are a handful for each ``c``: solutions of a congruence, which are tried here.

The low part is not negative for a positive ``c``, so that an infinity stays one.  Where the
product with it is denormal, for quotients below 2^-100 (2^-970), the last bit may differ.

Source: Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division
when the divisor is known in advance", IEEE Transactions on Computers 53 (2004).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from tcfuse.types import DType

_BITS = {DType.FLOAT32: 24, DType.FLOAT64: 53}
_MOST = 64  # exponents of constants: beyond, the parts would be near the end of the range
_NEAR = 16  # units of the remainder within which a quotient may be rounded to the wrong side


@lru_cache(maxsize=1024)
def reciprocal(divisor: float, dtype: DType) -> tuple[float, float] | None:
    """Both parts of ``1 / divisor``; ``None`` where some quotient would not be right.

    Args:
        divisor: A number of that type.
        dtype: Of the numbers that are divided.
    """
    bits = _BITS.get(dtype)
    size = abs(divisor)
    if bits is None or not 2.0**-_MOST < size < 2.0**_MOST:
        return None
    exact = Fraction(size)
    if exact.numerator & (exact.numerator - 1) == 0:
        return None  # a power of two: one product, as compilers know
    high = _rounded(1 / exact, bits, down=True)
    low = _rounded(1 / exact - high, bits)
    if any(_wrong(x, exact, high, low, bits) for x in _suspects(exact, bits)):
        return None
    sign = -1.0 if divisor < 0 else 1.0
    return sign * float(high), sign * float(low)


def _rounded(value: Fraction, bits: int, *, down: bool = False) -> Fraction:
    """The number of that many bits nearest to a positive value, or the next one below it."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - bits
    while value / Fraction(2) ** exponent >= 2**bits:
        exponent += 1
    scaled = value / Fraction(2) ** exponent
    whole = scaled.numerator // scaled.denominator if down else round(scaled)
    return whole * Fraction(2) ** exponent


def _suspects(divisor: Fraction, bits: int) -> list[int]:
    """Whole numbers of that many bits whose quotient is very near the middle of two numbers.

    With ``divisor`` a whole number C of that many bits times a power of two, they are the X of
    ``X 2^s = C M + d``: M is odd and has a bit more (a middle), d is small, s is ``bits`` or
    one more, for X from C on or below it.
    """
    whole = divisor.numerator
    while whole % 2 == 0:
        whole //= 2
    zeros = bits - whole.bit_length()
    found = []
    for s in (bits, bits + 1):
        for d in range(-_NEAR, _NEAR + 1):
            if d == 0 or d % 2**zeros != 0:
                continue
            modulus = 2 ** (s - zeros)
            first = -(d >> zeros) * pow(whole, -1, modulus) % modulus
            start = first + (2**bits - first + modulus - 1) // modulus * modulus
            for middle in range(start, 2 ** (bits + 1), modulus):
                x = (whole * 2**zeros * middle + d) >> s
                if middle % 2 and 2 ** (bits - 1) <= x < 2**bits:
                    found.append(x)
    return found


def _wrong(x: int, divisor: Fraction, high: Fraction, low: Fraction, bits: int) -> bool:
    product = _rounded(x * low, bits)
    return _rounded(x * high + product, bits) != _rounded(x / divisor, bits)
