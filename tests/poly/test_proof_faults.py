"""Every kind of fault, planted in a kernel that was right, is seen by the proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest

from tcfuse.errors import UnsupportedError
from tcfuse.mapping.accumulators import with_accumulators
from tcfuse.mapping.lanes import LANES, PARALLEL, choose_lanes, mark_parallel
from tcfuse.mapping.nests import finish_loops, schedule_nests
from tcfuse.mapping.order import order_members
from tcfuse.mapping.storage import Memory, place_temporaries
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly import isl
from tcfuse.poly.cells import Cells
from tcfuse.poly.dependences import Dependences, compute_dependences
from tcfuse.poly.proof import prove
from tcfuse.poly.scop import Scop, extract_scop
from tcfuse.poly.transforms import joined, member
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree, rewrite
from tests.poly.definitions import PAD, SOFTMAX, checked_of

PRODUCT = """def mm(float(n0, n1) A, float(n1, n2) B) -> (float(n0, n2) C) {
  C(i, j) +=! A(i, k) * B(k, j) where i in 0:n0, j in 0:n2, k in 0:n1
}"""
SUMS = """def sums(float(n0, 64) X) -> (float(n0) Y) {
  T(i, j) = X(i, j) * 2 where i in 0:n0, j in 0:64
  Y(i) +=! T(i, j) where i in 0:n0, j in 0:64
}"""
TILED = MappingOptions(tile=(16, 8), separate_tiles=True, unroll=8)
DEFAULT = MappingOptions()
TEXTS = {"softmax": SOFTMAX, "product": PRODUCT, "sums": SUMS, "pad": PAD}


@dataclass(frozen=True, eq=False)
class Kernel:
    """All that is proved of a kernel."""

    scop: Scop
    dependences: Dependences
    tree: Domain
    cells: Mapping[str, Cells]
    reassociate: bool = True

    def prove(self) -> None:
        prove(
            self.scop,
            self.dependences,
            self.tree,
            reassociate=self.reassociate,
            cells=self.cells,
        )


def kernel(text: str, options: MappingOptions = DEFAULT) -> Kernel:
    """A definition, mapped and stored as the target does it."""
    scop = extract_scop(with_accumulators(checked_of(text)))
    dependences = compute_dependences(scop)
    tree = order_members(scop, schedule_nests(scop, dependences, options).tree)
    tree = choose_lanes(scop, dependences, tree, reassociate=options.reassociate)
    tree = finish_loops(scop, mark_parallel(tree), options)
    buffers = place_temporaries(scop, dependences, tree).values()
    cells = {b.tensor: b.cells for b in buffers if b.memory is not Memory.SHARED}
    return Kernel(scop, dependences, tree, cells)


Rule = Callable[[Tree], Tree | None]


def changed(right: Kernel, rule: Rule) -> Kernel:
    """``right`` with some nodes of its tree replaced; at least one is."""
    hit: list[Tree] = []

    def noted(node: Tree) -> Tree | None:
        made = rule(node)
        if made is not None:
            hit.append(made)
        return made

    tree = rewrite(right.tree, noted)
    assert hit, "nothing was changed"
    assert isinstance(tree, Domain)
    return replace(right, tree=tree)


def carrying(band: Band) -> bool:
    """Whether a band is the loop of a reduction."""
    return not any(band.coincident)


# ---------------------------------------------------------------------- faults of the tree


def reversed_loop(node: Tree) -> Tree | None:
    match node:
        case Band() if carrying(node):
            return replace(node, schedule=node.schedule.neg())
    return None


def lost_loop(node: Tree) -> Tree | None:
    match node:
        case Band(child=Leaf()) if carrying(node):
            return Leaf()
    return None


def parallel_reduction(node: Tree) -> Tree | None:
    match node:
        case Band() if carrying(node):
            return Mark(PARALLEL, node)
    return None


def block_of_reduction(node: Tree) -> Tree | None:
    match node:
        case Band() if carrying(node):
            return Mark("block=4", node)
    return None


def swapped(node: Tree) -> Tree | None:
    match node:
        case Sequence(filters):
            return Sequence(filters[::-1])
    return None


def without_last_part(node: Tree) -> Tree | None:
    match node:
        case Sequence(filters) if len(filters) > 2:
            return Sequence(filters[:-1])
    return None


def part_twice(node: Tree) -> Tree | None:
    match node:
        case Sequence(filters):
            return Sequence((*filters, filters[-1]))
    return None


def everything_at_once(node: Tree) -> Tree | None:
    match node:
        case Sequence(filters) if all(isinstance(f.child, Leaf) for f in filters):
            return Leaf()
        case Sequence():
            return Leaf()
    return None


def strange_mark(node: Tree) -> Tree | None:
    match node:
        case Mark(name, child) if name == LANES:
            return Mark("warp", child)
    return None


def forgotten_statement(node: Tree) -> Tree | None:
    match node:
        case Band() if "S0_init" in str(node.schedule) and "S1" in str(node.schedule):
            keep = isl.part_of(node.schedule.domain(), ("S0", "S1"))
            return replace(node, schedule=node.schedule.intersect_domain(keep))
    return None


def wrong_origin(node: Tree) -> Tree | None:
    """The reduction in tiles whose points are counted from another tile's origin."""
    match node:
        case Band(child=Leaf()) if carrying(node) and node.depth == 1:
            eight = isl.Val.int_from_si(node.schedule.get_ctx(), 8)
            row = member(node, 0)
            tiles = row.scale_down_val(eight).floor()
            shifted = row.scale_down_val(isl.Val.int_from_si(row.get_ctx(), 5)).floor()
            points = row.sub(shifted.scale_val(eight))
            return Band(joined([tiles, points]), True, (False, False), Leaf())
    return None


