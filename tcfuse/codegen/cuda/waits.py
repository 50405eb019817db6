"""Where the threads of a team wait for each other: the fewest places that are enough.

Every sequence of nodes is decided on its own, inner ones first.  Towards the nodes around it, a
sequence is what it touches before its first barrier and after its last one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tcfuse.codegen.cuda.conflicts import Conflicts
from tcfuse.codegen.cuda.touches import Span, Touch, Toucher
from tcfuse.codegen.kernel_ast import Block, Guard, Loop, Node
from tcfuse.codegen.loops import is_vector
from tcfuse.codegen.tensors import Tensor
from tcfuse.mapping.barriers import Level, place_barriers
from tcfuse.poly.scop import Scop


@dataclass(frozen=True, slots=True)
class _Ends:
    """What a node or a sequence touches, as far as its own barriers leave it open.

    Attributes:
        first: Touches that something earlier may not have been waited for.
        last: Touches that something later has to wait for.
    """

    first: tuple[Touch, ...] = ()
    last: tuple[Touch, ...] = ()


def barriers(
    block: Block,
    scop: Scop,
    tensors: Mapping[str, Tensor],
    rows: Collection[str],
    turns: Collection[str] | None,
) -> frozenset[int]:
    """The nodes, by identity, before which the threads of a team wait.

    Args:
        block: What a team runs in one turn.
        scop: Its statements.
        tensors: Where the tensors are.
        rows: Tensors whose memory the next turn uses again.
        turns: Iterators that are others in the next turn; ``None``: there is no next turn.
    """
    waits = _Waits(scop, tensors)
    ends = [waits.ends(node) for node in block]
    needs = waits.needs(ends)
    if turns is not None:
        for later, own in enumerate(ends):
            for earlier, other in enumerate(ends):
                last = [t for t in other.last if t.tensor in rows]
                if waits.conflicts.any(last, own.first, apart=turns):
                    _need(needs, earlier, later)
    waits.place(block, needs, wraps=turns is not None)
    return frozenset(waits.found)


class _Waits:
    """The barriers found so far."""

    def __init__(self, scop: Scop, tensors: Mapping[str, Tensor]) -> None:
        self.toucher = Toucher(scop, tensors)
        self.conflicts = Conflicts(scop)
        self.found: set[int] = set()

    def ends(self, node: Node) -> _Ends:
        """What ``node`` leaves open; barriers inside it are placed."""
        match node:
            case Guard():
                parts = [self._sequence(node.then), self._sequence(node.otherwise)]
                return _Ends(
                    tuple(t for part in parts for t in part.first),
                    tuple(t for part in parts for t in part.last),
                )
            case Loop() if not (node.lanes and is_vector(node)):
                return self._loop(node)
            case _:
                touches = self.toucher.touches(node)
                return _Ends(touches, touches)

    def needs(self, ends: Sequence[_Ends]) -> list[list[Level]]:
        """What must be between the nodes of a sequence that runs once."""
        needs = [[Level.NONE] * len(ends) for _ in ends]
        for later, own in enumerate(ends):
            for earlier in range(later):
                if self.conflicts.any(ends[earlier].last, own.first):
                    needs[earlier][later] = Level.BLOCK
        return needs

    def place(
        self, block: Block, needs: Sequence[Sequence[Level]], *, wraps: bool
    ) -> list[int]:
        """Barriers in a sequence; the positions of the nodes that they stand before."""
        levels = place_barriers(needs, wraps=wraps)
        places = sorted((k + 1) % len(block) for k, level in enumerate(levels) if level)
        self.found |= {id(block[k]) for k in places}
        return places

    def _sequence(self, block: Block) -> _Ends:
        ends = [self.ends(node) for node in block]
        return _outer(ends, self.place(block, self.needs(ends), wraps=False))

    def _loop(self, loop: Loop) -> _Ends:
        ends = [self.ends(node) for node in loop.body]
        needs = self.needs(ends)
        span = Span(loop.iterator, loop.low, loop.high)
        for later, own in enumerate(ends):
            for earlier, other in enumerate(ends):
                if self.conflicts.any(other.last, own.first, loop=span):
                    _need(needs, earlier, later)
        inner = _outer(ends, self.place(loop.body, needs, wraps=True))
        return _Ends(
            tuple(_inside(t, span) for t in inner.first),
            tuple(_inside(t, span) for t in inner.last),
        )


def _need(needs: list[list[Level]], earlier: int, later: int) -> None:
    """Note that a node waits for one of the iteration before.

    Between a node and a later one of the next iteration lies the whole body: any barrier does,
    as between a node and itself.
    """
    needs[earlier][min(earlier, later)] = Level.BLOCK


def _outer(ends: Sequence[_Ends], places: Sequence[int]) -> _Ends:
    """What a sequence with barriers before the nodes at ``places`` leaves open."""
    before = places[0] if places else len(ends)
    after = places[-1] if places else 0
    return _Ends(
        tuple(t for part in ends[:before] for t in part.first),
        tuple(t for part in ends[after:] for t in part.last),
    )


def _inside(touch: Touch, span: Span) -> Touch:
    """A touch, seen from outside the loop that is around it."""
    return replace(touch, spans=(span, *touch.spans))
