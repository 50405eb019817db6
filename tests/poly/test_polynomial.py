from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.poly.polynomial import (
    Polynomial,
    address,
    floor_divided,
    from_size,
    polynomial,
    row_major,
)
from tcfuse.tc.parser import parse_expr

NAMES = ("i", "j", "n0")


LIBRARY = {"tcf_floor_div": lambda a, b: a // b, "tcf_min": min, "tcf_max": max}


def value(text: object, **names: int) -> int:
    """A printed polynomial computed by Python."""
    return int(eval(str(text), dict(LIBRARY), names))


def of(text: str) -> Polynomial:
    found = polynomial(parse_expr(text), {})
    assert found is not None
    return found


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> str:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from((*NAMES, "0", "1", "2", "7")))
    a = draw(expressions(depth - 1))
    operator = draw(st.sampled_from("+-*/%m"))
    if operator in "/%":
        return f"({a} {operator} {draw(st.integers(1, 6))})"
    b = draw(expressions(depth - 1))
    return f"min({a}, {b})" if operator == "m" else f"({a} {operator} {b})"


numbers = st.integers(-20, 20)


@settings(deadline=None, max_examples=80, derandomize=True)
@given(expressions(), numbers, numbers, numbers)
def test_equals_the_expression(text: str, i: int, j: int, n0: int) -> None:
    names = {"i": i, "j": j, "n0": n0}
    expected = eval(text.replace("/", "//"), {"min": min}, dict(names))
    assert value(of(text), **names) == expected


@settings(deadline=None, max_examples=40, derandomize=True)
@given(expressions(3), expressions(3), numbers, numbers, numbers)
def test_algebra(a: str, b: str, i: int, j: int, n0: int) -> None:
    names = {"i": i, "j": j, "n0": n0}
    x, y = of(a), of(b)
    assert value(x + y, **names) == value(x, **names) + value(y, **names)
    assert value(x - y, **names) == value(x, **names) - value(y, **names)
    assert value(x * y, **names) == value(x, **names) * value(y, **names)
    assert value(-x, **names) == -value(x, **names)
    assert x + y == y + x
    assert x * y == y * x
    assert (x - x).number == 0


@settings(deadline=None, max_examples=40, derandomize=True)
@given(expressions(3), numbers, numbers, numbers)
def test_a_stride_is_what_one_step_adds(text: str, i: int, j: int, n0: int) -> None:
    x = of(text)
    stride = x.stride("i")
    if stride is None:
        return
    before, after = ({"i": k, "j": j, "n0": n0} for k in (i, i + 1))
    assert value(x, **after) - value(x, **before) == value(stride, **before)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(expressions(3), st.integers(1, 9), numbers, numbers, numbers)
def test_quotient_and_remainder_make_the_whole(
    text: str, divisor: int, i: int, j: int, n0: int
) -> None:
    x = of(text)
    quotient = floor_divided(x, divisor)
    names = {"i": i, "j": j, "n0": n0}
    assert value(quotient, **names) == value(x, **names) // divisor
    again = of(f"(({text}) / {divisor}) * {divisor} + ({text}) % {divisor}")
    assert again == x


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("(l / 6)*6 + l % 6", "l"),
        ("i * n0 + j", "i * n0 + j"),
        ("2*(i + 1) - 2", "2 * i"),
        ("(6*i + 4) / 2", "3 * i + 2"),
        ("(6*i + 5) / 6", "i"),
        ("(6*i - 1) / 6", "i - 1"),
        ("i - i", "0"),
        ("-i - 1", "-i - 1"),
        ("i / 3", "tcf_floor_div(i, 3)"),
        ("max(i, 2)", "tcf_max(i, 2)"),
    ],
)
def test_text(text: str, printed: str) -> None:
    assert str(of(text)) == printed


@pytest.mark.parametrize("text", ["X(i)", "1.5", "true", "i / j", "i % 0", "exp(i)", "-X(i)"])
def test_what_is_not_a_polynomial(text: str) -> None:
    assert polynomial(parse_expr(text), {}) is None


def test_names_are_replaced() -> None:
    environment = {"i": Polynomial.factor("c0") * Polynomial.constant(8)}
    found = polynomial(parse_expr("i + j"), environment)
    assert str(found) == "8 * c0 + j"


def test_strides() -> None:
    x = of("i * n0 + 3 * j")
    assert str(x.stride("i")) == "n0"
    assert str(x.stride("j")) == "3"
    assert x.stride("k") == Polynomial()
    assert of("i * i").stride("i") is None
    assert of("(i / 4) * n0").stride("i") is None
    assert of("i * (j / 4)").stride("j") is None
    assert str(of("i * (j / 4)").stride("i")) == "tcf_floor_div(j, 4)"


def test_names_are_whole_words() -> None:
    x = of("i1 / 3 + n10")
    assert x.mentions("i1")
    assert not x.mentions("i")
    assert not x.mentions("n1")


def test_addresses_are_row_major() -> None:
    strides = row_major((4, "n0", 3))
    assert [str(s) for s in strides] == ["3 * n0", "3", "1"]
    assert str(address((of("i"), of("j"), of("k")), strides)) == "3 * i * n0 + 3 * j + k"
    assert row_major(()) == ()
    assert str(row_major((2, "n0 + 1"))[0]) == "n0 + 1"


def test_sizes() -> None:
    assert from_size(7).number == 7
    assert str(from_size("2*n0 + 1")) == "2 * n0 + 1"
    assert from_size("n0").number is None