def without_instances(right: Kernel) -> Kernel:
    """The first iteration of everything does not run."""
    gone = isl.union_set(right.scop.context, "{ S0[0, j, k] }")
    kept = right.tree.instances.subtract(gone)
    return replace(right, tree=replace(right.tree, instances=kept))


def with_more_instances(right: Kernel) -> Kernel:
    more = isl.union_set(right.scop.context, "{ S0[0, 0, -1] }")
    return replace(right, tree=replace(right.tree, instances=right.tree.instances.union(more)))


TREE_FAULTS: list[tuple[str, Kernel, Rule, str]] = [
    (f"{name} of {which}", right, rule, message)
    for which, right in (
        ("a product", kernel(PRODUCT)),
        ("a tiled product", kernel(PRODUCT, TILED)),
    )
    for name, rule, message in (
        ("reversed loop", reversed_loop, "would reverse a dependence"),
        ("lost loop", lost_loop, "dependent instances run at one point in time"),
        ("parallel reduction", parallel_reduction, "a parallel loop carries a dependence"),
        ("block of a reduction", block_of_reduction, "a register block carries a dependence"),
        ("swapped parts", swapped, "would reverse a dependence"),
        ("missing part", without_last_part, "the schedule runs S1 never"),
        ("part twice", part_twice, "the schedule runs S1 2 times"),
        ("no order", everything_at_once, "dependent instances run at one point in time"),
        ("unknown mark", strange_mark, "nothing is known of a loop marked 'warp'"),
        ("forgotten statement", forgotten_statement, "does not say when some instance runs"),
        ("wrong tile origin", wrong_origin, "would reverse a dependence"),
    )
]


@pytest.mark.parametrize(
    ("right", "rule", "message"),
    [fault[1:] for fault in TREE_FAULTS],
    ids=[fault[0] for fault in TREE_FAULTS],
)
def test_a_fault_of_the_tree_is_seen(right: Kernel, rule: Rule, message: str) -> None:
    right.prove()
    with pytest.raises(UnsupportedError, match=message):
        changed(right, rule).prove()


@pytest.mark.parametrize("options", [DEFAULT, TILED], ids=["plain", "tiled"])
@pytest.mark.parametrize("plant", [without_instances, with_more_instances])
def test_every_instance_runs_once(
    plant: Callable[[Kernel], Kernel], options: MappingOptions
) -> None:
    right = kernel(PRODUCT, options)
    with pytest.raises(UnsupportedError, match="does not run every instance once"):
        plant(right).prove()


# ---------------------------------------------------------------------- lanes


