from __future__ import annotations

import pytest

from tcfuse.codegen.operators import Operators
from tcfuse.codegen.values import Value
from tcfuse.tc.ast import children
from tcfuse.tc.parser import parse_expr
from tcfuse.tc.typing import Type, Weak, node_type
from tcfuse.types import DType

F32, F64, F16, I32, I64, U8, BOOL = (
    DType.FLOAT32,
    DType.FLOAT64,
    DType.FLOAT16,
    DType.INT32,
    DType.INT64,
    DType.UINT8,
    DType.BOOL,
)


def applied(text: str, *operands: Value) -> Value:
    """The operation that ``text`` shows, on these operands."""
    node = parse_expr(text)
    kinds: tuple[Type, ...] = tuple(o.type for o in operands)
    assert len(children(node)) == len(operands)
    return Operators("L").apply(node, node_type(node, kinds, {}, {}), operands, kinds)


def of(dtype: Type, name: str = "a", *, varying: bool = False) -> Value:
    return Value(name, dtype, varying)


@pytest.mark.parametrize(
    ("text", "dtypes", "expected"),
    [
        ("a + b", (F32, F32), "(a + b)"),
        ("a + b", (F16, F64), "(tcf::convert<double>(a) + b)"),
        ("a + b", (I32, I64), "tcf::add(tcf::convert<int64_t>(a), b)"),
        ("a / b", (I32, I32), "tcf::floor_div(a, b)"),
        ("a % b", (I32, I32), "tcf::floor_mod(a, b)"),
        ("a % b", (F32, F32), "tcf::floored(a, b)"),
        ("a / b", (F32, F32), "(a / b)"),
        ("min(a, b)", (F32, F32), "tcf::min_(a, b)"),
        ("max(a, b)", (BOOL, BOOL), "tcf::or_(a, b)"),
        ("a < b", (F32, F32), "tcf::lt(a, b)"),
        ("a >= b", (U8, I32), "tcf::ge(tcf::convert<int32_t>(a), b)"),
        ("a == b", (BOOL, BOOL), "tcf::not_(tcf::xor_(a, b))"),
        ("a != b", (BOOL, BOOL), "tcf::xor_(a, b)"),
        ("a && b", (BOOL, BOOL), "tcf::and_(a, b)"),
        ("a || b", (BOOL, BOOL), "tcf::or_(a, b)"),
        ("pow(a, b)", (F32, F32), "tcf::pow(a, b)"),
        ("fdivide(a, b)", (F32, F32), "(a / b)"),
        ("bitand(a, b)", (U8, U8), "tcf::bitand_(a, b)"),
        ("tdiv(a, b)", (I32, I32), "tcf::tdiv(a, b)"),
    ],
)
def test_two_operands(text: str, dtypes: tuple[DType, DType], expected: str) -> None:
    assert applied(text, of(dtypes[0]), of(dtypes[1], "b")).text == expected


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("-a", F32, "(-a)"),
        ("-a", I32, "tcf::neg(a)"),
        ("!a", BOOL, "tcf::not_(a)"),
        ("exp(a)", F16, "tcf::exp(a)"),
        ("exp(a)", I32, "tcf::exp(tcf::convert<float>(a))"),
        ("abs(a)", I32, "tcf::abs(a)"),
        ("isnan(a)", F64, "tcf::isnan(a)"),
        ("float16(a)", F32, "tcf::round_half(a)"),
        ("bfloat16(a)", F64, "tcf::round_bfloat(tcf::convert<float>(a))"),
        ("int32(a)", F32, "tcf::convert<int32_t>(a)"),
        ("bool(a)", F32, "tcf::to_mask(a)"),
    ],
)
def test_one_operand(text: str, dtype: DType, expected: str) -> None:
    assert applied(text, of(dtype)).text == expected


def test_no_integer_is_nan() -> None:
    assert applied("isnan(a)", of(I32)).literal is False


def test_a_lane_makes_everything_lanes() -> None:
    found = applied("a + b", of(F32, varying=True), of(F32, "b"))
    assert found == Value("(a + tcf::splat<float, L>(b))", F32, True)
    literal = Value("", Weak.INT, literal=2)
    assert applied("a * 2", of(F32, varying=True), literal).text == (
        "(a * tcf::splat<float, L>(2.e+00f))"
    )


def test_choices() -> None:
    condition, a, b = of(BOOL, "c"), of(F32), of(F32, "b")
    assert applied("c ? a : b", condition, a, b) == Value("(c ? a : b)", F32)
    lanes = applied("c ? a : b", of(BOOL, "c", varying=True), a, b)
    assert lanes == Value(
        "tcf::select(c, tcf::splat<float, L>(a), tcf::splat<float, L>(b))", F32, True
    )
    masks = applied("c ? a : b", *(of(BOOL, n, varying=True) for n in "cab"))
    assert masks.text == "tcf::or_(tcf::and_(c, a), tcf::and_(tcf::not_(c), b))"
