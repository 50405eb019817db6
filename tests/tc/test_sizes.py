"""Size names of a region: bound, derived, refused."""

from __future__ import annotations

import pytest
import sympy

from tcfuse.errors import UnsupportedError
from tcfuse.tc.sizes import Sizes, c_expression


def symbol(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, integer=True, positive=True)


B, S, H = map(symbol, "BSH")


def test_names_follow_first_appearance():
    sizes = Sizes.bind([(S, 3), (B, S)])
    assert [sizes.size(d) for d in (S, B, S + B + 2, 7)] == ["n0", "n1", "n0 + n1 + 2", 7]


def test_product_is_derived_and_resolved_again():
    sizes = Sizes.bind([(B, S)])
    assert sizes.size(B * S) == "n2"
    assert sizes.derived == {"n2": "n0 * n1"}
    assert sizes.quotient("n2", "n1") == "n0"
    assert sizes.product(["n2", 4]) == "4*n2"
    assert sizes.quotient("n2", 3) is None


def test_compound_dimension_binds_its_only_unknown():
    sizes = Sizes.bind([(S + 1, 8)])
    assert [sizes.size(d) for d in (S + 1, S, 2 * S)] == ["n0", "n0 - 1", "2*n0 - 2"]


def test_dimension_that_others_determine_is_checked():
    sizes = Sizes.bind([(B, S), (B * S,)])
    assert sizes.checks == [("n2 == n0 * n1", "a dimension is not n0 * n1")]
    assert sizes.derived == {}


def test_unknown_dimension_is_refused():
    with pytest.raises(UnsupportedError, match="H is not known"):
        Sizes.bind([(B, S)]).size(H)


def test_only_what_is_needed_is_used():
    sizes = Sizes.bind([(B, S, H)])
    sizes.size(B * S)
    sizes.size(sizes.value("n3") * H)
    assert sizes.used({"n3"}) == ("n0", "n1", "n3")


def test_what_a_rounded_size_lies_between_is_known():
    sizes = Sizes.bind([(B, S)])
    for value in (B * S, sympy.floor((B - 3) / 2) + 1, sympy.floor(B * S / 3), S + 1):
        sizes.size(value)
    assert list(sizes.derived) == ["n2", "n3", "n4"]
    assert list(sizes.facts()) == ["0 <= n0 - 2*n3 - 1 <= 1", "0 <= n2 - 3*n4 <= 2"]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (B * S + 3, {"B": 4, "S": 5}),
        (sympy.floor((B - 7) / 2) + 1, {"B": 4}),
        (sympy.floor(B / 3), {"B": 11}),
        (sympy.ceiling(B / 3), {"B": 11}),
        (sympy.Max(B - 5, 0, S), {"B": 9, "S": 2}),
        ((B * S + B) / 2, {"B": 4, "S": 5}),
    ],
)
def test_c_expressions_compute_the_value(value, names):
    text = c_expression(value)
    assert text is not None
    # C's integer division truncates; a ternary reads differently in Python
    python = text.replace("/", "//")
    if "?" in python:
        assert python.count("?") == python.count(":")
        return
    expected = int(value.subs({symbol(n): v for n, v in names.items()}))
    assert eval(python, {}, names) == expected
