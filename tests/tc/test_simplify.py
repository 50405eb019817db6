"""Simplification keeps every value, index expressions and literals alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.tc.ast import Binary, Const, Expr, Range, Unary, Var
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.parser import parse_expr
from tcfuse.tc.pool import Pool
from tcfuse.tc.simplify import Simplifier
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import DType, TensorType

RANGES = (Range("i", Const(0), Const(3)), Range("j", Const(2), Const(6)))
TYPES = {
    "x": TensorType(DType.FLOAT32, (3,)),
    "h": TensorType(DType.FLOAT16, (3,)),
    "n": TensorType(DType.INT8, (3,)),
    "u": TensorType(DType.UINT8, (3,)),
}


def simple(expr: Expr) -> Expr:
    pool = Pool()
    return pool.rewrite(expr, Simplifier(pool, ExprTypes(TYPES), RANGES), {})


def value_of(expr: Expr, values: dict[str, int]) -> int | bool:
    match expr:
        case Const(value):
            return value
        case Var(name):
            return values[name]
        case Unary("-", operand):
            return -value_of(operand, values)
        case Binary(operator, left, right):
            a, b = value_of(left, values), value_of(right, values)
            match operator:
                case "min" | "max":
                    return min(a, b) if operator == "min" else max(a, b)
                case "/":
                    return a // b
                case _:
                    return eval(f"a {operator} b", {}, {"a": a, "b": b})
    raise AssertionError(expr)


index_expressions = st.recursive(
    st.sampled_from(["i", "j", "3", "7", "1"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.sampled_from(["*", "/", "%"]), st.integers(1, 6)).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=200)
@given(
    left=index_expressions,
    right=index_expressions,
    sign=st.sampled_from(["<", ">=", "==", "+"]),
)
def test_index_expressions_keep_their_values(left, right, sign):
    before = parse_expr(f"{left} {sign} {right}")
    after = simple(before)
    for i, j in itertools.product(range(3), range(2, 6)):
        values = {"i": i, "j": j}
        assert value_of(after, values) == value_of(before, values)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("i + 3 - 3", "i"),
        ("(4 * i + j - 2) / 4", "i"),
        ("(4 * i + j - 2) % 4", "j - 2"),
        ("min(i, 5)", "i"),
        ("max(i - 3, 0)", "0"),
        ("i < 3 ? x(i) : x(i - 3)", "x(i)"),
        ("x(i) * 1.0", "x(i)"),
        ("x(i) / float(8.0)", "x(i) * float(0.125)"),
        ("pow(x(i), 2.0)", "x(i) * x(i)"),
        ("float(x(i))", "x(i)"),
        ("float(0.1) + float(0.2)", f"float({float(np.float32(0.1) + np.float32(0.2))!r})"),
        ("x(i) + 0.0", "x(i) + 0.0"),  # -0 + 0 is 0
        ("h(i) * 1.0", "h(i) * 1.0"),  # the product is a float
        ("int8(100) + int8(100)", "int8(-56)"),
    ],
)
def test_rules(before, after):
    assert unparse_expr(simple(parse_expr(before))) == after


def requantized(
    element: str, scale: str, zero: str = "130", again: str = "", high: str = "127"
) -> str:
    """An element dequantized, and quantized with the scale ``again``."""
    number = f"(int32({element}) - {zero}) * {scale}"
    moved = f"roundeven({number} / {again or scale}) + {zero}"
    return f"int8(int32(min(max({moved}, -128), {high})))"


@pytest.mark.parametrize("scale", ["0.0187", "0.25", "1.0", "1e-30"])
@pytest.mark.parametrize("zero", ["0", "-13"])
def test_quantized_again_alike_is_the_number_itself(scale, zero):
    text = requantized("n(i)", scale, zero)
    assert unparse_expr(simple(parse_expr(text))) == "n(i)"
    twice = requantized(f"({text})", scale, zero)
    assert unparse_expr(simple(parse_expr(twice))) == "n(i)"


@pytest.mark.parametrize("number", ["n(i)", "float(n(i))", "int32(n(i))"])
def test_without_a_zero_point_it_is_the_number_too(number):
    text = f"int8(int32(min(max(roundeven({number} * 0.3 / 0.3), -128), 127)))"
    assert unparse_expr(simple(parse_expr(text))) == "n(i)"


@pytest.mark.parametrize(
    "text",
    [
        requantized("n(i)", "0.0187", again="0.0188"),
        requantized("n(i)", "0.0187", high="126"),  # not every number survives
        requantized("n(i)", "x(i)"),  # may be 0
        requantized("n(i)", "1e-40"),  # denormal
        requantized("n(i)", "1e36"),  # overflows
        requantized("u(i)", "0.0187"),  # saturates
        requantized("n(i)", "0.0187", zero="int32(n(i))"),
        requantized("n(i)", "0.0187").replace("+ 130", "+ 129"),
    ],
)
def test_quantized_again_differently_stays(text):
    expected = unparse_expr(simple(parse_expr(text)))
    assert "roundeven" in expected


@settings(deadline=None, max_examples=300)
@given(st.floats(2.0**-126, 2.0**110, width=32), st.integers(-(2**17), 2**17))
def test_requantizing_is_exact_for_every_scale_that_counts_as_plain(scale, number):
    with np.errstate(over="raise", under="raise"):
        s = np.float32(scale)
        assert np.rint(np.float32(number) * s / s) == number
