"""What statements of a tree have in common: the loops around them, the elements they touch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tcfuse.poly import isl
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import member
from tcfuse.poly.tree import Band, Mark, Sequence, Tree


@dataclass(frozen=True, slots=True, eq=False)
class SharedLoop:
    """A loop that runs several statements.

    Attributes:
        row: Which iteration each instance runs in.
        marks: The kinds of the marks right above the loop's band.
    """

    row: isl.MultiUnionPwAff
    marks: frozenset[str]


def touched_elements(scop: Scop) -> Mapping[str, isl.UnionMap]:
    """For each tensor, every instance that touches it with the elements it touches."""
    found: defaultdict[str, isl.UnionMap] = defaultdict(
        lambda: isl.union_map(scop.context, "{ }")
    )
    for union in (scop.reads, scop.writes):
        for access in isl.maps_of(union.intersect_domain(scop.domain)):
            tensor = access.get_tuple_name(isl.dim_type.out).removeprefix("T_")
            found[tensor] = found[tensor].union(isl.UnionMap.from_map(access))
    return found


def shared_loops(
    tree: Tree, users: Collection[str], marks: frozenset[str] = frozenset()
) -> list[SharedLoop]:
    """The loops around all of ``users``, outermost first."""
    match tree:
        case Mark(_, child):
            return shared_loops(child, users, marks | {tree.kind})
        case Band():
            own = [SharedLoop(member(tree, k), marks) for k in range(tree.depth)]
            return [*own, *shared_loops(tree.child, users)]
        case Sequence():
            part = part_with(tree, users)
            return [] if part is None else shared_loops(part, users)
        case _:
            return []


def in_one_phase(tree: Tree, users: Collection[str]) -> bool:
    """Whether no outermost sequence, whose parts run one after the other, divides ``users``."""
    if not isinstance(tree, Sequence):
        return True
    part = part_with(tree, users)
    return part is not None and in_one_phase(part, users)


def part_with(sequence: Sequence, users: Collection[str]) -> Tree | None:
    """The part of a sequence that runs all of ``users``; ``None`` when no one does."""
    wanted = set(users)
    return next((f.child for f in sequence.filters if wanted <= set(f.statements)), None)
