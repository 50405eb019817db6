"""Reductions are found where the conditions of the original's detector hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcfuse.mapping.accumulators import with_accumulators
from tcfuse.poly import isl
from tcfuse.poly.dependences import compute_dependences
from tcfuse.poly.reductions import Reduction, find_reductions
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.scop import extract_scop
from tcfuse.poly.transforms import distribute, join
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Sequence, Tree, rewrite
from tests.poly.definitions import COLUMN_SUM, LAYER_NORM, ROW_SUM, SOFTMAX, checked_of, model

PRODUCT = """def mm(float(n0, n1) A, float(n1, n2) B) -> (float(n0, n2) C) {
  C(i, j) +=! A(i, k) * B(k, j) where i in 0:n0, j in 0:n2, k in 0:n1
}"""
TOTAL = """def total(float(n0, n1) A) -> (float S) {
  S() max=! A(i, j) where i in 0:n0, j in 0:n1
}"""
BEFORE_AND_AFTER = """def f(float(n0) A, float(n0, n1) X) -> (float(n0) Y) {
  T(i) = A(i) * 2 where i in 0:n0
  S(i) +=! X(i, j) * T(i) where i in 0:n0, j in 0:n1
  Y(i) = S(i) + 1 where i in 0:n0
}"""


def found(text: str) -> list[Reduction]:
    scop, dependences = model(text)
    return find_reductions(scop, dependences, compute_schedule(scop, dependences).tree)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ROW_SUM, [("S0", "+", ("j",))]),
        (COLUMN_SUM, [("S0", "+", ("i",))]),
        (PRODUCT, [("S0", "+", ("k",))]),
        (SOFTMAX, [("S0", "max", ("j",))]),
        (LAYER_NORM, [("S0", "+", ("j",)), ("S2", "+", ("j",))]),
    ],
    ids=["row_sum", "column_sum", "product", "softmax", "layer_norm"],
)
def test_the_loop_of_each_reduction(
    text: str, expected: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    made = [(r.statement, r.operator, r.iterators) for r in found(text)]
    assert made[: len(expected)] == expected


def test_each_of_two_loops_over_one_element_reduces() -> None:
    loops = [(r.statement, r.iterators) for r in found(TOTAL)]
    assert loops == [("S0", ("i",)), ("S0", ("j",))]


def whole_band(text: str) -> tuple[Domain, list[Reduction]]:
    """A product as one band of three loops, as the original's scheduler gives it."""
    scop, dependences = model(text)
    tree = compute_schedule(scop, dependences).tree
    assert isinstance(tree.child, Band)
    parts = distribute(tree.child, dependences.all)
    last = parts.filters[-1]
    assert isinstance(last.child, Band)
    joint = join(last.child, dependences.all)
    last = replace(last, child=joint)
    tree = Domain(tree.instances, Sequence((*parts.filters[:-1], last)))
    return tree, find_reductions(scop, dependences, tree)


def test_a_band_may_have_parallel_loops_first() -> None:
    _, (reduction,) = whole_band(PRODUCT)
    assert reduction.band.coincident == (True, True, False)
    assert (reduction.coincident, reduction.iterators) == (2, ("k",))


def test_what_is_not_permutable_does_not_reduce() -> None:
    scop, dependences = model(PRODUCT)
    tree, _ = whole_band(PRODUCT)

    def rigid(node: Tree) -> Tree | None:
        return replace(node, permutable=False) if isinstance(node, Band) else None

    changed = rewrite(tree, rigid)
    assert isinstance(changed, Domain)
    assert find_reductions(scop, dependences, changed) == []


def test_the_statements_around_it_are_sorted() -> None:
    """Identity and factor before the updates, what needs the sum after them."""
    scop = extract_scop(with_accumulators(checked_of(BEFORE_AND_AFTER)))
    dependences = compute_dependences(scop)
    rows = isl.MultiUnionPwAff.read_from_str(
        scop.context,
        "[n0, n1] -> [{ S0[i] -> [(i)]; S1_init[i] -> [(i)]; S1[i, j] -> [(i)];"
        " S2[i] -> [(i)] }, { S0[i] -> [(0)]; S1_init[i] -> [(0)]; S1[i, j] -> [(j)];"
        " S2[i] -> [(n1)] }]",
    )
    names = [s.name for s in scop.statements]
    assert names == ["S0", "S1_init", "S1", "S2"]
    parts = Sequence(tuple(Filter((n,), Leaf()) for n in names))
    tree = Domain(scop.domain, Band(rows, True, (True, False), parts))
    (reduction,) = find_reductions(scop, dependences, tree)
    assert (reduction.statement, reduction.coincident, reduction.iterators) == ("S1", 1, ("j",))
    assert (reduction.before, reduction.after) == (("S0", "S1_init"), ("S2",))
