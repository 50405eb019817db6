"""Tiling, full tiles, unrolling and scheduling inside tiles, as the knobs ask for them."""

from __future__ import annotations

import re

import pytest

from tcfuse.codegen.from_isl import nests
from tcfuse.codegen.kernel_ast import Guard, Instance, instances, loops
from tcfuse.mapping.nests import finish_loops, schedule_nests
from tcfuse.mapping.tiles import tile_outermost
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly import isl
from tcfuse.poly.extents import most_iterations
from tcfuse.poly.proof import prove
from tcfuse.poly.separation import counts_tiles, full_tiles, tile_width
from tcfuse.poly.transforms import member
from tcfuse.poly.tree import Band, Domain, Mark, Sequence, below
from tests.poly.definitions import SOFTMAX, SOFTMAX_OUTER, model
from tests.targets.kernels import kernel_of

PRODUCT = """def mm(float(n0, n1) A, float(n1, n2) B) -> (float(n0, n2) C) {
  C(i, j) +=! A(i, k) * B(k, j) where i in 0:n0, j in 0:n2, k in 0:n1
}"""
SHORT = """def short(float(n0, 5, 3) X) -> (float(n0, 5, 3) Y) {
  Y(i, j, k) = X(i, j, k) + 1 where i in 0:n0, j in 0:5, k in 0:3
}"""
SCALAR = """def scalar(float X) -> (float Y) { Y() = X() + 1 }"""


def scheduled(text: str, **options: object) -> Domain:
    scop, dependences = model(text)
    chosen = MappingOptions(**options)  # type: ignore[arg-type]
    tree = schedule_nests(scop, dependences, chosen).tree
    tree = finish_loops(scop, tree, chosen)
    prove(scop, dependences, tree)
    return tree


def bands(tree: Domain) -> list[Band]:
    return [n for n in below(tree) if isinstance(n, Band)]


def marks(tree: Domain) -> list[str]:
    return [n.name for n in below(tree) if isinstance(n, Mark)]


# ---------------------------------------------------------------------- tiles


def test_each_nest_is_tiled() -> None:
    tree = scheduled(SOFTMAX, tile=(4,), fusion="min")
    assert isinstance(tree.child, Sequence)
    outer = [f.child for f in tree.child.filters]
    assert [isinstance(b, Band) and counts_tiles(b.schedule) for b in outer] == [True] * 4


@pytest.mark.parametrize(
    ("text", "sizes", "notes"),
    [
        (PRODUCT, (0, 0, 4), ("tile sizes ignored: no outermost loop has one",)),
        (PRODUCT, (0, 0), ()),
        (PRODUCT, (4,), ()),
        (SCALAR, (4,), ()),
    ],
    ids=["surplus", "none", "one", "no loop"],
)
def test_what_cannot_be_tiled_is_noted(
    text: str, sizes: tuple[int, ...], notes: tuple[str, ...]
) -> None:
    scop, dependences = model(text)
    tree = schedule_nests(scop, dependences, MappingOptions()).tree
    assert tile_outermost(tree, sizes).notes == notes


def test_the_proof_says_what_was_ignored() -> None:
    proof = kernel_of(PRODUCT, MappingOptions(tile=(0, 0, 4))).proof
    assert str(proof).endswith("; tile sizes ignored: no outermost loop has one")


def test_tiles_are_recognised() -> None:
    outer, inner = bands(scheduled(PRODUCT, tile=(32, 8)))[:2]
    rows = [outer.schedule.get_union_pw_aff(k) for k in (0, 1)]
    assert [tile_width(row) for row in rows] == [32, 8]
    assert not counts_tiles(inner.schedule)


# ---------------------------------------------------------------------- inside tiles


def test_statements_are_parted_inside_a_tile() -> None:
    together = scheduled(SOFTMAX, tile=(4,))
    apart = scheduled(SOFTMAX, tile=(4,), inner_fusion="min")
    assert isinstance(bands(together)[0].child, Band)
    inside = bands(apart)[0].child
    assert isinstance(inside, Sequence)
    assert len(inside.filters) == 4


def test_statements_meet_inside_a_tile_only() -> None:
    tree = scheduled(SOFTMAX_OUTER, tile=(4,), fusion="min", inner_fusion="max")
    assert isinstance(tree.child, Sequence)  # tiles are apart, and so stay the statements
    assert len(tree.child.filters) == 4


def test_equal_options_leave_the_points_alone() -> None:
    plain = scheduled(SOFTMAX, tile=(4,), fusion="max", inner_fusion="max")
    assert isinstance(bands(plain)[0].child, Band)


# ---------------------------------------------------------------------- full tiles


def test_full_tiles_have_code_of_their_own() -> None:
    scop, _ = model(PRODUCT)
    (block,) = nests(scop, scheduled(PRODUCT, tile=(32, 8), separate_tiles=True))
    inner = [n for loop in loops(block) for n in loop.body if isinstance(n, Guard)]
    assert inner, "no choice between full and partial tiles"
    extents = {(loop.high - loop.low).number for loop in loops(inner[0].then)}
    assert {32, 8} <= extents
    (plain,) = nests(scop, scheduled(PRODUCT, tile=(32, 8)))
    assert not any(isinstance(n, Guard) for loop in loops(plain) for n in loop.body)


def test_which_tiles_are_full() -> None:
    context = isl.new_context()
    domain = isl.union_set(context, "[n] -> { S[i] : 3 <= i < n }")
    prefix = isl.MultiUnionPwAff.read_from_str(context, "[n] -> [{ S[i] -> [floor(i / 4)] }]")
    full = full_tiles(domain, prefix)
    expected = isl.Set.read_from_str(context, "[n] -> { [t] : t >= 1 and 4t + 3 < n }")
    assert full is not None
    assert full.is_equal(expected)


