"""The device library, compiled as C++ for one thread, has the math library's values."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.codegen.conftest import DEVICE, UNCONTRACTED
from tests.codegen.test_mathlib import BINARY, PRECISE, TYPES, WIDE, pairs, samples

pytestmark = [pytest.mark.compiler, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

Array = np.ndarray
UNARY = (*WIDE, *PRECISE, "exp_bounded")
PAIRS = (*BINARY, "nextafter", "floored")
EXTREMES = ("fmax", "fmin", "max_", "min_")
ARITIES = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(PAIRS, 2), "fma": 3, "norm3d": 3}


def loop(name: str, arity: int, dtype: str, width: int, value: str) -> str:
    """A function that stores ``value`` of every ``width`` elements from ``i`` on."""
    inputs = ", ".join(f"const {dtype}* {p}" for p in "abc"[:arity])
    return (
        f'extern "C" __attribute__((visibility("default"))) void '
        f"{name}_{dtype}_{width}({inputs}, {dtype}* out, int64_t n) {{\n"
        f"  for (int64_t i = 0; i + {width} <= n; i += {width})\n"
        f"    tcf::store<{width}, {dtype}>(out + i, {value});\n}}\n"
    )


def loops(*widths: int) -> str:
    """Every function of every type, and a division by one number."""
    text = ""
    for dtype in TYPES:
        for width in widths:
            loads = [f"tcf::load<{dtype}, {width}>({p} + i)" for p in "abc"]
            for name, arity in ARITIES.items():
                value = f"tcf::{name}({', '.join(loads[:arity])})"
                text += loop(name, arity, dtype, width, value)
            value = f"tcf::divided({loads[0]}, tcf::divisor(b[i]))"
            text += loop("divided", 2, dtype, width, value)
    return text


SCALARS, PACKS = loops(1), loops(1, 4)


def call(library: ctypes.CDLL, name: str, *inputs: Array) -> Array:
    out = np.empty_like(inputs[0])
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*inputs, out)]
    getattr(library, name)(*pointers, ctypes.c_int64(out.size))
    return out


def check(build, name: str, dtype: str, *inputs: Array) -> None:
    """A scalar and a pack of four have the bits of the CPU's scalar."""
    want = call(build(SCALARS, UNCONTRACTED), f"{name}_{dtype}_1", *inputs)
    for width in (1, 4):
        got = call(build(PACKS, DEVICE), f"{name}_{dtype}_{width}", *inputs)
        same = (got == want) & (np.signbit(got) == np.signbit(want))
        if name in EXTREMES:  # of two zeros the CPU takes either
            same |= (got == want) & (got == 0)
        differ = ~(same | (np.isnan(got) & np.isnan(want)))
        where = [a[differ][:4] for a in inputs]
        assert not differ.any(), f"{width} of {where}: {got[differ][:4]}, {want[differ][:4]}"


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(build, name, dtype):
    check(build, name, dtype, samples(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", PAIRS)
def test_binary(build, name, dtype):
    check(build, name, dtype, *pairs(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["fma", "norm3d"])
def test_ternary(build, name, dtype):
    a, b = pairs(dtype)
    check(build, name, dtype, a, b, np.ascontiguousarray(a[::-1]))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("name", "combine"), [("max_", max), ("min_", min)])
def test_zeros_are_ordered(build, name, combine, dtype):
    kind = TYPES[dtype]
    a, b = np.array([[0.0, -0.0, 0.0, -0.0], [-0.0, 0.0, 0.0, -0.0]], kind)
    got = call(build(PACKS, DEVICE), f"{name}_{dtype}_4", a, b)
    signs = combine(0, 1) == 0
    want = (np.signbit(a) | np.signbit(b)) if signs else (np.signbit(a) & np.signbit(b))
    np.testing.assert_array_equal(np.signbit(got), want)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("library", "text"), [(DEVICE, PACKS), (UNCONTRACTED, SCALARS)])
def test_division_by_one_number(build, library, text, dtype):
    """Within 1.5 units in the last place, of a denormal 2, whatever the divisor's size."""
    kind = TYPES[dtype]
    a, b = pairs(dtype)
    for width in (1, 4) if library == DEVICE else (1,):
        divisors = b.reshape(-1, width)[:, :1].repeat(width, 1).ravel()
        want = a.astype(np.longdouble) / divisors
        got = call(build(text, library), f"divided_{dtype}_{width}", a, divisors)
        assert (np.isnan(got) == np.isnan(want)).all()
        rounded = want.astype(kind)
        whole = np.isfinite(rounded) & np.isfinite(got)
        unit = np.spacing(np.abs(rounded[whole])).astype(np.longdouble)
        bound = np.maximum(1.5 * unit, 2 * np.finfo(kind).smallest_subnormal)
        assert (np.abs(got[whole] - want[whole]) <= bound).all()
        ends = ~whole & ~np.isnan(want)
        assert (np.sign(got[ends]) == np.sign(want[ends])).all()
        assert (np.abs(got[ends]) >= np.finfo(kind).max).all()
