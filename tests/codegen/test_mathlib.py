"""Errors and special values of the math library, against wider types, scipy and mpmath."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.special as special

from tcfuse.codegen.mathlib import ABSOLUTE, FLUSHES, ULP
from tcfuse.targets.compilers import levels

pytestmark = [pytest.mark.compiler, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

Array = np.ndarray
PI = np.longdouble("3.14159265358979323846264338327950288")
LEVELS = [level.name for level in levels()]
TYPES = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}
WIDER = {"float": np.dtype(np.float64), "double": np.dtype(np.longdouble)}


def sinpi(x: Array) -> Array:
    n = np.rint(x)
    return np.where(np.fmod(n, 2) == 0, 1, -1) * np.sin(PI.astype(x.dtype) * (x - n))


def cospi(x: Array) -> Array:
    n = np.rint(x)
    y = np.sin(PI.astype(x.dtype) * (x.dtype.type(0.5) - np.abs(x - n)))
    return np.where(np.fmod(n, 2) == 0, 1, -1) * y


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def logb(x: Array) -> Array:
    exponent = np.frexp(x)[1].astype(x.dtype) - 1
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), exponent, x * x))


def round_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + np.where(np.abs(x) < 2.0**60, 0.5, 0)), x)


# By numpy, in the next wider type.
WIDE: dict[str, Callable[[Array], Array]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos,
    "cosh": np.cosh, "cospi": cospi, "exp": np.exp, "exp10": lambda x: 10 ** x.astype(x.dtype),
    "exp2": np.exp2, "expm1": np.expm1, "fabs": np.abs, "floor": np.floor, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logb": logb,
    "rcbrt": lambda x: 1 / np.cbrt(x), "round": round_away, "roundeven": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": sigmoid, "sign": np.sign, "sin": np.sin,
    "sinh": np.sinh, "sinpi": sinpi, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
    "trunc": np.trunc,
}  # fmt: skip


def erfcinv(q: mpmath.mpf) -> mpmath.mpf:
    """Newton's steps, from a double, to more digits than are asked for."""
    y = mpmath.mpf(float(special.erfcinv(float(q))))
    for _ in range(3):
        y += (mpmath.erfc(y) - q) * mpmath.exp(y * y) * mpmath.sqrt(mpmath.pi) / 2
    return y


# For floats by scipy; for doubles by mpmath on fewer samples, between these bounds.
Precise = tuple[Callable[[Array], Array], Callable[[mpmath.mpf], mpmath.mpf], float, float]
PRECISE: dict[str, Precise] = {
    "cyl_bessel_i0": (special.i0, lambda x: mpmath.besseli(0, x), -700, 700),
    "cyl_bessel_i1": (special.i1, lambda x: mpmath.besseli(1, x), -700, 700),
    "erf": (special.erf, mpmath.erf, -6, 6),
    "erfc": (special.erfc, mpmath.erfc, -3, 26.5),
    "erfcinv": (special.erfcinv, erfcinv, 0, 2),
    "erfcx": (special.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), -20, 60),
    "erfinv": (special.erfinv, mpmath.erfinv, -1, 1),
    "j0": (special.j0, lambda x: mpmath.besselj(0, x), -50, 50),
    "j1": (special.j1, lambda x: mpmath.besselj(1, x), -50, 50),
    "lgamma": (special.gammaln, lambda x: mpmath.loggamma(x).real, -19.9, 20),
    "normcdf": (special.ndtr, lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2, -37, 8),
    "normcdfinv": (special.ndtri, lambda p: -mpmath.sqrt(2) * erfcinv(2 * p), 0, 1),
    "tgamma": (special.gamma, mpmath.gamma, -19.9, 171),
    "y0": (special.y0, lambda x: mpmath.bessely(0, x), 0, 50),
    "y1": (special.y1, lambda x: mpmath.bessely(1, x), 0, 50),
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "atan2": np.arctan2, "copysign": np.copysign, "fdivide": np.divide, "fmax": np.fmax,
    "fdim": lambda a, b: np.where(a <= b, 0, a - b), "fmin": np.fmin, "fmod": np.fmod,
    "hypot": np.hypot, "max_": np.maximum, "min_": np.minimum, "pow": np.power,
    "remainder": lambda a, b: np.vectorize(c_remainder, otypes=[a.dtype])(a, b),
    "rhypot": lambda a, b: 1 / np.hypot(a, b),
}  # fmt: skip


