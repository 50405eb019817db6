"""The fewest barriers that keep a sequence of items in order, where they need it.

Items run one after the other, every thread running its part of each.  Where two items touch the
same element in different threads, a barrier has to stand between them: one of the warp when
these threads are always of one warp, else one of the block.  In a loop the last items come
before the first of the next iteration.

Source: "The Next 700 Accelerated Layers", section 4.4 (synchronization), and the dynamic
program of Tensor Comprehensions: fewest barriers of the block first, then of the warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

Needs = Sequence[Sequence["Level"]]


class Level(IntEnum):
    """How far a barrier reaches; one that reaches farther does for a nearer one."""

    NONE = 0
    WARP = 1
    BLOCK = 2


class _State(NamedTuple):
    """Where barriers stand, as far as later items can tell.

    Attributes:
        first: The item before the first barrier of at least each level; -1 when there is none.
        last: The same of the last barrier.
    """

    first: tuple[int, int]
    last: tuple[int, int]

    def after(self, position: int, level: Level) -> _State:
        """With one more barrier."""
        first = tuple(
            position if old < 0 and level >= known else old
            for known, old in zip((Level.WARP, Level.BLOCK), self.first, strict=True)
        )
        last = tuple(
            position if level >= known else old
            for known, old in zip((Level.WARP, Level.BLOCK), self.last, strict=True)
        )
        return _State((first[0], first[1]), (last[0], last[1]))


class _Choice(NamedTuple):
    """The barriers so far: how many of the block, of the warp, and after which items."""

    blocks: int
    warps: int
    levels: tuple[Level, ...]

    def then(self, level: Level) -> _Choice:
        """With what stands after one more item."""
        return _Choice(
            self.blocks + (level is Level.BLOCK),
            self.warps + (level is Level.WARP),
            (*self.levels, level),
        )


def place_barriers(needs: Needs, *, wraps: bool) -> tuple[Level, ...]:
    """The barrier after each item.

    Args:
        needs: ``needs[i][j]`` is what must be between item ``i`` and item ``j`` that follows
            it: in the same iteration when ``i < j``, else in the next one.
        wraps: Whether the items are the body of a loop; if not, only ``i < j`` counts.

    Returns:
        For each item what stands after it, with the fewest barriers of the block and, of these
        choices, the fewest of the warp.
    """
    count = len(needs)
    useful = {
        (j - 1) % count
        for i in range(count)
        for j in range(count)
        if needs[i][j] and (wraps or i < j)
    }  # a barrier that moves on until it would come too late for something covers no less
    states = {_State((-1, -1), (-1, -1)): _Choice(0, 0, ())}
    for position in range(count):
        following: dict[_State, _Choice] = {}
        for state, choice in states.items():
            if not _covers(needs, position, state.last):
                continue
            levels = Level if position in useful else (Level.NONE,)
            for level in levels:
                reached = state.after(position, level)
                if not wraps:
                    reached = reached._replace(first=(-1, -1))
                found = choice.then(level)
                if reached not in following or found < following[reached]:
                    following[reached] = found
        states = following
    closed = (c for s, c in states.items() if not wraps or _closes(needs, s))
    return min(closed).levels


def _covers(needs: Needs, item: int, last: tuple[int, int]) -> bool:
    """Whether everything ``item`` needs of the same iteration stands before it."""
    return all(not needs[i][item] or last[needs[i][item] - 1] >= i for i in range(item))


def _closes(needs: Needs, state: _State) -> bool:
    """Whether everything that an iteration needs of the one before stands between them."""
    count = len(needs)
    for i in range(count):
        for j in range(i + 1):
            if needs[i][j]:
                first, last = state.first[needs[i][j] - 1], state.last[needs[i][j] - 1]
                if last < i and not 0 <= first < j:
                    return False
    return True
