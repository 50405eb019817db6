from __future__ import annotations

from dataclasses import replace

import pytest

from tcfuse.errors import UnsupportedError
from tcfuse.mapping.lanes import choose_lanes, mark_parallel
from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.proof import Proof, prove
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.scop import Scop
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree, rewrite
from tcfuse.tc.ast import Const
from tests.poly.definitions import (
    ALL,
    GATHER,
    PAD,
    ROW_SUM,
    SOFTMAX,
    checked_of,
    model,
)


def mapped(text: str, *, reassociate: bool = True) -> tuple[Scop, Dependences, Domain]:
    scop, dependences = model(text)
    tree = compute_schedule(scop, dependences).tree
    lanes = choose_lanes(scop, dependences, tree, reassociate=reassociate)
    return scop, dependences, mark_parallel(lanes)


@pytest.mark.parametrize("name", sorted(ALL))
@pytest.mark.parametrize("reassociate", [True, False])
def test_a_right_kernel_is_proved(name: str, reassociate: bool) -> None:
    proof = prove(*mapped(ALL[name], reassociate=reassociate))
    assert proof.outputs
    assert proof.parallel_loops > 0


def test_text() -> None:
    proof = prove(*mapped(SOFTMAX))
    assert str(replace(proof, notes=("simplified",))) == (
        "14 accesses inside their tensors, 0 checked at run time; Y written whole; "
        "10 dependences kept; 4 parallel loops carry none; simplified"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [(GATHER, 1), (PAD, 1), (ROW_SUM, 0), (ALL["rope"], 0)],
    ids=["gather", "pad", "row_sum", "rope"],
)
def test_accesses_that_are_checked_at_run_time(text: str, expected: int) -> None:
    assert prove(*mapped(text)).checked_at_run_time == expected


# ---------------------------------------------------------------------- faults of a definition

READS_OUTSIDE = """def f(float(n0) X) -> (float(n0) Y) {
  Y(i) = X(i + 1) where i in 0:n0
}"""
READS_BELOW = """def f(float(9) X) -> (float(9) Y) {
  Y(i) = X(i - 1) where i in 0:9
}"""
READS_PIECE = """def f(float(8) X) -> (float(16) Y) {
  Y(i) = X(i % 9) where i in 0:16
}"""
WRITES_PART = """def f(float(8) X) -> (float(8) Y) {
  Y(i) = X(i) where i in 0:3
  Y(i) = -X(i) where i in 4:8
}"""


@pytest.mark.parametrize("text", [READS_OUTSIDE, READS_BELOW, READS_PIECE])
def test_an_access_outside_its_tensor(text: str) -> None:
    with pytest.raises(UnsupportedError, match="an access of X may leave the tensor"):
        proof_of(text)


def test_a_write_outside_its_tensor() -> None:
    checked = checked_of("def f(float(9) X) -> (float(9) Y) { Y(i) = X(i) where i in 0:9 }")
    (item,) = checked.statements
    wider = replace(item, ranges=(replace(item.ranges[0], high=Const(10)),))
    scop, dependences = model(replace(checked, statements=(wider,)))
    with pytest.raises(UnsupportedError, match="an access of Y may leave the tensor"):
        prove(scop, dependences, compute_schedule(scop, dependences).tree)


def test_an_output_with_a_hole() -> None:
    with pytest.raises(UnsupportedError, match="not every element of Y is written"):
        proof_of(WRITES_PART)


def test_a_range_that_does_not_follow_the_size() -> None:
    text = "def f(float(n0) X) -> (float(n0) Y) { Y(i) = X(i) where i in 0:n0 }"
    checked = checked_of(text)
    (item,) = checked.statements
    shorter = replace(item, ranges=(replace(item.ranges[0], high=Const(4)),))
    scop, dependences = model(replace(checked, statements=(shorter,)))
    # four elements: too many for a short tensor, too few for a long one
    with pytest.raises(UnsupportedError, match="an access of Y may leave the tensor"):
        prove(scop, dependences, compute_schedule(scop, dependences).tree)


def proof_of(text: str) -> Proof:
    scop, dependences = model(text)
    return prove(scop, dependences, compute_schedule(scop, dependences).tree)