def c_remainder(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return math.nan
    return math.remainder(float(a), float(b))


def loops(name: str, arity: int) -> str:
    """Two loops a type: over the lanes of the level and over scalars."""
    text = ""
    for dtype in TYPES:
        inputs = ", ".join(f"const {dtype}* {p}" for p in "abc"[:arity])
        for suffix, width in (("lanes", "TCF_LANES"), ("scalar", "1")):
            loads = ", ".join(f"tcf::load<{dtype}, {width}>({p} + i)" for p in "abc"[:arity])
            text += (
                f'extern "C" __attribute__((visibility("default"))) void '
                f"{name}_{dtype}_{suffix}({inputs}, {dtype}* out, int64_t n) {{\n"
                f"  for (int64_t i = 0; i + {width} <= n; i += {width})\n"
                f"    tcf::store<{width}, {dtype}>(out + i, tcf::{name}({loads}));\n}}\n"
            )
    return text


TEXT = (
    "".join(loops(name, 1) for name in (*WIDE, *PRECISE))
    + "".join(loops(name, 2) for name in (*BINARY, "nextafter"))
    + loops("fma", 3)
)


def call(library: ctypes.CDLL, name: str, dtype: str, *inputs: Array) -> Array:
    """The function's values by lanes, after checking that scalars give the same bits."""
    results = []
    for suffix in ("lanes", "scalar"):
        out = np.empty_like(inputs[0])
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*inputs, out)]
        getattr(library, f"{name}_{dtype}_{suffix}")(*pointers, ctypes.c_int64(out.size))
        results.append(out)
    lanes, scalar = results
    differ = (lanes != scalar) & ~(np.isnan(lanes) & np.isnan(scalar))
    differ |= (np.signbit(lanes) != np.signbit(scalar)) & ~np.isnan(lanes)
    assert not differ.any(), f"scalar and lanes differ at {inputs[0][differ][:4]}"
    return lanes


SPECIAL = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, 1.5, -1.5, 2.5, np.inf, -np.inf, np.nan]
SPECIAL += [-87.336544, -87.33655, 88.72283, 88.72284, -103.5, 709.78, 709.8, -708.3, -708.5]


