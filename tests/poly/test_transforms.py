"""Transformations equal isl's own where isl has them, refuse the illegal, and keep order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tcfuse.errors import IllegalTransformError
from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.proof import prove
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import (
    between,
    distribute,
    fuse,
    interchange,
    join,
    sink,
    split,
    strip_mine,
    tile,
    tile_member,
)
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Sequence, Tree
from tcfuse.poly.tree_isl import from_isl, to_isl, to_yaml
from tests.poly.definitions import ALL, LAYER_NORM, POOL, ROW_SUM, SOFTMAX_OUTER, model

PRODUCT = """def mm(float(n0, n1) A, float(n1, n2) B) -> (float(n0, n2) C) {
  C(i, j) +=! A(i, k) * B(k, j) where i in 0:n0, j in 0:n2, k in 0:n1
}"""
PROGRAMS = {**ALL, "product": PRODUCT}


def scheduled(text: str, fusion: str = "preserve") -> tuple[Scop, Dependences, Domain]:
    scop, dependences = model(text)
    return scop, dependences, compute_schedule(scop, dependences, fusion=fusion).tree


def outermost(tree: Tree) -> Band:
    """The first band of a tree."""
    match tree:
        case Band():
            return tree
        case Sequence(filters):
            return outermost(filters[0].child)
        case Domain():
            return outermost(tree.child)
        case _:
            raise AssertionError("no band")


# ---------------------------------------------------------------------- isl's own


def product_node() -> tuple[Domain, isl.ScheduleNode]:
    """A product's tree, and isl's band of two loops."""
    _, _, tree = scheduled(PRODUCT)
    return tree, to_isl(tree).get_root().child(0)


def same_order(tree: Domain, node: isl.ScheduleNode) -> bool:
    ours, theirs = to_isl(tree).get_map(), node.get_schedule().get_map()
    domain = tree.instances
    return bool(ours.intersect_domain(domain).is_equal(theirs.intersect_domain(domain)))


@settings(deadline=None, max_examples=20)
@given(st.tuples(st.integers(1, 40), st.integers(1, 40)), st.booleans(), st.booleans())
def test_tile_agrees_with_isl(sizes: tuple[int, int], scale: bool, shift: bool) -> None:
    tree, node = product_node()
    context = node.get_ctx()
    context.set_tile_scale_tile_loops(int(scale))
    context.set_tile_shift_point_loops(int(shift))
    assert isinstance(tree.child, Band)
    ours = replace(tree, child=tile(tree.child, sizes, scale=scale, shift=shift))
    space = node.band_get_space()
    widths = isl.multi_val(space, sizes)
    assert same_order(ours, node.band_tile(widths))


def test_split_agrees_with_isl() -> None:
    tree, node = product_node()
    assert isinstance(tree.child, Band)
    ours = replace(tree, child=split(tree.child, 1))
    theirs = from_isl(node.band_split(1).get_schedule().get_root())
    assert to_yaml(ours) == to_yaml(theirs)


def test_sink_agrees_with_isl() -> None:
    scop, dependences, tree = scheduled(PRODUCT)
    node = to_isl(tree).get_root().child(0)
    assert isinstance(tree.child, Band)
    ours = replace(tree, child=sink(tree.child, dependences.all))
    assert same_order(ours, node.band_sink())
    prove(scop, dependences, ours)


# ---------------------------------------------------------------------- what each one makes


def members(band: Band) -> list[str]:
    """Each member of a band, as it is written for one statement."""
    rows = [band.schedule.get_union_pw_aff(k) for k in range(band.depth)]
    return [str(isl.pieces_of(row)[0]).partition("[(")[2].partition(")] ")[0] for row in rows]


def test_a_size_of_zero_leaves_a_member_to_the_points() -> None:
    _, _, tree = scheduled(SOFTMAX_OUTER)
    band = outermost(tree)
    tiled = tile(band, (0, 32, 8, 4))
    assert members(tiled) == ["floor((k)/32)"]
    assert isinstance(tiled.child, Band)
    assert members(tiled.child) == members(band)
    assert tiled.coincident == (True,)


def test_a_mined_strip_is_counted_right_before_its_points() -> None:
    band = outermost(scheduled(SOFTMAX_OUTER)[2])
    assert members(strip_mine(band, 1, 16)) == ["i", "floor((k)/16)", "k"]
    assert members(tile_member(band, 1, 16)) == ["floor((k)/16)", "i", "k"]


def test_join_undoes_split() -> None:
    _, dependences, tree = scheduled(PRODUCT)
    band = outermost(tree)
    again = join(split(band, 1), dependences.all)
    assert (
        to_yaml(replace(tree, child=again)).splitlines()[2:]
        == (to_yaml(replace(tree, child=replace(again, child=band.child))).splitlines()[2:])
    )
    assert (again.permutable, again.coincident) == (band.permutable, band.coincident)
    assert members(again) == members(band)


def test_fuse_undoes_distribute() -> None:
    scop, dependences, tree = scheduled(PRODUCT)
    band = outermost(tree)
    first, second = distribute(band, dependences.all).filters
    again = fuse(first, second, dependences.all).child
    assert isinstance(again, Band)
    assert (again.permutable, again.coincident) == (True, (True, True))
    prove(scop, dependences, replace(tree, child=again))


# ---------------------------------------------------------------------- refusals


REVERSED = """def f(float(n0) X) -> (float(n0) Y) {
  T(i) = X(i) where i in 0:n0
  Y(i) = T(n0 - 1 - i) where i in 0:n0
}"""


def two_bands() -> tuple[Filter, Filter, Dependences]:
    _, dependences, tree = scheduled(REVERSED)
    assert isinstance(tree.child, Sequence)
    first, second = tree.child.filters
    return first, second, dependences


def test_loops_whose_values_come_too_late_are_not_fused() -> None:
    first, second, dependences = two_bands()
    with pytest.raises(IllegalTransformError, match="needs later iterations of the first"):
        fuse(first, second, dependences.all)


def test_a_loop_that_goes_back_is_not_distributed() -> None:
    """The second part feeds the first part's next iteration."""
    scop, dependences = model(ROW_SUM)
    schedule = isl.MultiUnionPwAff.read_from_str(
        scop.context, "[n0, n1] -> [{ S0_init[i] -> [(i)]; S0[i, j] -> [(i)] }]"
    )
    parts = Sequence((Filter(("S0",), Leaf()), Filter(("S0_init",), Leaf())))
    with pytest.raises(IllegalTransformError, match="carries a dependence to an earlier part"):
        distribute(Band(schedule, True, (True,), parts), dependences.all)