# ---------------------------------------------------------------------- faults of a schedule


def test_swapped_children_of_a_sequence() -> None:
    scop, dependences, tree = mapped(SOFTMAX)

    def swap(node: Tree) -> Tree | None:
        return Sequence(tuple(reversed(node.filters))) if isinstance(node, Sequence) else None

    with pytest.raises(UnsupportedError, match="the schedule would reverse a dependence"):
        prove(scop, dependences, rewrite(tree, swap))


def test_a_loop_that_runs_backwards() -> None:
    scop, dependences = model("""def f(float(9) X) -> (float(9) Y) {
      Y(i) = X(i) where i in 0:9
      Y(i) += X(j) where i in 0:9, j in 0:9
    }""")
    tree = compute_schedule(scop, dependences, fusion="min").tree
    prove(scop, dependences, tree)

    def reverse(node: Tree) -> Tree | None:
        if isinstance(node, Band) and not all(node.coincident):
            return replace(node, schedule=node.schedule.neg())
        return None

    with pytest.raises(UnsupportedError, match="the schedule would reverse a dependence"):
        prove(scop, dependences, rewrite(tree, reverse))


def test_instances_at_one_point() -> None:
    """Two dependent instances at one point of the schedule have no order."""
    scop, dependences = model(ROW_SUM)
    tree = compute_schedule(scop, dependences).tree

    def cut(node: Tree) -> Tree | None:
        if isinstance(node, Band) and not all(node.coincident):
            return Leaf()
        return None

    with pytest.raises(UnsupportedError, match="dependent instances run at one point in time"):
        prove(scop, dependences, rewrite(tree, cut))


def marked(tree: Domain, name: str, *, coincident: bool) -> Domain:
    """``tree`` with a mark above each band that is (not) parallel, in place of all others."""

    def rule(node: Tree) -> Tree | None:
        if isinstance(node, Mark):
            return node.child
        if isinstance(node, Band) and all(node.coincident) is coincident:
            return Mark(name, node)
        return None

    found = rewrite(tree, rule)
    assert isinstance(found, Domain)
    return found


RECURRENCE = """def f(float(9) X) -> (float(9) Y) {
  Y(i) = X(i) where i in 0:9
  Z(i) = Y(i) where i in 0:9
  Y(i) = Z(8 - i) where i in 0:9
}"""


def test_a_parallel_loop_that_carries_a_dependence() -> None:
    scop, dependences, tree = mapped(ROW_SUM)
    wrong = marked(tree, "parallel", coincident=False)
    with pytest.raises(UnsupportedError, match="a parallel loop carries a dependence"):
        prove(scop, dependences, wrong)


def test_lanes_may_carry_a_reduction() -> None:
    scop, dependences, tree = mapped(ROW_SUM)
    prove(scop, dependences, marked(tree, "lanes", coincident=False))


def test_lanes_that_carry_more_than_a_reduction() -> None:
    scop, dependences = model(RECURRENCE)
    schedule = isl.MultiUnionPwAff.read_from_str(
        scop.context, "[{ S0[i] -> [i]; S1[i] -> [i]; S2[i] -> [i + 9] }]"
    )
    tree = Domain(scop.domain, Mark("lanes", Band(schedule, True, (False,), sequence())))
    with pytest.raises(UnsupportedError, match="a lanes loop carries a dependence"):
        prove(scop, dependences, tree)


def sequence() -> Sequence:
    return Sequence(tuple(Filter((name,), Leaf()) for name in ("S0", "S1", "S2")))


def lanes_of(tree: Domain) -> list[tuple[bool, ...]]:
    """Coincidence of the loops marked as lanes."""
    found: list[tuple[bool, ...]] = []

    def rule(node: Tree) -> Tree | None:
        if isinstance(node, Mark) and node.name == "lanes":
            assert isinstance(node.child, Band)
            found.append(node.child.coincident)
        return None

    rewrite(tree, rule)
    return found


def test_a_reduction_runs_in_lanes_unless_its_order_is_kept() -> None:
    assert (False,) in lanes_of(mapped(SOFTMAX)[2])
    assert (False,) not in lanes_of(mapped(SOFTMAX, reassociate=False)[2])
