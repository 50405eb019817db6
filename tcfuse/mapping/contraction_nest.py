"""The nest of a contraction: lanes, a register block, and copies where they are needed.

Without copies the lanes are innermost, and a register block of rows is around them.  A copy is
made of what one iteration of the lanes loop reads, so there the lanes are outside the rows, and
``mapping.storage`` finds that the copy takes one panel: lane by lane, a row for each ``k``.

Rewrite:
    band [m, n] / ...
    ->  band [floor(m / 6)] / block=6 [m] / lanes [n] / ...

    sequence (copy: band [k, n]), (rest: band [m, n] / ...)
    ->  lanes [n] / sequence (copy: band [k]), (rest: band [floor(m / 6)] / block=6 [m] / ...)

Source: "The Next 700 Accelerated Layers", section 4.5 (promotion to shared memory).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcfuse.mapping.blocking import ACCUMULATORS, GROUPS, Room, shares_rows, with_rows
from tcfuse.mapping.lanes import LANES
from tcfuse.mapping.packing import Nest
from tcfuse.mapping_options import DEEP
from tcfuse.poly.alignment import as_schedule
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.rows import iterator_of
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import joined, member
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Tree
from tcfuse.poly.tree import Sequence as SequenceNode
from tcfuse.poly.volume import fixed_extent


def place_contractions(
    scop: Scop,
    dependences: Dependences,
    tree: Domain,
    nests: Sequence[Nest],
    *,
    rows: int = 0,
    vectors: int = GROUPS,
    depth: int = DEEP,
    inside: bool = False,
) -> Domain:
    """``tree`` with the decisions of ``nests``, where its loops allow them.

    A copy that does not fit stays in front, and copies the whole tensor.

    Args:
        scop: What the tree schedules.
        dependences: What was respected.
        tree: Scheduled, with nothing chosen yet.
        nests: What was decided.
        rows: Iterations of a register block; 0 chooses by the loop's extent, 1 makes none.
        vectors: Side by side along the lanes, which all rows of a block have room for.
        depth: Loops that may be around a copy.
        inside: Whether nests may lie inside loops that they share (``mapping.chains``).
    """
    place = _placed_inside if inside else _placed
    for nest in nests:
        room = Room(rows, max(ACCUMULATORS // vectors, 1))
        placed = replace(tree, child=place(scop, tree.child, nest, room, depth))
        if shares_rows(scop, dependences, placed):
            alone = Room(1, 1)
            placed = replace(tree, child=place(scop, tree.child, nest, alone, depth))
        tree = placed
    return tree


def _placed_inside(scop: Scop, top: Tree, nest: Nest, room: Room, depth: int) -> Tree:
    """``top`` with one nest in it, which may lie inside loops of several."""
    match top:
        case SequenceNode(filters):
            home = next((f for f in filters if nest.update in f.statements), None)
            if home is None:
                return top
            if set(nest.copies) <= set(home.statements) and _is_shared(home.child, nest):
                child = _placed_inside(scop, home.child, nest, room, depth)
                return SequenceNode(
                    tuple(replace(f, child=child) if f is home else f for f in filters)
                )
            return _placed(scop, top, nest, room, depth)
        case Band() if _is_shared(top, nest):
            return replace(top, child=_placed_inside(scop, top.child, nest, room, depth))
        case _:
            return _placed(scop, top, nest, room, depth)


def _is_shared(tree: Tree, nest: Nest) -> bool:
    """Whether a tree is loops around a sequence in which the nest has loops of its own."""
    return (
        isinstance(tree, Band)
        and isinstance(tree.child, SequenceNode)
        and any(
            nest.update in f.statements
            and isinstance(f.child, Band)
            and all(f.child.coincident)
            for f in tree.child.filters
        )
    )


def _placed(scop: Scop, top: Tree, nest: Nest, room: Room, depth: int) -> Tree:
    """The outermost tree with one nest in it."""
    everything = Filter(tuple(s.name for s in scop.statements), top)
    filters = top.filters if isinstance(top, SequenceNode) else (everything,)
    home = next(f for f in filters if nest.update in f.statements)
    copies = [f for f in filters if f.statements and set(f.statements) <= set(nest.copies)]
    if not isinstance(home.child, Band) or len(copies) != len(nest.copies):
        return top
    made = _Placement(scop, nest, home.statements, home.child, room, depth).tree()
    if made is None:
        return top
    names = (*nest.copies, *home.statements)
    kept = tuple(Filter(names, made) if f is home else f for f in filters if f not in copies)
    return made if len(kept) == 1 else SequenceNode(kept)


@dataclass(frozen=True, slots=True, eq=False)
class _Placement:
    """The outermost band around a contraction, and what is decided about it."""

    scop: Scop
    nest: Nest
    statements: tuple[str, ...]
    band: Band
    room: Room
    depth: int

    def tree(self) -> Tree | None:
        """The new nest; ``None`` when the loops do not allow it."""
        update, lanes = self.nest.update, self.nest.lanes
        rows = [self.row(k) for k in range(self.band.depth)]
        follows = [row and row[update] for row in rows]
        if lanes not in follows or not self.band.permutable or not all(self.band.coincident):
            return None
        free = [k for k, i in enumerate(follows) if i != lanes]
        if not self.nest.copies:
            lane = Band(member(self.band, follows.index(lanes)), True, (True,), self.band.child)
            return self.blocked(free, Mark(LANES, lane))
        copied = [set(self.scop.statement(c).iterators) for c in self.nest.copies]
        shared = [k for k in free if all(follows[k] in c for c in copied)]
        inner = [k for k in free if k not in shared]
        outer = [self.with_copies(rows[k]) for k in (*shared, follows.index(lanes))]
        known = [row for row in outer if row is not None]
        if len(known) < len(outer) or len(outer) > self.depth:
            return None
        fixed = {row[update] for row in known}
        parts = [Filter((c,), self.copy_loops(c, fixed)) for c in self.nest.copies]
        parts.append(Filter(self.statements, self.blocked(inner, self.band.child)))
        lane = Band(
            as_schedule(self.scop, known[-1:]), True, (True,), SequenceNode(tuple(parts))
        )
        nest: Tree = Mark(LANES, lane)
        if not shared:
            return nest
        return Band(as_schedule(self.scop, known[:-1]), True, (True,) * len(shared), nest)

    def row(self, position: int) -> dict[str, str] | None:
        """The iterator that each statement follows in one member, if it is exactly one."""
        found = {
            name: iterator_of(self.band, position, self.scop.statement(name))
            for name in self.statements
        }
        known = {name: iterator for name, iterator in found.items() if iterator is not None}
        return known if len(known) == len(found) else None

    def with_copies(self, row: dict[str, str] | None) -> dict[str, str] | None:
        """The row with the copies, whose iterators have the reader's names."""
        if row is None:
            return None
        return {**row, **dict.fromkeys(self.nest.copies, row[self.nest.update])}

    def copy_loops(self, name: str, fixed: set[str]) -> Tree:
        """The loops of a copy inside the shared ones."""
        inner = [i for i in self.scop.statement(name).iterators if i not in fixed]
        if not inner:
            return Leaf()
        schedule = as_schedule(self.scop, [{name: i} for i in inner])
        return Band(schedule, True, (True,) * len(inner), Leaf())

    def blocked(self, free: Sequence[int], child: Tree) -> Tree:
        """Members of the band over ``child``, with a register block innermost."""
        if not free:
            return child
        schedule = joined([member(self.band, k) for k in free])
        band = Band(schedule, True, (True,) * len(free), child)
        update = self.scop.statement(self.nest.update)
        follows = [iterator_of(band, k, update) for k in range(band.depth)]
        if self.nest.rows not in follows or self.room.rows == 1:
            return band
        extent = fixed_extent(update, self.nest.rows)
        size = self.room.rows_of(extent, self.room.most)
        return with_rows(band, follows.index(self.nest.rows), size, extent, child)
