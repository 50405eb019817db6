"""Register blocks: around which loops, how large, and only where nothing is carried."""

import pytest

from tcfuse.mapping.blocking import GROUPS, best_rows, block_reductions, block_sizes
from tcfuse.mapping.lanes import LANES, choose_lanes
from tcfuse.mapping.order import order_members
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.tree import Domain, Mark, below
from tests.mapping.mapped import iterators
from tests.poly.definitions import checked_of, model

PRODUCT = """
def f(float(M, K) A, float(K, N) B) -> (float(M, N) C) {
  T(m, n) +=! A(m, k) * B(k, n)
  C(m, n) = T(m, n)
}
"""
# each row is normalised by its own sum, which takes a row buffer
ROWS = """
def f(float(M, K) A, float(K, 32) B) -> (float(M, 32) C) {
  T(m, n) +=! A(m, k) * B(k, n)
  S(m) +=! T(m, n)
  C(m, n) = T(m, n) / S(m)
}
"""


def blocked(text: str, rows: int = 0, vectors: int = GROUPS) -> Domain:
    scop, dependences = model(checked_of(text))
    tree = order_members(scop, compute_schedule(scop, dependences).tree)
    lanes = choose_lanes(scop, dependences, tree)
    return block_reductions(scop, dependences, lanes, rows=rows, vectors=vectors)


def marks(tree: Domain) -> list[str]:
    return [node.name for node in below(tree) if isinstance(node, Mark)]


def test_rows_of_a_product_share_each_vector():
    assert iterators(blocked(PRODUCT), "block=6+2+1") == {"S0": "m", "S0_init": "m", "S1": "m"}


@pytest.mark.parametrize(
    ("extent", "name"),
    [
        (1, None),
        (2, "block=2"),
        (5, "block=5"),
        (6, "block=6"),
        (26, "block=6+2"),
        (12, "block=6"),
    ],
)
def test_blocks_fit_the_number_of_rows(extent: int, name: str | None):
    found = marks(blocked(PRODUCT.replace("M", str(extent))))
    assert found == ([name, LANES] if name else [LANES])


def test_the_number_of_rows_can_be_asked_for():
    assert marks(blocked(PRODUCT, rows=4)) == ["block=4+2+1", LANES]


@pytest.mark.parametrize(
    ("vectors", "name"),
    [(1, "block=6+2+1"), (2, "block=6+2+1"), (3, "block=4+2+1"), (4, "block=3+2+1")],
)
def test_more_vectors_leave_registers_for_fewer_rows(vectors: int, name: str):
    assert marks(blocked(PRODUCT, vectors=vectors)) == [name, LANES]
    assert marks(blocked(PRODUCT, rows=1)) == [LANES]


def test_rows_with_a_buffer_each_run_one_after_the_other():
    assert not any(block_sizes(name) for name in marks(blocked(ROWS)))


def test_a_sum_without_a_second_operand_has_nothing_to_share():
    text = """
def f(float(M, K, N) A) -> (float(M, N) C) {
  T(m, n) +=! A(m, k, n)
  C(m, n) = T(m, n)
}
"""
    assert not any(block_sizes(name) for name in marks(blocked(text)))


@pytest.mark.parametrize(
    ("extent", "rows"), [(None, 6), (26, 6), (8, 4), (7, 4), (25, 5), (6, 6)]
)
def test_the_best_block_wastes_the_fewest_cycles(extent: int | None, rows: int):
    assert best_rows(extent, 6) == rows


def test_other_marks_have_no_block_sizes():
    assert block_sizes("lanes") == ()
    assert block_sizes("block=6+2+1") == (6, 2, 1)
