from __future__ import annotations

import pytest

from tcfuse.mapping.order import order_members
from tcfuse.poly import isl
from tcfuse.poly.proof import prove
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Sequence, below
from tests.poly.definitions import model


def rows(tree: Domain) -> list[str]:
    """The members of each band."""
    found = []
    for node in below(tree):
        if isinstance(node, Band):
            parts = [str(node.schedule.get_union_pw_aff(k)) for k in range(node.depth)]
            found.append(" ".join(p[p.index("(") + 1 : p.index(")")] for p in parts))
    return found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Y(i, j) = X(i, j) where i in 0:8, j in 0:9", "i j"),
        ("Y(i, j) = X(i, j) where j in 0:9, i in 0:8", "i j"),
        ("Y(i, j) = B(j, i) where i in 0:8, j in 0:9", "i j"),  # 9 + 1 against 1 + 8
        ("Z(i, j) = X(j, i) where i in 0:9, j in 0:8", "j i"),  # 8 + 1 against 1 + 9
    ],
)
def test_the_longest_steps_go_outside(body: str, expected: str) -> None:
    target = body[0]
    shape = "8, 9" if target == "Y" else "9, 8"
    params = "float(8, 9) X, float(9, 8) B"
    scop, dependences = model(f"def f({params}) -> (float({shape}) {target}) {{ {body} }}")
    tree = order_members(scop, compute_schedule(scop, dependences, fusion="min").tree)
    assert rows(tree) == [expected]
    prove(scop, dependences, tree)


def test_reductions_go_inside() -> None:
    scop, _ = model("""def f(float(n0, n1) X) -> (float(n1) Y) {
      Y(j) +=! X(i, j) where j in 0:n1, i in 0:n0
    }""")
    text = "[n0, n1] -> [{ S0[j, i] -> [i] }, { S0[j, i] -> [j] }]"
    schedule = isl.MultiUnionPwAff.read_from_str(scop.context, text)
    update = isl.union_set(
        scop.context, "[n0, n1] -> { S0[j, i] : 0 <= j < n1 and 0 <= i < n0 }"
    )
    band = Band(schedule, True, (False, True), Leaf())
    tree = order_members(scop, Domain(update, Sequence((Filter(("S0",), band),))))
    assert rows(tree) == ["j i"]  # although i steps farther
    (ordered,) = [n for n in below(tree) if isinstance(n, Band)]
    assert ordered.coincident == (True, False)


def test_positions_that_depend_on_data_go_outside() -> None:
    scop, dependences = model("""def f(float(n0, 64) X, int64(n1) I) -> (float(64, n1) Y) {
      Y(j, i) = X(I(i), j) where j in 0:64, i in 0:n1
    }""")
    tree = order_members(scop, compute_schedule(scop, dependences, fusion="min").tree)
    assert rows(tree) == ["i j"]


def test_a_band_that_is_not_permutable_stays() -> None:
    scop, dependences = model("""def f(float(9, 8) X) -> (float(8, 9) Y) {
      Y(i, j) = X(j, i) where i in 0:8, j in 0:9
    }""")
    tree = compute_schedule(scop, dependences, fusion="min").tree
    band = tree.child
    assert isinstance(band, Band)
    fixed = Band(band.schedule, False, band.coincident, band.child)
    assert order_members(scop, Domain(scop.domain, fixed)).child is not None
    assert rows(order_members(scop, Domain(scop.domain, fixed))) == ["i j"]


def test_loops_that_run_once_are_dropped() -> None:
    scop, dependences = model("""def f(float(1, 9) X) -> (float(1, 9) Y, float(1) Z) {
      Y(i, j) = X(i, j) where i in 0:1, j in 0:9
      Z(i) +=! Y(i, j) where i in 0:1, j in 0:9
    }""")
    tree = order_members(scop, compute_schedule(scop, dependences).tree)
    assert "i" not in " ".join(rows(tree))
    assert "j" in " ".join(rows(tree))
    prove(scop, dependences, tree)


def test_loops_that_run_once_for_some_sizes_stay() -> None:
    scop, dependences = model("""def f(float(n0, 9) X) -> (float(n0, 9) Y) {
      Y(i, j) = X(i, j) where i in 0:n0, j in 0:9
    }""")
    assert rows(order_members(scop, compute_schedule(scop, dependences).tree)) == ["i j"]
