"""Where the threads of a team have to wait for each other.

What happens in one iteration of the parallel loops is a sequence of steps: instances outside
loops over lanes, and those loops.  A step waits when it touches an element of memory that
another thread may have touched since the last barrier, and one of the two writes it.  Loops are
walked twice, so that what one iteration leaves open is seen by the next.

Two accesses inside loops over lanes are by the same thread when, along some dimension, both
have the same subscript: the lane plus something that does not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tcfuse.codegen.kernel_ast import Block, Guard, Instance, Loop, instances
from tcfuse.codegen.loops import is_vector
from tcfuse.codegen.tensors import Tensor
from tcfuse.poly.polynomial import Polynomial, polynomial
from tcfuse.poly.scop import Scop, accesses, target

FIRST = "first"  # by the first thread of the team
EVERY = "every"  # by all of its threads


@dataclass(frozen=True, slots=True)
class Touch:
    """What a step does to a tensor.

    Attributes:
        threads: ``FIRST``, ``EVERY``, or subscripts that each thread has its own of.
    """

    tensor: str
    is_write: bool
    threads: str | frozenset[tuple[int, str]]


def barriers(
    block: Block,
    scop: Scop,
    tensors: Mapping[str, Tensor],
    rows: Collection[str],
    *,
    repeats: bool,
) -> frozenset[int]:
    """The steps of ``block``, by identity, that a barrier has to stand before.

    Args:
        block: What a team runs in one iteration of the parallel loops.
        scop: Its statements.
        tensors: Where the tensors are.
        rows: Tensors whose memory the next iteration uses again.
        repeats: Whether a team runs several iterations.
    """
    walk = _Walk(scop, tensors)
    walk.block(block)
    if repeats:
        walk.open = [t for t in walk.open if t.tensor in rows]
        walk.block(block)
    return frozenset(walk.found)


class _Walk:
    def __init__(self, scop: Scop, tensors: Mapping[str, Tensor]) -> None:
        self.scop = scop
        self.tensors = tensors
        self.open: list[Touch] = []
        self.found: set[int] = set()

    def block(self, block: Block) -> None:
        for node in block:
            match node:
                case Instance():
                    self._step(node, self._uniform(node))
                case Guard():
                    self.block(node.then)
                    self.block(node.otherwise)
                case Loop() if node.lanes and is_vector(node):
                    self._step(node, self._lanes(node))
                case Loop():
                    self.block(node.body)
                    self.block(node.body)

    def _step(self, node: Instance | Loop, touches: Iterator[Touch]) -> None:
        own = list(dict.fromkeys(touches))
        if id(node) in self.found or any(_clash(a, b) for a in self.open for b in own):
            self.found.add(id(node))
            self.open.clear()
        self.open += [t for t in own if t not in self.open]

    def _uniform(self, instance: Instance) -> Iterator[Touch]:
        """The accesses of an instance that is outside loops over lanes."""
        statement = self.scop.statement(instance.statement)
        written = self.tensors[statement.comprehension.tensor]
        threads = EVERY if written.register else FIRST
        for access in accesses(statement):
            if self._in_memory(access.tensor):
                yield Touch(access.tensor, False, threads)
        if self._in_memory(statement.comprehension.tensor):
            yield Touch(statement.comprehension.tensor, True, threads)

    def _lanes(self, loop: Loop) -> Iterator[Touch]:
        """The accesses of a loop over lanes."""
        for instance in instances(loop.body):
            statement = self.scop.statement(instance.statement)
            places = dict(zip(statement.iterators, instance.position, strict=True))
            for access in accesses(statement):
                if self._in_memory(access.tensor):
                    own = _own(access.subscripts, places, loop)
                    yield Touch(access.tensor, False, own or EVERY)
            written = target(statement)
            if self._in_memory(written.tensor):
                own = _own(written.subscripts, places, loop)
                yield Touch(written.tensor, True, own or FIRST)

    def _in_memory(self, name: str) -> bool:
        tensor = self.tensors[name]
        return not (tensor.register or tensor.lanes or name in self.scop.checked.inputs)


def _own(
    subscripts: tuple[object, ...], places: Mapping[str, Polynomial], loop: Loop
) -> frozenset[tuple[int, str]]:
    """Subscripts that are the lane plus something that does not change."""
    found = set()
    lane = Polynomial.factor("lane")
    for position, subscript in enumerate(subscripts):
        value = polynomial(subscript, places)  # type: ignore[arg-type]
        if value is None:
            continue
        value = value.put(loop.iterator, lane) - lane
        factors = [f for monomial, _ in value.terms for f in monomial]
        if all(f.isidentifier() and not _is_iterator(f) for f in factors):
            found.add((position, f"{value} from {loop.low} to {loop.high}"))
    return frozenset(found)


def _is_iterator(name: str) -> bool:
    """Whether a factor is the lane, or the iterator of a loop, which are called c0, c1, ..."""
    return name == "lane" or (name[:1] == "c" and name[1:].isdigit())


def _clash(a: Touch, b: Touch) -> bool:
    """Whether two threads may meet in an element that one of them writes."""
    if a.tensor != b.tensor or not (a.is_write or b.is_write):
        return False
    if isinstance(a.threads, frozenset) and isinstance(b.threads, frozenset):
        return not (a.threads & b.threads)
    return not (a.threads == FIRST == b.threads)
