"""The built-in functions on NumPy arrays: in float64, or exact on integers.

Source: the C standard's definitions (7.12) and, for the functions C lacks, the CUDA math API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from tcfuse.types import Array


def _round(x: Array) -> Array:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.asarray(whole + np.copysign((np.abs(x - whole) >= 0.5).astype(np.float64), x))


def _sinpi(x: Array) -> Array:
    """``sin(pi * x)``, exact where the sine is."""
    turn = np.fmod(x, 2.0)
    return np.where(turn == np.trunc(turn), np.copysign(0.0, x), np.sin(np.pi * turn))


def _cospi(x: Array) -> Array:
    """``cos(pi * x)``, exact where the cosine is."""
    turn = np.abs(np.fmod(x, 2.0))
    return np.where(np.abs(turn - 1.0) == 0.5, 0.0, np.cos(np.pi * turn))


def _logb(x: Array) -> Array:
    """The exponent of ``x`` as C's logb has it."""
    exponent = np.frexp(x)[1] - 1.0
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), exponent, np.abs(x)))


def _remainder(x: Array, y: Array) -> Array:
    """``x - n * y`` with ``n`` the integer nearest to ``x / y``, even on a tie."""
    size = np.abs(y)
    rest = np.fmod(x, size)
    odd = np.abs(np.fmod(x, 2 * size)) >= size
    beyond = np.abs(rest) > size - np.abs(rest)
    tie = (np.abs(rest) == size - np.abs(rest)) & odd
    return np.where(beyond | tie, rest - np.copysign(size, rest), rest)


def _norm(*parts: Array) -> Array:
    """The Euclidean norm, without overflow in between."""
    total = np.abs(parts[0])
    for part in parts[1:]:
        total = np.hypot(total, part)
    return np.asarray(total)


def _tdiv(a: Array, b: Array) -> Array:
    """The quotient rounded towards zero; zero when the divisor is."""
    quotient = np.floor_divide(a, b)
    inexact = (quotient * b != a) & ((a < 0) != (b < 0))
    return np.where(b == 0, np.zeros_like(quotient), quotient + inexact.astype(quotient.dtype))


def _tmod(a: Array, b: Array) -> Array:
    """What ``_tdiv`` leaves; zero when the divisor is."""
    return np.where(b == 0, np.zeros_like(a * b), a - _tdiv(a, b) * b)


def _ipow(a: Array, b: Array) -> Array:
    """``a`` to the ``b``, wrapping; with a negative exponent the reciprocal rounded to zero."""
    base, exponent = np.broadcast_arrays(a, b)
    result = np.ones_like(base)
    power, left = base.copy(), np.where(exponent < 0, np.zeros_like(exponent), exponent)
    while np.any(left):
        result = np.where(left & 1, result * power, result)
        power, left = power * power, left >> 1
    unit = np.where(base == 1, result, np.zeros_like(base))
    minus = base == np.asarray(-1).astype(base.dtype)
    if np.issubdtype(base.dtype, np.signedinteger):
        unit = np.where(minus, np.where(exponent & 1, base, -base), unit)
    return np.where(exponent < 0, unit, result)


FLOAT: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "cospi": _cospi,
    "cyl_bessel_i0": special.i0,
    "cyl_bessel_i1": special.i1,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfcinv": special.erfcinv,
    "erfcx": special.erfcx,
    "erfinv": special.erfinv,
    "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "fabs": np.abs,
    "fdim": lambda x, y: np.where(x <= y, 0.0, x - y),
    "fdivide": np.divide,
    "floor": np.floor,
    "fma": lambda x, y, z: x * y + z,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "j0": special.j0,
    "j1": special.j1,
    "lgamma": special.gammaln,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "logb": _logb,
    "nextafter": np.nextafter,
    "norm3d": _norm,
    "norm4d": _norm,
    "normcdf": special.ndtr,
    "normcdfinv": special.ndtri,
    "pow": np.float_power,  # np.power takes roots for an exponent of 0.5: wrong at -inf and -0
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "remainder": _remainder,
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "rnorm3d": lambda *parts: 1.0 / _norm(*parts),
    "rnorm4d": lambda *parts: 1.0 / _norm(*parts),
    "round": _round,
    "roundeven": np.rint,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": special.expit,
    "sin": np.sin,
    "sinh": np.sinh,
    "sinpi": _sinpi,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "tgamma": special.gamma,
    "trunc": np.trunc,
    "y0": special.y0,
    "y1": special.y1,
}

EXACT: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "sign": np.sign,
    "tdiv": _tdiv,
    "tmod": _tmod,
    "ipow": _ipow,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
    "bitnot": np.invert,
    "shl": np.left_shift,
    "shr": np.right_shift,
}

OPERATORS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "%": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "&&": np.logical_and,
    "||": np.logical_or,
}
