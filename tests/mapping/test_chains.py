"""Contractions in nests of their own, and the loops around them that they share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tcfuse.mapping.plan import Plan, plan_kernel
from tcfuse.mapping.storage import Memory
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly.proof import prove
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree
from tests.poly.definitions import checked_of

KRONECKER = """
def f(float({M}, 8, 8, 8) X, float(8, 8) U, float(8, 8) V, float(8, 8) W) -> (O) {{
  S(m, a, b, k) +=! X(m, a, b, c) * U(c, k)
  T(m, a, j, k) +=! S(m, a, b, k) * V(b, j)
  O(m, i, j, k) +=! T(m, a, j, k) * W(a, i)
}}
"""
ATTENTION = """
def f(float(6, 3, 33, 16) Q, float(6, 3, 33, 16) K, float(6, 3, 33, 16) V) -> (O) {
  S(b, h, i, j) +=! Q(b, h, i, d) * K(b, h, j, d)
  Most(b, h, i) max=! S(b, h, i, j)
  E(b, h, i, j) = exp(S(b, h, i, j) - Most(b, h, i))
  Z(b, h, i) +=! E(b, h, i, j)
  P(b, h, i, j) = E(b, h, i, j) / Z(b, h, i)
  R(b, h, i, d) +=! P(b, h, i, j) * V(b, h, j, d)
  O(b, i, h, d) = R(b, h, i, d)
}
"""
LAYERS = """
def f(float(64, 32) X, float(32, 32) U, float(32, 32) V) -> (O) {
  S(m, n) +=! X(m, k) * U(k, n)
  R(m, n) = fmax(S(m, n), 0.0)
  O(m, n) +=! R(m, k) * V(k, n)
}
"""
PAIR = LAYERS.replace("float(64, 32)", "float(2, 64, 32)").replace("(m, ", "(b, m, ")


def planned(text: str, **knobs: object) -> Plan:
    return plan_kernel(checked_of(text), (), MappingOptions(**knobs))


def blocks(tree: Tree, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The statements in each register block."""
    match tree:
        case Mark(name) if name.startswith("block="):
            yield names
        case Sequence(filters):
            for f in filters:
                yield from blocks(f.child, f.statements)
        case Mark() | Band() | Domain() | Filter():
            yield from blocks(tree.child, names)
        case Leaf():
            pass


def test_a_chain_shares_one_loop_and_keeps_a_register_block_each():
    plan = planned(KRONECKER.format(M=20))
    assert plan.chained
    assert len(list(blocks(plan.tree))) == 3
    (outer,) = [plan.tree.child.child] if isinstance(plan.tree.child, Mark) else []
    assert isinstance(outer, Band)
    assert outer.depth == 1
    assert isinstance(outer.child, Sequence)


def test_what_lies_between_the_products_of_a_chain_is_a_slab_of_it():
    buffers = planned(KRONECKER.format(M=20)).buffers
    assert [buffers[t].memory for t in ("S", "T")] == [Memory.ROW, Memory.ROW]
    assert [buffers[t].kept for t in ("S", "T")] == [(1, 2, 3), (1, 2, 3)]


def test_the_softmax_between_two_products_shares_their_loops():
    plan = planned(ATTENTION)
    assert plan.chained
    assert not isinstance(plan.tree.child, Sequence)  # one phase
    assert all(b.memory is not Memory.SHARED for b in plan.buffers.values())


@pytest.mark.parametrize(
    ("text", "knobs"),
    [
        (LAYERS, {}),
        (KRONECKER.format(M="M"), {}),
        (PAIR, {}),
        (KRONECKER.format(M=20), {"fusion": "min"}),
        (KRONECKER.format(M=20), {"tile": (8,)}),
    ],
    ids=["rows are all they share", "symbolic", "few turns", "never joined", "tiled"],
)
def test_other_chains_are_left_as_they_were_scheduled(text, knobs):
    assert not planned(text, **knobs).chained


@pytest.mark.parametrize("text", [KRONECKER.format(M=20), ATTENTION])
def test_chains_are_proved(text):
    plan = planned(text)
    cells = {name: buffer.cells for name, buffer in plan.buffers.items()}
    assert prove(plan.scop, plan.dependences, plan.tree, cells=cells)
