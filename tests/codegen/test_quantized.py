"""Roundings to short integers are one function, found in what quantization writes."""

import pytest

from tcfuse.codegen.quantized import find_quantized, roundings
from tcfuse.tc.ast import Binary, Cast, post_order
from tcfuse.tc.parser import parse_expr
from tcfuse.types import DType
from tests.targets.kernels import functions_of, kernel_of


@pytest.mark.parametrize(
    ("text", "dtype", "zero"),
    [
        ("uint8(int32(min(max(roundeven(x) + 10, 0), 255)))", DType.UINT8, True),
        ("int8(int32(min(max(roundeven(x) + Z(), -128), 127)))", DType.INT8, True),
        ("uint16(int32(min(max(roundeven(x), 0), 65535)))", DType.UINT16, False),
    ],
)
def test_found(text: str, dtype: DType, zero: bool) -> None:
    found = find_quantized(parse_expr(text))
    assert found is not None
    assert found.dtype is dtype
    assert (found.zero is not None) is zero


@pytest.mark.parametrize(
    "text",
    [
        "uint8(int32(min(max(roundeven(x) + 10, 0), 254)))",  # other bounds
        "uint8(int32(min(max(round(x) + 10, 0), 255)))",  # away from zero
        "uint8(int32(min(max(roundeven(x) + 300, 0), 255)))",  # no zero point
        "uint8(int32(min(max(roundeven(x) + Z(i), 0), 255)))",  # one for each channel
        "uint8(int64(min(max(roundeven(x) + 10, 0), 255)))",
        "uint8(int32(max(min(roundeven(x) + 10, 255), 0)))",  # NaN takes another way
    ],
)
def test_not_found(text: str) -> None:
    assert find_quantized(parse_expr(text)) is None


def test_a_node_that_is_needed_elsewhere_is_computed() -> None:
    rounded = parse_expr("uint8(int32(min(max(roundeven(x) + 10, 0), 255)))")
    (inner,) = (q.inner for q in [find_quantized(rounded)] if q)
    for shared in inner:
        both = Binary("+", Cast(DType.FLOAT32, rounded), shared)
        assert roundings(post_order(both)) == ({}, {})
    alone = roundings(post_order(Cast(DType.FLOAT32, rounded)))
    assert set(alone[0]) == {id(rounded)}
    assert set(alone[1]) == {id(node) for node in inner}


def text_of(dtype: str) -> str:
    rounded = "uint8(int32(min(max(roundeven(X(i)) + 10, 0), 255)))"
    text = f"""def f({dtype}(N) X) -> (uint8(N) Y) {{ Y(i) = {rounded} where i in 0:N }}"""
    return functions_of(kernel_of(text).source)


def test_only_floats_round_by_an_addition() -> None:
    assert "tcf::quantized<uint8_t>" in text_of("float")
    assert "roundeven" not in text_of("float")
    assert "tcf::quantized" not in text_of("double")
