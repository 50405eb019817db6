"""What the threads of a team touch in memory, and whether two of them may meet there.

A loop over lanes gives the iterations ``l`` with the same ``l - low`` to the same thread,
whatever the size of the team and the number of lanes of a thread; of every other pair nothing
is known.  What is outside of these loops is read by every thread, or, where the result goes to
memory, by the first one, which writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from tcfuse.codegen.cuda.nest import LaneNest, lane_nest
from tcfuse.codegen.kernel_ast import Guard, Instance, Loop, Node, instances
from tcfuse.codegen.tensors import Tensor
from tcfuse.poly.polynomial import Polynomial, polynomial
from tcfuse.poly.scop import Scop, Statement, accesses, target
from tcfuse.tc.ast import Access, Expr, Var, walk


class Threads(Enum):
    """Who touches an element."""

    FIRST = "the first thread"
    EVERY = "every thread"
    LANE = "the thread of the lane"


@dataclass(frozen=True, slots=True)
class Span:
    """``iterator`` in ``low:high``."""

    iterator: str
    low: Polynomial
    high: Polynomial


@dataclass(frozen=True, slots=True)
class Touch:
    """The elements of a tensor that one access of a node touches.

    Attributes:
        cell: The subscripts that its storage has, over iterators and sizes; ``None`` for one
            that depends on data.
        spans: The loops inside the node that are around the access, outermost first.
        lane: How far the lane, and each loop that is spread with it, is from the first; empty
            outside loops over lanes.
        divided: The iterations that are divided among the threads; equal ones alike.
    """

    tensor: str
    is_write: bool
    threads: Threads
    cell: tuple[Polynomial | None, ...]
    spans: tuple[Span, ...]
    lane: tuple[Polynomial, ...] = ()
    divided: tuple[Polynomial, ...] = ()


class Toucher:
    """Finds the touches of the nodes of one kernel."""

    def __init__(self, scop: Scop, tensors: Mapping[str, Tensor]) -> None:
        self.scop = scop
        self.tensors = tensors

    def touches(self, node: Node) -> tuple[Touch, ...]:
        """Every touch of memory in ``node``, whose elements other threads can see."""
        return tuple(dict.fromkeys(self._node(node, (), None)))

    def totals(self, node: Node) -> tuple[Touch, ...]:
        """The touches of what a loop over lanes adds up, once the lanes have been."""
        found = self.touches(node) if isinstance(node, Loop) else ()
        return tuple(t for t in found if t.threads is Threads.FIRST)

    def reduces(self, node: Node) -> bool:
        """Whether ``node`` is a loop over lanes that ends with a reduction by the team."""
        nest = lane_nest(node)
        if nest is None:
            return False
        for instance in instances(nest.loop.body):
            statement = self.scop.statement(instance.statement)
            places = dict(zip(statement.iterators, instance.position, strict=True))
            own = target(statement)
            alone = not self.tensors[own.tensor].lanes
            if statement.is_update and alone and not self._follows(own, places, nest):
                return True
        return False

    def _node(
        self, node: Node, spans: tuple[Span, ...], lane: LaneNest | None
    ) -> Iterator[Touch]:
        match node:
            case Instance():
                yield from self._instance(node, spans, lane)
            case Guard():
                for child in (*node.then, *node.otherwise):
                    yield from self._node(child, spans, lane)
            case Loop():
                if lane is None:
                    lane = lane_nest(node)
                inner = (*spans, Span(node.iterator, node.low, node.high))
                for child in node.body:
                    yield from self._node(child, inner, lane)

    def _instance(
        self, instance: Instance, spans: tuple[Span, ...], lane: LaneNest | None
    ) -> Iterator[Touch]:
        statement = self.scop.statement(instance.statement)
        places = dict(zip(statement.iterators, instance.position, strict=True))
        own = target(statement)
        to_memory = self._is_shared(own.tensor)
        alone = to_memory and not self._follows(own, places, lane)
        for access in accesses(statement):
            if self._is_shared(access.tensor):
                threads = Threads.EVERY
                if lane is not None:
                    threads = Threads.LANE
                elif to_memory:
                    threads = Threads.FIRST
                yield self._touch(access, statement, places, threads, spans, lane, False)
        if to_memory:  # of what a loop over lanes adds up, the first thread writes the total
            threads = Threads.FIRST if alone else Threads.LANE
            yield self._touch(own, statement, places, threads, spans, lane, True)

    def _is_shared(self, name: str) -> bool:
        tensor = self.tensors[name]
        return not (tensor.register or tensor.lanes or name in self.scop.checked.inputs)

    def _follows(
        self, access: Access, places: Mapping[str, Polynomial], lane: LaneNest | None
    ) -> bool:
        """Whether the lanes of a loop touch different elements."""
        if lane is None:
            return False
        found = (polynomial(s, places) for s in access.subscripts)
        return any(p is not None and p.mentions(lane.loop.iterator) for p in found)

    def _touch(
        self,
        access: Access,
        statement: Statement,
        places: Mapping[str, Polynomial],
        threads: Threads,
        spans: tuple[Span, ...],
        lane: LaneNest | None,
        is_write: bool,
    ) -> Touch:
        lets = {let.name for let in statement.comprehension.lets}
        strides = self.tensors[access.tensor].strides
        cell = tuple(
            None if _names(subscript) & lets else polynomial(subscript, places)
            for subscript, stride in zip(access.subscripts, strides, strict=True)
            if stride.terms
        )
        if threads is not Threads.LANE or lane is None:
            return Touch(access.tensor, is_write, threads, cell, spans)
        offsets = tuple(Polynomial.factor(loop.iterator) - loop.low for loop in lane.loops)
        extents = tuple(loop.high - loop.low for loop in lane.loops[1:])
        return Touch(access.tensor, is_write, threads, cell, spans, offsets, extents)


def _names(expr: Expr) -> set[str]:
    return {node.name for node in walk(expr) if isinstance(node, Var)}
