"""The 64 built-in functions of the 2019 language: their arities, types and values."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from mpmath import mp

from tcfuse.errors import TcError
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.types import DType

mp.dps = 40

Reference = Callable[..., object]


def away(x: mpmath.mpf) -> mpmath.mpf:
    """To the nearest integer, halves away from zero."""
    return mp.sign(x) * mp.floor(abs(x) + mpmath.mpf("0.5"))


UNARY: dict[str, Reference] = {
    "acos": mp.acos,
    "acosh": lambda x: mp.acosh(x + 1),
    "asin": mp.asin,
    "asinh": mp.asinh,
    "atan": mp.atan,
    "atanh": mp.atanh,
    "cbrt": mp.cbrt,
    "ceil": mp.ceil,
    "cos": mp.cos,
    "cosh": mp.cosh,
    "cospi": mp.cospi,
    "cyl_bessel_i0": lambda x: mp.besseli(0, x),
    "cyl_bessel_i1": lambda x: mp.besseli(1, x),
    "erf": mp.erf,
    "erfc": mp.erfc,
    "erfcinv": lambda x: mp.erfinv(1 - x),
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "erfinv": mp.erfinv,
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "exp10": lambda x: mp.power(10, x),
    "expm1": mp.expm1,
    "fabs": mp.fabs,
    "floor": mp.floor,
    "j0": lambda x: mp.besselj(0, x),
    "j1": lambda x: mp.besselj(1, x),
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "log": mp.log,
    "log2": lambda x: mp.log(x, 2),
    "log10": mp.log10,
    "log1p": mp.log1p,
    "logb": lambda x: mp.floor(mp.log(abs(x), 2)),
    "normcdf": mp.ncdf,
    "normcdfinv": lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1),
    "rcbrt": lambda x: 1 / mp.cbrt(x),
    "round": away,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "sin": mp.sin,
    "sinh": mp.sinh,
    "sinpi": mp.sinpi,
    "sqrt": mp.sqrt,
    "tan": mp.tan,
    "tanh": mp.tanh,
    "tgamma": mp.gamma,
    "trunc": lambda x: mp.sign(x) * mp.floor(abs(x)),
    "y0": lambda x: mp.bessely(0, x),
    "y1": lambda x: mp.bessely(1, x),
}
BINARY: dict[str, Reference] = {
    "atan2": mp.atan2,
    "copysign": lambda x, y: abs(x) * (-1 if y < 0 else 1),
    "fdim": lambda x, y: max(x - y, 0),
    "fdivide": lambda x, y: x / y,
    "fmax": max,
    "fmin": min,
    "fmod": lambda x, y: x - y * mp.sign(x / y) * mp.floor(abs(x / y)),
    "hypot": lambda x, y: mp.sqrt(x * x + y * y),
    "nextafter": lambda x, y: math.nextafter(float(x), float(y)),
    "pow": lambda x, y: mp.power(abs(x), y),
    "remainder": lambda x, y: x - y * mp.nint(x / y),
    "rhypot": lambda x, y: 1 / mp.sqrt(x * x + y * y),
}


def norm(*parts: mpmath.mpf) -> mpmath.mpf:
    return mp.sqrt(sum(p * p for p in parts))


MORE: dict[str, tuple[int, Reference]] = {
    "fma": (3, lambda x, y, z: x * y + z),
    "norm3d": (3, norm),
    "rnorm3d": (3, lambda *parts: 1 / norm(*parts)),
    "norm4d": (4, norm),
    "rnorm4d": (4, lambda *parts: 1 / norm(*parts)),
}
ALL: dict[str, tuple[int, Reference]] = {
    **{name: (1, reference) for name, reference in UNARY.items()},
    **{name: (2, reference) for name, reference in BINARY.items()},
    **MORE,
}
POSITIVE = (0.125, 0.3, 0.5, 0.8125)  # where every function of one argument is defined
MIXED = ((0.3, -2.5, 1.75, -0.5), (-7.25, 2.0, -0.125, 3.0), (5.5, 1.5, 0.25, -8.0))


def test_there_are_64() -> None:
    assert [len(UNARY), len(BINARY), len(MORE)] == [47, 12, 5]


@pytest.mark.parametrize("name", ALL)
def test_values(name: str) -> None:
    arity, reference = ALL[name]
    points = [(x,) for x in POSITIVE] if arity == 1 else [p[:arity] for p in MIXED]
    arrays = {f"X{k}": np.array([p[k] for p in points]) for k in range(arity)}
    params = ", ".join(f"double(N) {tensor}" for tensor in arrays)
    arguments = [f"{tensor}(i)" for tensor in arrays]
    if name == "acosh":
        arguments[0] += " + 1"
    if name == "pow":
        arguments[0] = f"fabs({arguments[0]})"
    text = f"def f({params}) -> (Y) {{ Y(i) = {name}({', '.join(arguments)}) }}"
    found = evaluate(parse(text), arrays)["Y"]
    expected = [float(reference(*map(mpmath.mpf, p))) for p in points]
    np.testing.assert_allclose(found, expected, rtol=2e-13, atol=1e-300)


@pytest.mark.parametrize("name", ALL)
def test_types_and_arities(name: str) -> None:
    arity, _ = ALL[name]
    assert BUILTINS[name].arity == arity
    for kind, expected in (
        *(("float", DType.FLOAT32), ("double", DType.FLOAT64)),
        *(("int32", DType.FLOAT32), ("float16", DType.FLOAT32)),
    ):
        call = f"{name}({', '.join(['X(i)'] * arity)})"
        found = check(parse(f"def f({kind}(N) X) -> (Y) {{ Y(i) = {call} }}"))
        assert found.tensors["Y"].dtype is expected
    for count in (arity - 1, arity + 1):
        call = f"{name}({', '.join(['X(i)'] * count)})"
        with pytest.raises(TcError, match=f"takes {arity} argument") as error:
            parse(f"def f(float(N) X) -> (Y) {{ Y(i) = {call} }}")
        assert error.value.code == "TC12"


@pytest.mark.parametrize("name", BUILTINS)
def test_no_definition_has_the_name_of_a_function(name: str) -> None:
    with pytest.raises(TcError, match="is a built-in function") as error:
        check(parse(f"def {name}(float(N) X) -> (Y) {{ Y(i) = X(i) }}"))
    assert error.value.code == "TC22"