RIGID: list[tuple[Callable[[Band], object], str]] = [
    (lambda b: tile(replace(b, permutable=False), (4,)), "tile a band that is not permutable"),
    (lambda b: tile(b, (0, 0)), "cannot tile a band by no sizes"),
    (lambda b: tile(b, ()), "cannot tile a band by no sizes"),
    (lambda b: tile_member(replace(b, permutable=False), 0, 4), "not permutable"),
    (lambda b: interchange(replace(b, permutable=False), [1, 0]), "cannot interchange"),
    (lambda b: interchange(b, [0, 0]), "no order of 2 loops"),
    (lambda b: strip_mine(b, 0, 0), "cannot strip-mine by 0"),
    (lambda b: split(b, 0), "cannot split 2 loops after 0"),
    (lambda b: split(b, 2), "cannot split 2 loops after 2"),
    (lambda b: join(b, isl.union_map(b.schedule.get_ctx(), "{ }")), "what is not a band"),
    (
        lambda b: distribute(
            replace(b, child=Leaf()), isl.union_map(b.schedule.get_ctx(), "{}")
        ),
        "what is not a sequence",
    ),
]


@pytest.mark.parametrize(("change", "message"), RIGID, ids=[m for _, m in RIGID])
def test_what_is_illegal_is_refused(change: Callable[[Band], object], message: str) -> None:
    with pytest.raises(IllegalTransformError, match=message):
        change(outermost(scheduled(PRODUCT)[2]))


# ---------------------------------------------------------------------- chains


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.sampled_from(sorted(PROGRAMS)),
    st.sampled_from(["preserve", "max", "min"]),
    st.lists(
        st.tuples(
            st.sampled_from(
                ["tile", "split", "join", "swap", "strip", "apart", "sink", "fuse"]
            ),
            st.integers(0, 7),
            st.integers(1, 9),
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_any_chain_of_legal_steps_keeps_every_dependence(
    name: str, fusion: str, steps: list[tuple[str, int, int]]
) -> None:
    scop, dependences, tree = scheduled(PROGRAMS[name], fusion)
    for step, where, size in steps:
        chain = _Chain(step, where, size)
        everything = tuple(s.name for s in scop.statements)
        tree = replace(tree, child=chain.applied(tree.child, everything, dependences.all))
        prove(scop, dependences, tree)


class _Chain:
    """One step, tried on the node whose number is ``where``."""

    def __init__(self, step: str, where: int, size: int) -> None:
        self.step, self.left, self.size = step, where, size

    def applied(self, node: Tree, names: tuple[str, ...], pairs: isl.UnionMap) -> Tree:
        if self.left == 0:
            self.left = -1
            try:
                return self._changed(node, pairs)
            except IllegalTransformError:
                return node
        self.left -= 1
        match node:
            case Band():
                inside = pairs.eq_at_multi_union_pw_aff(node.schedule)
                return replace(node, child=self.applied(node.child, names, inside))
            case Sequence(filters):
                parts = (
                    replace(f, child=self.applied(f.child, f.statements, between(pairs, f, f)))
                    for f in filters
                )
                return Sequence(tuple(parts))
            case _:
                return node

    def _changed(self, node: Tree, pairs: isl.UnionMap) -> Tree:
        match self.step, node:
            case "tile", Band():
                return tile(node, (self.size, 0, 3))
            case "split", Band():
                return split(node, 1)
            case "join", Band():
                return join(node, pairs)
            case "swap", Band():
                return interchange(node, list(range(node.depth))[::-1])
            case "strip", Band():
                return strip_mine(node, node.depth - 1, self.size)
            case "apart", Band():
                return distribute(node, pairs)
            case "sink", Band():
                return sink(node, pairs)
            case "fuse", Sequence((first, second)):
                return fuse(first, second, pairs).child
            case _:
                return node


def test_a_chain_that_is_not_checked_would_fail() -> None:
    """The property can fail: tiling a band that only claims to be permutable is seen."""
    scop, dependences, tree = scheduled(POOL, "min")
    assert isinstance(tree.child, Sequence)
    broken = replace(tree, child=Sequence(tree.child.filters[::-1]))
    with pytest.raises(Exception, match="would reverse a dependence"):
        prove(scop, dependences, broken)


def test_layer_norm_in_tiles_is_proved() -> None:
    scop, dependences, tree = scheduled(LAYER_NORM)
    band = outermost(tree)
    prove(scop, dependences, replace(tree, child=tile(band, (64,))))
