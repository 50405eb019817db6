from __future__ import annotations

from dataclasses import replace

import pytest

from tcfuse.errors import UnsupportedError
from tcfuse.mapping.lanes import LANES
from tcfuse.mapping.spreading import LONG, SPREAD, spread_loops
from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.respects import check_order
from tcfuse.poly.scop import Scop
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence
from tests.mapping.mapped import iterators, mapped
from tests.poly.definitions import model

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


COLUMN_SUMS = """def f(float(12, 8) X) -> (Y) {
  Y(j) = 0.0 where j in 0:8
  Y(j) += X(k, j) where j in 0:8, k in 0:12
}"""


def column_sums() -> tuple[Scop, Dependences, Domain]:
    """Sums whose terms run one after the other, each for all columns in lanes."""
    scop, dependences = model(COLUMN_SUMS)

    def loop(row: str) -> Band:
        schedule = isl.MultiUnionPwAff.read_from_str(scop.context, f"[{{ {row} }}]")
        return Band(schedule, True, (True,), Leaf())

    zero = Mark(LANES, loop("S0[j] -> [j]"))
    terms = replace(loop("S1[j, k] -> [k]"), child=Mark(LANES, loop("S1[j, k] -> [j]")))
    parts = (Filter(("S0",), zero), Filter(("S1",), terms))
    return scop, dependences, Domain(scop.domain, Sequence(parts))


def test_threads_raced_for_an_element_along_a_sum_that_lanes_do_not_share() -> None:
    scop, dependences, tree = column_sums()
    assert iterators(spread_loops(scop, dependences, tree), SPREAD) == {}


def test_the_proof_tells_a_sum_that_is_spread_apart_from_the_lanes() -> None:
    scop, dependences, tree = column_sums()
    check_order(scop, dependences, tree)
    assert isinstance(tree.child, Sequence)
    zero, terms = tree.child.filters
    raced = Sequence((zero, replace(terms, child=Mark(SPREAD, terms.child))))
    with pytest.raises(UnsupportedError, match="adds up apart"):
        check_order(scop, dependences, replace(tree, child=raced))