@functools.cache
def samples(dtype: str, count: int = 8000) -> Array:
    """Bit patterns of every kind, special values, and numbers of moderate size."""
    rng = np.random.default_rng(7)
    kind = TYPES[dtype]
    raw = rng.integers(0, 256, count * kind.itemsize, dtype=np.uint8).view(kind)
    near = rng.uniform(-3, 3, count)
    far = rng.uniform(-120, 120, count)
    x = np.concatenate([v.astype(kind) for v in (np.array(SPECIAL), raw, near, far)])
    return x[: x.size // 16 * 16]


def between(low: float, high: float, count: int = 384) -> Array:
    """Doubles between the bounds, uniformly and by magnitude."""
    rng = np.random.default_rng(11)
    size = np.exp(rng.uniform(-40, math.log(max(abs(low), high)), count // 2))
    if low < 0:
        size *= rng.choice([-1, 1], size.size)
    return np.concatenate([rng.uniform(low, high, count // 2), np.clip(size, low, high)])


def error(got: Array, want: Array, dtype: str, absolute: bool) -> Array:
    """In units of the last place of the true value (of 1 at least, when absolute)."""
    info = np.finfo(TYPES[dtype])
    size = np.where(np.isfinite(want), np.abs(want), 1)
    size = np.maximum(size, 1 if absolute else info.tiny)
    unit = np.ldexp(want.dtype.type(1), np.frexp(size)[1] - 1 - info.nmant)
    rounded = want.astype(TYPES[dtype])
    result = np.abs(got.astype(want.dtype) - want) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same & ~np.isfinite(rounded), 0, np.where(np.isnan(result), np.inf, result))


def check(name: str, dtype: str, got: Array, want: Array, *inputs: Array) -> None:
    """The documented bound holds, and zeros have the right sign."""
    tiny = np.finfo(TYPES[dtype]).tiny
    ulps = error(got, want, dtype, name in ABSOLUTE)
    if name in FLUSHES:
        assert not ((got != 0) & (np.abs(got) < tiny)).any(), "a denormal result"
        ulps = np.where((got == 0) & (np.abs(want) < tiny), 0, ulps)
    worst = int(np.argmax(ulps))
    where = ", ".join(str(a[worst]) for a in inputs)
    found = f"{name}({where}) = {got[worst]}, not {want[worst]}: {ulps[worst]} ulp"
    assert ulps[worst] <= ULP[name, dtype], found


@functools.cache
def wide_reference(name: str, dtype: str) -> Array:
    return np.asarray(WIDE[name](samples(dtype).astype(WIDER[dtype])), WIDER[dtype])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("level", LEVELS)
def test_unary(build, level, name, dtype):
    x = samples(dtype)
    got, want = call(build(TEXT, level), name, dtype, x), wide_reference(name, dtype)
    check(name, dtype, got, want, x)
    if name not in ("sign", "sinpi"):  # whose references lose it
        zero = (want == 0) & (x == 0)
        assert (np.signbit(got) == np.signbit(want))[zero].all(), "the sign of 0"


@functools.cache
def scipy_reference(name: str) -> Array:
    x = samples("float").astype(np.float64)
    want = PRECISE[name][0](x)
    # What scipy has no value for, or another one than C.
    ends = {"lgamma": np.inf, "cyl_bessel_i0": np.inf, "cyl_bessel_i1": x, "j0": 0, "j1": 0}
    end = ends.get(name, np.where(x > 0, 0, np.nan) if name in ("y0", "y1") else want)
    return np.where(np.isinf(x), end, want)


@pytest.mark.parametrize("name", PRECISE)
@pytest.mark.parametrize("level", LEVELS)
def test_special_functions_of_floats(build, level, name):
    x = samples("float")
    got = call(build(TEXT, level), name, "float", x)
    check(name, "float", got, scipy_reference(name), x)


@pytest.mark.parametrize("name", ["erf", "tanh"])
@pytest.mark.parametrize("level", LEVELS)
def test_saturates_at_one(build, level, name):
    x = np.linspace(3, 16, 1 << 16).astype(np.float32)
    x[-2:] = np.inf, np.float32(3e38)
    got = call(build(TEXT, level), name, "float", np.concatenate([x, -x]))
    assert (np.abs(got) <= 1).all()
    end = 3.95 if name == "erf" else 9.1
    np.testing.assert_array_equal(got[: x.size][x > end], 1)
    np.testing.assert_array_equal(got[x.size :][x > end], -1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("level", LEVELS)
def test_what_is_a_plain_number_at_zero_is_exact_there(build, level, dtype):
    """A window function is a difference of cosines, all of whose digits cancel."""
    at_zero = {"cos": 1, "cosh": 1, "cospi": 1, "exp": 1, "exp2": 1, "exp10": 1, "sigmoid": 0.5}
    zeros = np.array([0.0, -0.0] * 8, TYPES[dtype])
    for name, value in at_zero.items():
        got = call(build(TEXT, level), name, dtype, zeros)
        np.testing.assert_array_equal(got, value, err_msg=name)


@functools.cache
def mpmath_reference(name: str) -> tuple[Array, Array]:
    _, function, low, high = PRECISE[name]
    x = between(low, high)
    with mpmath.workprec(150):
        values = [function(mpmath.mpf(float(v))) for v in x]
        parts = [(float(v), float(v - mpmath.mpf(float(v)))) for v in values]
    return x, np.array([np.longdouble(a) + np.longdouble(b) for a, b in parts])


@pytest.mark.parametrize("name", PRECISE)
@pytest.mark.parametrize("level", LEVELS)
def test_special_functions_of_doubles(build, level, name):
    x, want = mpmath_reference(name)
    check(name, "double", call(build(TEXT, level), name, "double", x), want, x)


@functools.cache
def pairs(dtype: str) -> tuple[Array, Array]:
    """Every pair of special values, and pairs of which many are near each other."""
    rng = np.random.default_rng(3)
    a, b = (v.ravel() for v in np.meshgrid(SPECIAL[:16], SPECIAL[:16]))
    x = samples(dtype, 4000)
    y = x[rng.permutation(x.size)]
    positive = np.exp(rng.uniform(-20, 20, 4096))
    a = np.concatenate([a, x, x, positive, -positive])
    b = np.concatenate([b, y, x * rng.uniform(0.01, 3, x.size), rng.uniform(-30, 30, 4096)])
    b = np.concatenate([b, np.rint(rng.uniform(-30, 30, 4096))])
    size = a.size // 16 * 16
    return a[:size].astype(TYPES[dtype]), b[:size].astype(TYPES[dtype])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("level", LEVELS)
def test_binary(build, level, name, dtype):
    a, b = pairs(dtype)
    got = call(build(TEXT, level), name, dtype, a, b)
    exact = name == "remainder"
    kind = TYPES[dtype] if exact else WIDER[dtype]
    want = np.asarray(BINARY[name](a.astype(kind), b.astype(kind)), WIDER[dtype])
    check(name, dtype, got, want, a, b)
    zero = (want == 0) & (got == 0)
    if name not in ("fmax", "fmin", "max_", "min_"):
        assert (np.signbit(got) == np.signbit(want))[zero].all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("level", LEVELS)
def test_nextafter(build, level, dtype):
    a, b = pairs(dtype)
    got = call(build(TEXT, level), "nextafter", dtype, a, b)
    np.testing.assert_array_equal(got, np.nextafter(a, b))


def nearest(value: Fraction, kind: np.dtype) -> np.floating:
    """The nearest number of the type, ties to even."""
    near = kind.type(float(value))
    around = (
        near,
        np.nextafter(near, kind.type(np.inf)),
        np.nextafter(near, kind.type(-np.inf)),
    )
    return min(around, key=lambda c: (abs(Fraction(float(c)) - value), c.tobytes()[0] & 1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("level", LEVELS)
def test_fma_rounds_once(build, level, dtype):
    rng = np.random.default_rng(5)
    kind, count = TYPES[dtype], 2048
    low = 40 if dtype == "float" else 500
    scale = np.exp2(rng.integers(-low, low, count)).astype(kind)
    a = (rng.uniform(1, 2, count) * scale).astype(kind)
    b = (rng.uniform(1, 2, count) * np.exp2(rng.integers(-low, low, count))).astype(kind)
    close = -(a.astype(np.float64) * b) * np.exp2(rng.integers(-60, 60, count))
    c = np.where(rng.random(count) < 0.5, close, -(a * b)).astype(kind)
    got = call(build(TEXT, level), "fma", dtype, a, b, c)
    exact = (
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        for x, y, z in zip(a, b, c, strict=True)
    )
    np.testing.assert_array_equal(got, np.array([nearest(v, kind) for v in exact], kind))
