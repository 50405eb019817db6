"""Squares of lanes and iterations, which are turned in registers (``codegen``).

Where lanes walk along one dimension and a tensor is contiguous along another, the loop along
that one can run inside the lanes (``tiling``); the choice of lanes counts on it (``lanes``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tcfuse.mapping.access import Touch, touches
from tcfuse.poly.scop import Scop, Statement
from tcfuse.poly.tree import Band, Leaf, Sequence, Tree
from tcfuse.poly.volume import extent, fixed_extent

WIDTH = 8  # lanes the choice is made for; the count itself is chosen with the instruction set
SQUARE = 16  # lanes of the widest vectors, which a loop must fill, or half of them, for squares
SHORT = 4  # lanes below which there is nothing to turn
IteratorOf = Callable[[int, str], str | None]  # a member's, in a statement


@dataclass(frozen=True, slots=True)
class Squares:
    """What lanes stride through and may be turned in registers, in one statement.

    Attributes:
        inner: Iterators of the loops inside the lanes.
        along: The same, with that of the loop that ``tiling`` will put there.
        once: Tensors that the statements inside set and do not read.
    """

    inner: frozenset[str] = frozenset()
    along: frozenset[str | None] = frozenset()
    once: frozenset[str] = frozenset()

    def turn(self, touch: Touch, statement: Statement, iterator: str) -> bool:
        """Whether they hold ``touch``, through which lanes along ``iterator`` stride."""
        if touch.is_write and touch.tensor not in self.once:
            return False
        lanes = fixed_extent(statement, iterator)
        if lanes is not None and lanes >= WIDTH:
            return any(i is not None and _is_square(touch, statement, i) for i in self.along)
        return not touch.is_write and any(_is_square(touch, statement, i) for i in self.inner)


NONE = Squares()


def _is_square(touch: Touch, statement: Statement, along: str) -> bool:
    """Whether what lanes stride through is whole vectors along another loop."""
    step = touch.offset.stride(along)
    length = fixed_extent(statement, along)
    is_whole = length is not None and (length % SQUARE == 0 or length == SQUARE // 2)
    return is_whole and step is not None and step.number == 1


def only_set(
    scop: Scop, users: Mapping[str, AbstractSet[str]], names: tuple[str, ...]
) -> frozenset[str]:
    """Tensors that the statements set and none of them reads: their squares may wait.

    Args:
        scop: Whose statements.
        users: The statements that touch a tensor, by its name.
        names: The statements in question.
    """

    def sets(statement: Statement, tensor: str) -> bool:
        touched = [touch for touch in touches(scop, statement) if touch.tensor == tensor]
        return not statement.is_update and all(touch.is_write for touch in touched)

    return frozenset(
        tensor
        for tensor, by in users.items()
        if all(sets(scop.statement(name), tensor) for name in names if name in by)
    )


def is_flat(tree: Tree) -> bool:
    """Whether ``tree`` has statements only, and no loop."""
    match tree:
        case Leaf():
            return True
        case Sequence(filters):
            return all(isinstance(f.child, Leaf) for f in filters)
        case _:
            return False


def contiguous_member(
    scop: Scop, band: Band, lane: int, names: tuple[str, ...], iterator: IteratorOf
) -> int | None:
    """The member along which what the lanes stride through is contiguous, in every statement.

    Args:
        scop: Whose statements.
        band: The loops.
        lane: The member of which lanes are made.
        names: The statements inside.
        iterator: What a member of ``band`` runs along in a statement.
    """
    found: set[int | None] = set()
    for name in names:
        across = iterator(lane, name)
        statement = scop.statement(name)
        if across is None or extent(statement, across) < SHORT:
            return None
        along = {k: iterator(k, name) for k in range(band.depth) if k != lane}
        found.add(_contiguous(scop, statement, across, along))
    return found.pop() if len(found) == 1 else None


def _contiguous(
    scop: Scop, statement: Statement, across: str, along: dict[int, str | None]
) -> int | None:
    """The first member along which an access that lanes stride through is contiguous."""
    for touch in touches(scop, statement):
        stride = touch.offset.stride(across)
        if stride is None or stride.number in (0, 1):
            continue
        for position, iterator in along.items():
            step = None if iterator is None else touch.offset.stride(iterator)
            if step is not None and step.number == 1:
                return position
    return None
