"""Only sums are divided by through their reciprocals."""

import pytest

from tcfuse.codegen.divisors import is_root, is_sum
from tcfuse.poly.scop import extract_scop
from tcfuse.tc.parser import parse, parse_expr
from tcfuse.tc.sema import check

TEXT = """
def f(float(4, 8) X, float(4) B) -> (float(4, 8) Y) {
  M(i) max=! X(i, j) where i in 0:4, j in 0:8
  S(i) +=! X(i, j) * X(i, j) where i in 0:4, j in 0:8
  R(i) = sqrt(S(i) / 8 + 0.00001) where i in 0:4
  Q(i) = R(i) + B(i) where i in 0:4
  Y(i, j) = X(i, j) / R(i) / M(i) / Q(i) where i in 0:4, j in 0:8
}
"""


@pytest.mark.parametrize(
    ("divisor", "expected"),
    [
        ("S(i)", True),
        ("R(i)", True),
        ("sqrt(S(i) + 1)", True),
        ("M(i)", False),  # x / max x is 1 somewhere
        ("B(i)", False),
        ("Q(i)", False),
        ("S(i) + M(i)", False),
        ("6", False),
        ("t", True),
        ("u", False),
    ],
)
def test_sums(divisor, expected):
    scop = extract_scop(check(parse(TEXT)))
    lets = {"t": parse_expr("S(i) * 2"), "u": parse_expr("B(i) * 2")}
    assert is_sum(scop, parse_expr(divisor), lets) is expected


@pytest.mark.parametrize(
    ("divisor", "expected"),
    [("R(i)", True), ("sqrt(S(i))", True), ("S(i)", False), ("Q(i)", False), ("B(i)", False)],
)
def test_roots(divisor, expected):
    """What may be tiny or huge has a reciprocal that is a denormal or infinite."""
    assert is_root(extract_scop(check(parse(TEXT))), parse_expr(divisor)) is expected
