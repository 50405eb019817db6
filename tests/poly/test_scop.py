from __future__ import annotations

from collections.abc import Callable

import pytest

from tcfuse.errors import UnsupportedError
from tcfuse.poly.scop import affine_text, extract_scop
from tcfuse.tc.parser import parse_expr
from tests.poly.definitions import ALL, SOFTMAX, checked_of, readable

Golden = Callable[[object, str], None]


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "gather", "pad"])
def test_text(name: str, golden: Golden) -> None:
    scop = extract_scop(checked_of(ALL[name]))
    golden(readable(scop), "scop")


def test_a_reduction_that_resets_is_two_statements() -> None:
    scop = extract_scop(checked_of(SOFTMAX))
    assert [s.name for s in scop.statements] == ["S0_init", "S0", "S1", "S2_init", "S2", "S3"]
    update = scop.statement("S0")
    assert (update.iterators, update.reduction) == (("i", "j"), ("j",))
    assert (update.is_update, scop.statement("S0_init").is_update) == (True, False)
    assert scop.statement("S0_init").iterators == ("i",)


def test_one_that_accumulates_is_one_statement() -> None:
    text = """def f(float(4, 5) X) -> (float(4) Y) {
      Y(i) = 1.0 where i in 0:4
      Y(i) += X(i, j) where i in 0:4, j in 0:5
    }"""
    scop = extract_scop(checked_of(text))
    assert [s.name for s in scop.statements] == ["S0", "S1"]
    assert scop.statement("S1").is_update


def test_scalars_have_points_without_coordinates() -> None:
    scop = extract_scop(checked_of("def f(float X) -> (float Y) { Y() = X() * 2.0 }"))
    assert str(scop.writes) == "{ S0[] -> T_Y[] }"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + 2*j - 1", "((i + (2 * j)) - 1)"),
        ("(i + 1) / 3", "floor((i + 1) / 3)"),
        ("(i - 1) % 4", "((i - 1) mod 4)"),
        ("-i", "(-i)"),
        ("min(i, n0)", "min(i, n0)"),
        ("i * j", None),
        ("i / n0", None),
        ("i / -2", None),
        ("X(i)", None),
        ("1.5", None),
        ("true", None),
    ],
)
def test_affine_text(text: str, expected: str | None) -> None:
    assert affine_text(parse_expr(text)) == expected


def test_what_does_not_start_at_zero_is_refused() -> None:
    text = """def f(float(9) X) -> (float(4) Y) {
      T(i) = X(i) where i in 3:7
      Y(i) = T(i + 3) where i in 0:4
    }"""
    with pytest.raises(UnsupportedError, match="T does not start at index 0"):
        extract_scop(checked_of(text))


def test_facts_that_no_sizes_satisfy_are_refused():
    text = "def f(float(N) X) -> (float(N) Y) { Y(i) = X(i) where i in 0:N }"
    with pytest.raises(
        UnsupportedError, match="there are no sizes for which 3 <= N and N <= 2"
    ):
        extract_scop(checked_of(text), ("3 <= N", "N <= 2"))


def test_facts_are_known_of_the_sizes():
    text = "def f(float(N) X) -> (float(N) Y) { Y(i) = X(i) where i in 0:N }"
    scop = extract_scop(checked_of(text), ("3 <= N",))
    assert str(scop.parameters) == "[N] -> {  : N >= 3 }"
