from __future__ import annotations

import math

import pytest

from tcfuse.codegen.values import (
    Value,
    combined,
    converted,
    folded,
    identity_text,
    literal_text,
    plain,
    spread,
)
from tcfuse.tc.typing import Weak
from tcfuse.types import DType

F32, F64, F16, I8, I64, U64, BOOL = (
    DType.FLOAT32,
    DType.FLOAT64,
    DType.FLOAT16,
    DType.INT8,
    DType.INT64,
    DType.UINT64,
    DType.BOOL,
)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, F32, "1.e-01f"),
        (0.1, F64, "0.1"),
        (-2, F32, "(-2.e+00f)"),
        (1e-45, F32, "1.e-45f"),
        (1e300, F32, "__builtin_inff()"),
        (1e300, F64, "1e+300"),
        (1e16, F64, "1e+16"),
        (-math.inf, F64, "-__builtin_inf()"),
        (math.nan, F32, '__builtin_nanf("")'),
        (3.4028234663852886e38, F32, "3.4028235e+38f"),
        (200, I8, "int8_t(-56)"),  # integers wrap
        (-1, U64, "uint64_t(18446744073709551615ULL)"),
        (-(1 << 63), I64, "(-9223372036854775807LL - 1)"),
        (7, I64, "int64_t(7LL)"),
        (True, BOOL, "true"),
        (0, BOOL, "false"),
    ],
)
def test_literals(value: float, dtype: DType, text: str) -> None:
    assert literal_text(value, dtype) == text


@pytest.mark.parametrize(
    ("operator", "dtype", "text"),
    [
        ("+", F32, "0.e+00f"),
        ("*", I8, "int8_t(1)"),
        ("max", F64, "-__builtin_inf()"),
        ("min", F32, "__builtin_inff()"),
        ("max", I8, "int8_t(-128)"),
        ("min", U64, "uint64_t(18446744073709551615ULL)"),
        ("max", BOOL, "false"),
        ("min", BOOL, "true"),
    ],
)
def test_identities(operator: str, dtype: DType, text: str) -> None:
    assert identity_text(operator, dtype) == text


def test_what_values_are_held_in() -> None:
    assert [plain(k) for k in (Weak.BOOL, Weak.INT, Weak.FLOAT, F16, I8)] == [
        BOOL,
        I64,
        F32,
        F32,
        I8,
    ]


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (Value("a", F32), F32, "a"),
        (Value("a", F16), F32, "a"),
        (Value("a", F32), F16, "a"),
        (Value("a", F32), I8, "tcf::convert<int8_t>(a)"),
        (Value("a", Weak.INT), I64, "a"),
        (Value("a", F32), BOOL, "tcf::to_mask(a)"),
        (Value("a", BOOL), I8, "tcf::from_mask<int8_t>(a)"),
        (Value("", Weak.INT, literal=3), F32, "3.e+00f"),
        (Value("", Weak.FLOAT, literal=2.5), I8, "int8_t(2)"),
    ],
)
def test_conversions(value: Value, dtype: DType, text: str) -> None:
    assert converted(value, dtype) == text


def test_one_value_for_all_lanes_is_spread() -> None:
    assert spread(Value("a", F32), F32, "L") == "tcf::splat<float, L>(a)"
    assert spread(Value("a", F32, varying=True), F32, "L") == "a"
    assert spread(Value("m", BOOL), BOOL, "L") == "tcf::splat_mask<L>(m)"
    assert spread(Value("a", I8, varying=True), F32, "L") == "tcf::convert<float>(a)"


@pytest.mark.parametrize(
    ("operator", "dtype", "one", "lanes"),
    [
        ("+", F32, "(a + b)", "tcf::hsum(v)"),
        ("*", F64, "(a * b)", "tcf::hprod(v)"),
        ("+", I8, "tcf::add(a, b)", "tcf::hsum(v)"),
        ("*", I64, "tcf::mul(a, b)", "tcf::hprod(v)"),
        ("max", F32, "tcf::max_(b, a)", "tcf::hmax(v)"),
        ("min", I8, "tcf::min_(b, a)", "tcf::hmin(v)"),
        ("max", BOOL, "tcf::or_(a, b)", "tcf::hor(v)"),
        ("min", BOOL, "tcf::and_(a, b)", "tcf::hand(v)"),
    ],
)
def test_reductions(operator: str, dtype: DType, one: str, lanes: str) -> None:
    assert combined(operator, "a", "b", dtype) == one
    assert folded(operator, "v", dtype) == lanes


def test_names_and_literals_are_trivial() -> None:
    assert Value("acc3", F32).trivial
    assert Value("", Weak.INT, literal=0).trivial
    assert not Value("a + b", F32).trivial
