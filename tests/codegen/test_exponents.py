"""Where a power is of a value minus the maximum of such values, and where it only looks so."""

import pytest

from tcfuse.codegen.exponents import never_positive
from tests.poly.definitions import checked_of, model

HEAD = "def f(float(N, K) X, float(N, K) Z) -> (float(N, K) Y) {{ M(i) max=! {values} {more} "


def judged(values: str, exponent: str, more: str = "") -> bool:
    """Whether the power in ``Y(i, k) = exp(exponent)`` needs no check."""
    text = HEAD.format(values=values, more=more) + f"Y(i, k) = exp({exponent}) }}"
    scop, _ = model(checked_of(text))
    return never_positive(scop, scop.statements[-1].comprehension.value)


@pytest.mark.parametrize(
    ("values", "exponent"),
    [
        ("X(i, k)", "X(i, k) - M(i)"),
        ("X(i, j)", "X(i, k) - M(i)"),
        ("X(i, k) / 8.0 + Z(i, k)", "X(i, k) / 8.0 + Z(i, k) - M(i)"),
    ],
)
def test_a_value_minus_its_maximum_is_never_positive(values: str, exponent: str):
    assert judged(values, exponent)


@pytest.mark.parametrize(
    ("values", "exponent"),
    [
        ("X(i, k)", "Z(i, k) - M(i)"),
        ("X(i, k)", "M(i) - X(i, k)"),
        ("X(i, k)", "X(0, k) - M(i)"),
        ("X(i, k)", "X(i, k) * 2.0 - M(i)"),
        ("X(i, k) * Z(i, k)", "X(i, 0) * Z(i, k) - M(i)"),
    ],
)
def test_another_difference_may_be_positive(values: str, exponent: str):
    assert not judged(values, exponent)


def test_a_minimum_is_no_maximum():
    text = """def f(float(N, K) X) -> (float(N, K) Y) {
      M(i) min=! X(i, k)
      Y(i, k) = exp(X(i, k) - M(i))
    }"""
    scop, _ = model(checked_of(text))
    assert not never_positive(scop, scop.statements[-1].comprehension.value)


def test_values_that_have_changed_since_may_be_larger():
    text = """def f(float(N, K) X) -> (float(N, K) Y) {
      T(i, k) = X(i, k)
      M(i) max=! T(i, k)
      T(i, k) = T(i, k) + 1.0
      Y(i, k) = exp(T(i, k) - M(i))
    }"""
    scop, _ = model(checked_of(text))
    assert not never_positive(scop, scop.statements[-1].comprehension.value)
