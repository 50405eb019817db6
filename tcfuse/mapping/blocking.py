"""Register blocks: iterations of an outer loop that run side by side inside a reduction.

A product ``C(m, n) += A(m, k) * B(k, n)`` with lanes along ``n`` loads a vector of ``B`` for
one multiplication.  Six rows ``m`` side by side use each vector six times and keep six chains
of additions busy; their sums stay in registers.  The loop is strip-mined; the points of a strip
are marked ``block=6``, and code generation runs them together, statement by statement.  That
is legal exactly where lanes are: the loop carries no dependence.

Source: "The Next 700 Accelerated Layers", section 4.5 (private promotion after unrolling);
Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality",
TOMS 41(3), 2015 (the micro-kernel).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

from tcfuse.mapping.access import touches
from tcfuse.mapping.lanes import LANES
from tcfuse.mapping.storage import Memory, place_temporaries
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.rows import determines, iterator_of
from tcfuse.poly.scop import Scop, Statement
from tcfuse.poly.transforms import joined, member, tile_member
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree, below
from tcfuse.poly.volume import fixed_extent
from tcfuse.tc.ast import walk

BLOCK = "block="
ACCUMULATORS = 12  # vector registers that hold sums; the other four hold operands (AVX2 has 16)
GROUPS = 2  # vectors side by side along the lanes
MOST_ROWS = 6
MOST_WORK = 160  # operations of all statements in a block, which is copied for each of its rows
LATENCY = 4.0  # cycles of a multiply-add, of which two start in each


@dataclass(frozen=True, slots=True)
class Room:
    """How many rows a block has.

    Attributes:
        rows: As many; 0 chooses by the loop's extent, 1 makes no blocks.
        most: Rows of one sum for which there are registers.
    """

    rows: int
    most: int

    def rows_of(self, extent: int | None, most: int) -> int:
        """Rows of blocks of a loop, of which there may be ``most`` where that is open."""
        return min(self.rows or best_rows(extent, most), extent or self.rows or most)


def block_sizes(mark: str) -> tuple[int, ...]:
    """The sizes in a mark ``block=6+2``; none in another one."""
    if not mark.startswith(BLOCK):
        return ()
    return tuple(int(size) for size in mark.removeprefix(BLOCK).split("+"))


def block_reductions(
    scop: Scop,
    dependences: Dependences,
    tree: Domain,
    *,
    rows: int = 0,
    vectors: int = GROUPS,
) -> Domain:
    """``tree`` with a register block around each lanes loop that holds a reduction.

    Args:
        scop: What the tree schedules.
        dependences: What was respected.
        tree: With lanes chosen.
        rows: Iterations of a block; 0 chooses by the loop's extent, 1 makes none.
        vectors: Side by side along the lanes, which all rows of a block have room for.
    """
    names = tuple(s.name for s in scop.statements)
    if rows == 1:
        return tree
    room = Room(rows, max(ACCUMULATORS // vectors, 1))
    blocked = replace(tree, child=_blocked(scop, tree.child, names, room))
    return tree if shares_rows(scop, dependences, blocked) else blocked


def shares_rows(scop: Scop, dependences: Dependences, tree: Domain) -> bool:
    """Whether iterations that a register block runs together would share a row buffer.

    One that is read outside of the block too has a part for each of them.
    """
    inside = list(_inside_blocks(tree.child, tuple(s.name for s in scop.statements)))
    if not inside:
        return False
    users: dict[str, set[str]] = {}
    for statement in scop.statements:
        for touch in touches(scop, statement):
            users.setdefault(touch.tensor, set()).add(statement.name)
    own = [tensor for tensor, names in users.items() if any(names <= block for block in inside)]
    places = place_temporaries(scop, dependences, tree, only=own) if own else {}
    return any(place.memory is Memory.ROW for place in places.values())


def _blocked(
    scop: Scop, tree: Tree, names: tuple[str, ...], room: Room, outer: tuple[Band, ...] = ()
) -> Tree:
    """``tree``, which lies inside the loops ``outer``, with its blocks."""
    match tree:
        case Sequence(filters):
            parts = (
                replace(f, child=_blocked(scop, f.child, f.statements, room, outer))
                for f in filters
            )
            return Sequence(tuple(parts))
        case Mark(name) if block_sizes(name):
            return tree
        case Mark(name, Band() as lane) if name == LANES:
            return replace(tree, child=_inside_lanes(scop, lane, lane, names, room))
        case Band(child=Mark(name, Band() as lane)) if name == LANES:
            made = _with_block(scop, tree, lane, names, room, outer)
            if made is not tree:
                return made
            inner = _inside_lanes(scop, lane, lane, names, room)
            return replace(tree, child=Mark(LANES, inner))
        case Domain() | Filter() | Mark() | Band():
            around = (*outer, tree) if isinstance(tree, Band) else outer
            return replace(tree, child=_blocked(scop, tree.child, names, room, around))
        case Leaf():
            return tree


def _with_block(
    scop: Scop,
    band: Band,
    lane: Band,
    names: tuple[str, ...],
    room: Room,
    outer: tuple[Band, ...],
) -> Tree:
    """``band`` over ``lane`` with the member that has the most reuse as a register block."""
    updates = [s for s in map(scop.statement, names) if s.is_update and s.reduction]
    work = sum(_work(scop.statement(n)) for n in names)
    chosen = _reused_member(scop, band, lane, updates)
    if chosen is None or not band.permutable or not lane.coincident[0]:
        return band
    if any(isinstance(node, Mark) for node in below(lane.child)):
        return band
    across = iterator_of(band, chosen, updates[0])
    assert across is not None
    tiled = any(determines(loops, updates[0], across) for loops in outer)
    extent = None if tiled else fixed_extent(updates[0], across)
    most = min(room.most // len(updates), MOST_ROWS, MOST_WORK // work)
    size = room.rows_of(extent, most)
    return with_rows(band, chosen, size, extent, Mark(LANES, lane))


def _inside_lanes(
    scop: Scop, tree: Tree, lane: Band, names: tuple[str, ...], room: Room
) -> Tree:
    """``tree`` with a block in each nest of one update that has a loop to spare."""
    match tree:
        case Sequence(filters):
            parts = (
                replace(f, child=_inside_lanes(scop, f.child, lane, f.statements, room))
                for f in filters
            )
            return Sequence(tuple(parts))
        case Mark(name) if block_sizes(name):
            return tree
        case Band() if tree is not lane and len(names) == 1 and tree.permutable:
            update = scop.statement(names[0])
            chosen = _reused_member(scop, tree, lane, [update]) if update.is_update else None
            if chosen is None:
                return tree
            return _split(scop, tree, chosen, update, room)
        case Domain() | Filter() | Mark() | Band():
            return replace(tree, child=_inside_lanes(scop, tree.child, lane, names, room))
        case Leaf():
            return tree


def _split(scop: Scop, band: Band, chosen: int, update: Statement, room: Room) -> Tree:
    """The coincident members of ``band`` with a block of one of them, over the others."""
    free = [k for k in range(band.depth) if band.coincident[k]]
    rest = [k for k in range(band.depth) if not band.coincident[k]]
    if not rest and isinstance(band.child, Leaf):
        return band
    child = band.child
    if rest:
        child = Band(joined([member(band, k) for k in rest]), True, (False,) * len(rest), child)
    outer = Band(joined([member(band, k) for k in free]), True, (True,) * len(free), child)
    across = iterator_of(band, chosen, update)
    assert across is not None
    extent = fixed_extent(update, across)
    size = room.rows_of(extent, room.most)
    return with_rows(outer, free.index(chosen), size, extent, child)


def with_rows(band: Band, position: int, size: int, extent: int | None, child: Tree) -> Tree:
    """``band`` over ``child``, with blocks of ``size`` iterations of one member innermost.

    Rewrite:
        band [i, j] / child  ->  band [floor(i / 6), j] / block=6 [i] / child
    """
    if size < 2:
        return replace(band, child=child)
    sizes = (size, *_rest(extent, size))
    points = Band(member(band, position), True, (True,), child)
    inner = Mark(BLOCK + "+".join(map(str, sizes)), points)
    if size == extent:
        keep = [k for k in range(band.depth) if k != position]
        return _over(band, keep, inner)
    strips = tile_member(band, position, size)
    order = [0 if k == position else k + 1 for k in range(band.depth)]
    return _over(strips, order, inner)


def _over(band: Band, order: Seq[int], child: Mark) -> Band | Mark:
    """The members ``order`` of ``band`` over ``child``."""
    if not order:
        return child
    schedule = joined([member(band, k) for k in order])
    return Band(schedule, True, tuple(band.coincident[k] for k in order), child)


def _reused_member(scop: Scop, band: Band, lane: Band, updates: Seq[Statement]) -> int | None:
    """The member along which the most vectors that the reductions load stay the same."""
    best, most = None, 0
    for position in range(band.depth):
        if not band.coincident[position]:
            continue
        reused = 0
        for statement in updates:
            along = iterator_of(band, position, statement)
            vector = iterator_of(lane, 0, statement)
            if along is None or vector is None:
                return None
            for touch in touches(scop, statement):
                moves = touch.offset.mentions(vector)
                reused += moves and not touch.is_write and not touch.offset.mentions(along)
        if reused > most:
            best, most = position, reused
    return best


def best_rows(extent: int | None, most: int) -> int:
    """The rows of a block that take the least time for all rows of the loop."""
    if extent is None or most < 2:
        return most
    return min(
        range(min(most, max(extent, 1)), 0, -1), key=lambda rows: block_cycles(extent, rows)
    )


def block_cycles(extent: int, rows: int) -> float:
    """Cycles of one step of all blocks of so many rows that a loop takes, the rest included."""
    whole, rest = divmod(extent, rows)
    return whole * _cycles(rows) + (_cycles(rest) if rest else 0.0)


def _cycles(rows: int) -> float:
    """Cycles of one step of a block: additions, loads, or the wait for the last sum."""
    return max(rows * GROUPS / 2, (rows + GROUPS) / 2, LATENCY)


def _rest(extent: int | None, size: int) -> tuple[int, ...]:
    """Sizes of the blocks for what whole blocks leave."""
    if extent is not None:
        return (extent % size,) if extent % size else ()
    return (2, 1) if size > 2 else (1,)


def _work(statement: Statement) -> int:
    """Operations of one instance."""
    written = statement.comprehension
    return sum(1 for value in written.values for _ in walk(value))


def _inside_blocks(tree: Tree, names: tuple[str, ...]) -> Iterator[frozenset[str]]:
    """The statements inside each register block."""
    match tree:
        case Mark(name) if name.startswith(BLOCK):
            yield frozenset(names)
        case Sequence(filters):
            for f in filters:
                yield from _inside_blocks(f.child, f.statements)
        case Mark() | Band() | Domain() | Filter():
            yield from _inside_blocks(tree.child, names)
        case Leaf():
            pass