def test_lanes_may_not_race() -> None:
    """Values that travel between lanes, which run statement by statement."""
    text = """def f(float(9) X) -> (float(9) Y) {
      Y(i) = X(i) where i in 0:9
      Z(i) = Y(i) where i in 0:9
      Y(i) = Z(8 - i) where i in 0:9
    }"""
    scop = extract_scop(checked_of(text))
    dependences = compute_dependences(scop)
    rows = "[{ S0[i] -> [i]; S1[i] -> [i]; S2[i] -> [i + 9] }]"
    schedule = isl.MultiUnionPwAff.read_from_str(scop.context, rows)
    parts = Sequence(tuple(Filter((s.name,), Leaf()) for s in scop.statements))
    serial = Domain(scop.domain, Band(schedule, True, (False,), parts))
    prove(scop, dependences, serial)
    with pytest.raises(UnsupportedError, match="a lanes loop carries a dependence"):
        prove(scop, dependences, replace(serial, child=Mark(LANES, serial.child)))


def test_accumulators_may_not_race_when_numerics_are_strict() -> None:
    right = kernel(SUMS)
    right.prove()
    with pytest.raises(UnsupportedError, match="a lanes loop carries a dependence"):
        replace(right, reassociate=False).prove()


# ---------------------------------------------------------------------- accesses and outputs


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("product", "A(i, k)", "A(i, k + 1)", "an access of A may leave the tensor"),
        ("product", "B(k, j)", "B(j, k)", "an access of B may leave the tensor"),
        ("softmax", "j in 0:n1\n  Y", "j in 0:n1 + 1\n  Y", "may leave the tensor"),
        ("pad", "j >= 2 && j - 2 < 9 ? X(i, j - 2) : 0.0", "X(i, j - 2)", "may leave"),
        ("pad", "j in 0:12", "j in 0:11", "not every element of Y is written"),
        ("pad", "j in 0:12", "j in 1:12", "not every element of Y is written"),
        ("sums", "T(i, j) where i in 0:", "T(i, j) where i in 1:", "Y_acc is read before"),
    ],
    ids=[
        "beyond the end",
        "subscripts swapped",
        "range too long",
        "guard removed",
        "last element missing",
        "first element missing",
        "reduction of fewer rows",
    ],
)
def test_a_fault_of_the_definition_is_seen(name: str, old: str, new: str, message: str) -> None:
    text = TEXTS[name]
    assert old in text
    kernel(text).prove()
    with pytest.raises(UnsupportedError, match=message):
        kernel(text.replace(old, new)).prove()


# ---------------------------------------------------------------------- storage


@pytest.mark.parametrize(
    ("text", "options", "tensor", "cells", "message"),
    [
        (SUMS, DEFAULT, "T", Cells((), True), None),
        (SUMS, DEFAULT, "T", Cells((), False), "two values of T would share a cell"),
        (SUMS, MappingOptions(fusion="min"), "T", Cells((1,), False), "another part"),
        (SOFTMAX, DEFAULT, "E", Cells((), False), "two values of E would share a cell"),
        (SOFTMAX, DEFAULT, "E", Cells((), True), "two values of E would share a cell"),
        (SOFTMAX, DEFAULT, "E", Cells((1,), False), None),
        (SOFTMAX, DEFAULT, "E", Cells((0,), False), "two values of E would share a cell"),
        (SOFTMAX, DEFAULT, "M", Cells((), False), None),
        (SOFTMAX, MappingOptions(tile=(16,)), "M", Cells((), False), None),
        (PRODUCT, TILED, "C_acc", Cells((), False), "two values of C_acc would share a cell"),
    ],
    ids=[
        "a register for each lane",
        "one register for all lanes",
        "a row across parts",
        "a register for a row",
        "a register of each lane for a row",
        "a row",
        "the wrong dimension",
        "a register",
        "a register inside tiles",
        "lanes forgotten",
    ],
)
def test_a_buffer_is_as_large_as_what_lives(
    text: str, options: MappingOptions, tensor: str, cells: Cells, message: str | None
) -> None:
    right = kernel(text, options)
    right.prove()
    planted = replace(right, cells={**right.cells, tensor: cells})
    if message is None:
        planted.prove()
        return
    with pytest.raises(UnsupportedError, match=message):
        planted.prove()


def test_threads_share_no_private_buffer() -> None:
    right = kernel(SUMS)
    moved = changed(right, reduction_in_parallel)
    with pytest.raises(UnsupportedError, match="a parallel loop carries a dependence"):
        moved.prove()


def reduction_in_parallel(node: Tree) -> Tree | None:
    match node:
        case Mark(name, band) if name == LANES:
            return Mark(PARALLEL, band)
    return None