def test_a_triangle_of_full_tiles() -> None:
    context = isl.new_context()
    domain = isl.union_set(context, "{ S[i, j] : 0 <= i < 64 and 0 <= j <= i }")
    text = "[{ S[i, j] -> [floor(i / 8)] }, { S[i, j] -> [floor(j / 8)] }]"
    full = full_tiles(domain, isl.MultiUnionPwAff.read_from_str(context, text))
    expected = isl.Set.read_from_str(context, "{ [a, b] : 0 <= b < a < 8 }")
    assert full is not None
    assert full.is_equal(expected)


@pytest.mark.parametrize(
    ("domain", "row"),
    [("{ S[i] : 0 <= i < 3 }", "floor(i / 4)"), ("{ S[i] : 0 <= i < 64 }", "i")],
    ids=["no full tile", "no tile"],
)
def test_where_nothing_can_be_separated(domain: str, row: str) -> None:
    context = isl.new_context()
    prefix = isl.MultiUnionPwAff.read_from_str(context, f"[{{ S[i] -> [{row}] }}]")
    assert full_tiles(isl.union_set(context, domain), prefix) is None


# ---------------------------------------------------------------------- unrolling


@pytest.mark.parametrize(
    ("most", "written"), [(1, 1), (2, 1), (3, 3), (14, 3), (15, 15), (100, 15)]
)
def test_as_many_instances_as_may_be_are_written(most: int, written: int) -> None:
    scop, _ = model(SHORT)
    (block,) = nests(scop, scheduled(SHORT, unroll=most))
    assert len(instances(block)) == written


def test_points_of_a_tile_are_unrolled() -> None:
    text = PRODUCT.replace("0:n1", "0:4").replace("n1", "4")
    whole = scheduled(text, tile=(2, 2), unroll=20)  # one identity and four updates a point
    assert marks(whole) == ["unroll", "unroll"]
    sums = scheduled(text, tile=(2, 2), unroll=9)
    assert marks(sums) == ["unroll"]


def test_what_has_no_bound_stays_a_loop() -> None:
    assert "unroll" not in marks(scheduled(PRODUCT, unroll=1024))


@pytest.mark.parametrize(
    ("domain", "outer", "row", "expected"),
    [
        ("{ S[i] : 0 <= i < 7 }", (), "i", 7),
        ("{ S[i] : 0 <= i < 7 }", (), "floor(i / 4)", 2),
        ("[n] -> { S[i] : 0 <= i < n }", (), "i", None),
        ("[n] -> { S[i] : 0 <= i < n }", ("floor(i / 4)",), "i", 4),
        ("{ S[i] : 0 <= i < 20 and i mod 5 = 2 }", (), "i", 4),
        ("{ S[i] : 1 = 0 }", (), "i", 0),
        ("{ S[i] : i = 3 }", (), "i", 1),
    ],
)
def test_how_often_a_loop_runs_at_most(
    domain: str, outer: tuple[str, ...], row: str, expected: int | None
) -> None:
    context = isl.new_context()

    def schedule(text: str) -> isl.MultiUnionPwAff:
        head = "[n] -> " if domain.startswith("[n]") else ""
        return isl.MultiUnionPwAff.read_from_str(context, f"{head}[{{ S[i] -> [{text}] }}]")

    around = [schedule(text) for text in outer]
    found = most_iterations(isl.union_set(context, domain), around, schedule(row))
    assert found == expected


# ---------------------------------------------------------------------- code


def test_loops_that_skip_iterations_count_them() -> None:
    """A loop with a step is a loop over the number of steps."""
    scop, dependences = model("def f(float(40) X) -> (float(40) Y) { Y(i) = X(i) + 1 }")
    tree = schedule_nests(scop, dependences, MappingOptions()).tree
    (band,) = bands(tree)
    five = isl.Val.int_from_si(scop.context, 5)
    scaled = member(band, 0).scale_val(five)
    (block,) = nests(scop, Domain(tree.instances, Band(scaled, True, (True,), band.child)))
    (loop,) = loops(block)
    assert (loop.high - loop.low).number == 40
    (instance,) = instances(block)
    assert isinstance(instance, Instance)
    assert str(instance.position[0]) == loop.iterator


def test_default_options_change_nothing() -> None:
    text = kernel_of(PRODUCT).source.text
    same = kernel_of(PRODUCT, MappingOptions(unroll=1, tile=(), separate_tiles=False)).source
    assert re.sub(r"k_\w+", "k", text) == re.sub(r"k_\w+", "k", same.text)


TWO_PRODUCTS = """def two(float(n0, n1) A, float(n1, n2) B, float(n2, n3) C)
    -> (float(n0, n3) D) {
  T(i, j) +=! A(i, k) * B(k, j) where i in 0:n0, j in 0:n2, k in 0:n1
  D(i, j) +=! T(i, k) * C(k, j) where i in 0:n0, j in 0:n3, k in 0:n2
}"""


def test_two_products_share_tiles_of_rows_and_part_inside() -> None:
    """The original's test of scheduling anew: at most outside, never inside."""
    tree = scheduled(TWO_PRODUCTS, fusion="max", tile=(16,), inner_fusion="min")
    (tiles, *_) = bands(tree)
    assert tree.child is tiles
    assert counts_tiles(tiles.schedule)
    assert isinstance(tiles.child, Sequence)
    assert [f.statements for f in tiles.child.filters] == [("S0_init", "S0"), ("S1_init", "S1")]
    together = scheduled(TWO_PRODUCTS, fusion="max", tile=(16,), inner_fusion="max")
    assert isinstance(bands(together)[0].child, Band)
