"""Where the threads of a team wait for each other: the fewest places that are enough.

Every sequence of nodes is decided on its own, inner ones first.  Towards the nodes around it, a
sequence is what it touches before its first barrier and after its last one.

A loop over lanes that reduces ends with a barrier already, where a team is a block: everybody
has finished the loop before anybody has the result.  What such a loop lies between needs no
other barrier, only that threads of one warp see each other's memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from tcfuse.codegen.cuda.conflicts import Conflicts
from tcfuse.codegen.cuda.nest import lane_nest
from tcfuse.codegen.cuda.touches import Span, Touch, Toucher
from tcfuse.codegen.kernel_ast import Block, Guard, Loop, Node
from tcfuse.codegen.tensors import Tensor
from tcfuse.mapping.barriers import Level, place_barriers
from tcfuse.poly.scop import Scop


class Wait(Enum):
    """How the threads of a team wait; the value is the name of a member of ``tcf::team``."""

    SYNC = "sync"
    SETTLE = "settle"


@dataclass(frozen=True, slots=True)
class _Ends:
    """What a node or a sequence touches, as far as its own barriers leave it open.

    Attributes:
        first: Touches that something earlier may not have been waited for.
        last: Touches that something later has to wait for.
        late: Those of ``last`` that come after the reduction at the end of the node.
        reduces: Whether there is one.
    """

    first: tuple[Touch, ...] = ()
    last: tuple[Touch, ...] = ()
    late: tuple[Touch, ...] = ()
    reduces: bool = False


def barriers(
    block: Block,
    scop: Scop,
    tensors: Mapping[str, Tensor],
    rows: Collection[str],
    turns: Collection[str] | None,
) -> Mapping[int, Wait]:
    """The nodes, by identity, before which the threads of a team wait, and how.

    Args:
        block: What a team runs in one turn.
        scop: Its statements.
        tensors: Where the tensors are.
        rows: Tensors whose memory the next turn uses again.
        turns: Iterators that are others in the next turn; ``None``: there is no next turn.
    """
    waits = _Waits(scop, tensors)
    sequence = _Sequence(waits, block)
    if turns is not None:
        sequence.around(apart=turns, only=rows)
    sequence.place(wraps=turns is not None)
    return waits.found


class _Waits:
    """The barriers found so far."""

    def __init__(self, scop: Scop, tensors: Mapping[str, Tensor]) -> None:
        self.toucher = Toucher(scop, tensors)
        self.conflicts = Conflicts(scop)
        self.found: dict[int, Wait] = {}

    def ends(self, node: Node) -> _Ends:
        """What ``node`` leaves open; barriers inside it are placed."""
        match node:
            case Guard():
                parts = [
                    _Sequence(self, b).place(wraps=False) for b in (node.then, node.otherwise)
                ]
                return _Ends(
                    tuple(t for part in parts for t in part.first),
                    tuple(t for part in parts for t in part.last),
                )
            case Loop() if lane_nest(node) is None:
                return self._loop(node)
            case _:
                touches = self.toucher.touches(node)
                late = self.toucher.totals(node)
                return _Ends(touches, touches, late, self.toucher.reduces(node))

    def _loop(self, loop: Loop) -> _Ends:
        span = Span(loop.iterator, loop.low, loop.high)
        sequence = _Sequence(self, loop.body)
        sequence.around(loop=span)
        inner = sequence.place(wraps=True)
        return _Ends(
            tuple(_inside(t, span) for t in inner.first),
            tuple(_inside(t, span) for t in inner.last),
        )


@dataclass(slots=True)
class _Sequence:
    """The nodes of a block, and what has to be between them."""

    waits: _Waits
    block: Block
    ends: list[_Ends] = field(init=False)
    needs: list[list[Level]] = field(init=False)
    settled: set[int] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.ends = [self.waits.ends(node) for node in self.block]
        self.needs = [[Level.NONE] * len(self.block) for _ in self.block]
        for later in range(len(self.block)):
            for earlier in range(later):
                self._need(earlier, later, range(earlier, later))

    def around(
        self,
        *,
        loop: Span | None = None,
        apart: Collection[str] = (),
        only: Collection[str] | None = None,
    ) -> None:
        """Take in what an iteration needs of the one before.

        Args:
            loop: The loop around the sequence.
            apart: Iterators that are others in the next iteration, without an order.
            only: Tensors in which iterations meet; all when not given.
        """
        count = len(self.block)
        for later in range(count):
            for earlier in range(count):
                between = [*range(earlier, count), *range(later)]
                self._need(earlier, later, between, loop, apart, only)

    def _need(
        self,
        earlier: int,
        later: int,
        between: Iterable[int],
        loop: Span | None = None,
        apart: Collection[str] = (),
        only: Collection[str] | None = None,
    ) -> None:
        """Note that a node waits for an earlier one, if it does.

        Between a node and a later one of the next iteration lies the whole body: any barrier
        does, as between a node and itself.
        """

        def meet(touches: Sequence[Touch]) -> bool:
            last = [t for t in touches if only is None or t.tensor in only]
            first = self.ends[later].first
            return self.waits.conflicts.any(last, first, loop=loop, apart=apart)

        if not meet(self.ends[earlier].last):
            return
        for position in between:
            own = self.ends[position]
            if own.reduces and (position != earlier or not meet(own.late)):
                self.settled.add(position)
                return
        wrapped = loop is not None or bool(apart)
        self.needs[earlier][min(earlier, later) if wrapped else later] = Level.BLOCK

    def place(self, *, wraps: bool) -> _Ends:
        """Place the barriers; what is left open towards the nodes around the sequence."""
        count = len(self.block)
        levels = place_barriers(self.needs, wraps=wraps)
        places = sorted((k + 1) % count for k, level in enumerate(levels) if level)
        for k in self.settled:
            self.waits.found[id(self.block[(k + 1) % count])] = Wait.SETTLE
        for k in places:
            self.waits.found[id(self.block[k])] = Wait.SYNC
        before = places[0] if places else count
        after = places[-1] if places else 0
        return _Ends(
            tuple(t for part in self.ends[:before] for t in part.first),
            tuple(t for part in self.ends[after:] for t in part.last),
        )


def _inside(touch: Touch, span: Span) -> Touch:
    """A touch, seen from outside the loop that is around it."""
    return replace(touch, spans=(span, *touch.spans))
