from __future__ import annotations

import pytest

from tcfuse.mapping.spreading import LONG, SPREAD, spread_loops
from tcfuse.poly.respects import check_order
from tests.mapping.mapped import iterators, mapped

GROUP_NORM = """def f(float(4, 3, 5, 7) X) -> (Y) {
  S(n) +=! X(n, d, h, w)
  Y(n, d, h, w) = X(n, d, h, w) * S(n)
}"""


def spread(text: str, *, reassociate: bool = True) -> dict[str, str]:
    """For each statement, the iterators of the loops that are spread around it."""
    scop, dependences, tree = mapped(text, reassociate=reassociate)
    tree = spread_loops(scop, dependences, tree, reassociate=reassociate)
    check_order(scop, dependences, tree, reassociate=reassociate)
    return iterators(tree, SPREAD)


def test_loops_that_add_up_to_the_same_element_are_spread() -> None:
    assert spread(GROUP_NORM) == {"S0": "dh", "S1": "dh"}


def test_what_adds_up_in_order_is_not() -> None:
    assert "S0" not in spread(GROUP_NORM, reassociate=False)


def test_lanes_do_not_add_up_to_several_elements() -> None:
    text = """def f(float(4, 64, 48) X) -> (Z) {
      S(n, d) +=! X(n, d, w)
      Y(n, d) = S(n, d) * 2.0
      T(n) +=! Y(n, d)
      Z(n, d) = Y(n, d) * T(n)
    }"""
    assert "d" not in spread(text).get("S0", "")


def test_long_loops_over_lanes_are_enough() -> None:
    assert "S0" not in spread(GROUP_NORM.replace("7", str(LONG)))


@pytest.mark.parametrize("sizes", ["4, 3, 5, 7", "N, C, H, W"])
def test_known_and_unknown_sizes_alike(sizes: str) -> None:
    assert spread(GROUP_NORM.replace("4, 3, 5, 7", sizes))["S0"] == "dh"
