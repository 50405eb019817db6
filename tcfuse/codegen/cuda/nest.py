"""The phases of a kernel on a GPU: which loops are spread over the grid, who runs the rest.

The iterations of the parallel loops of a phase are run by *teams*: one thread, part of a warp
or a block.  In a phase that is *flat* there is nothing but one loop over lanes inside the
parallel loops, so that its iterations are spread over the grid as well, and every thread is
alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcfuse.codegen.kernel_ast import Block, Guard, Instance, Loop, Node, instances, loops
from tcfuse.codegen.loops import is_vector
from tcfuse.poly.polynomial import Polynomial, polynomial
from tcfuse.poly.scop import Scop, target


@dataclass(frozen=True, slots=True)
class LaneNest:
    """A loop over lanes, with the loops right around it whose iterations threads share too.

    Attributes:
        around: Outermost first; bounds depend on what is outside of all of them.
        loop: The loop over lanes.
    """

    around: tuple[Loop, ...]
    loop: Loop

    @property
    def loops(self) -> tuple[Loop, ...]:
        """All of them, the loop over lanes last."""
        return (*self.around, self.loop)

    @property
    def bounds(self) -> tuple[tuple[Polynomial, Polynomial], ...]:
        """Which iterations there are; equal ones are given to equal threads."""
        return tuple((loop.low, loop.high) for loop in self.loops)

    def elements(self, lanes: int) -> Polynomial:
        """Iterations together, those over lanes rounded up to whole groups."""
        extent = as_factor((self.loop.high - self.loop.low).at_least_zero())
        total = Polynomial.constant(1)
        for loop in self.around:
            total = total * as_factor((loop.high - loop.low).at_least_zero())
        if not self.around:
            return extent
        if extent.number is not None:
            return total * Polynomial.constant(-(-extent.number // lanes) * lanes)
        if lanes == 1:
            return total * extent
        groups = Polynomial.factor(f"(({extent} + {lanes - 1}) / {lanes})")
        return total * groups * Polynomial.constant(lanes)


@dataclass(frozen=True, slots=True)
class Nest:
    """One phase.

    Attributes:
        chain: Parallel loops, outermost first; their bounds depend on sizes alone.
        flat: The loop over lanes that is spread over the grid together with them.
        body: What runs inside, by a team unless the phase is flat.
    """

    chain: tuple[Loop, ...]
    flat: Loop | None
    body: Block

    @property
    def lane_loops(self) -> list[Loop]:
        """The loops over lanes that run as such."""
        return [nest.loop for nest in self.lane_nests]

    @property
    def lane_nests(self) -> list[LaneNest]:
        """The loops over lanes with those that are spread together with them."""
        if self.flat is not None:
            return [LaneNest((), self.flat)]
        return _lane_nests(self.body)

    @property
    def iterators(self) -> set[str]:
        """Names of everything that changes while the phase runs."""
        flat = () if self.flat is None else (self.flat,)
        return {loop.iterator for loop in (*self.chain, *flat, *loops(self.body))}

    @property
    def turns(self) -> Polynomial:
        """Iterations of the parallel loops together."""
        total = Polynomial.constant(1)
        for extent in self.extents:
            total = total * extent
        return total

    @property
    def extents(self) -> tuple[Polynomial, ...]:
        """How often each parallel loop runs, never less than 0, each one factor."""
        found = (loop.high - loop.low for loop in self.chain)
        return tuple(as_factor(extent.at_least_zero()) for extent in found)


def _lane_nests(block: Block) -> list[LaneNest]:
    found: list[LaneNest] = []
    for node in block:
        match node:
            case Loop():
                own = lane_nest(node)
                found += _lane_nests(node.body) if own is None else [own]
            case Guard():
                found += _lane_nests(node.then) + _lane_nests(node.otherwise)
            case Instance():
                pass
    return found


def lane_nest(node: Node) -> LaneNest | None:
    """``node`` as a loop over lanes, alone or inside loops that are spread with it."""
    around: list[Loop] = []
    while isinstance(node, Loop):
        if node.lanes and is_vector(node):
            return LaneNest(tuple(around), node) if _is_fixed(node, around) else None
        if not (node.spread and len(node.body) == 1 and _is_fixed(node, around)):
            return None
        around.append(node)
        node = node.body[0]
    return None


def as_factor(value: Polynomial) -> Polynomial:
    """A value as one factor of a product, when it is a sum."""
    return value if len(value.terms) <= 1 else Polynomial.factor(f"({value})")


def as_divisor(value: Polynomial) -> str:
    """A value as C text that may stand after ``/`` and ``%``."""
    alone = value.number is not None or [(len(m), c) for m, c in value.terms] == [(1, 1)]
    return str(value) if alone else f"({value})"


def phases_of(nests: list[Block], scop: Scop) -> list[Nest]:
    """The phases of a kernel, in the order in which they run."""
    found: list[Nest] = []
    serial: list[Node] = []

    def flush() -> None:
        if serial:
            found.append(Nest((), None, tuple(serial)))
            serial.clear()

    for block in nests:
        for node in block:
            if isinstance(node, Loop) and node.parallel:
                flush()
                found.append(_parallel(node, scop))
            else:
                serial.append(node)
    flush()
    return [_flattened(nest, scop) for nest in found]


def _parallel(loop: Loop, scop: Scop) -> Nest:
    """The loops of a nest that starts with a parallel one."""
    if loop.lanes and is_vector(loop):
        return Nest((), loop, loop.body)
    chain = [loop]
    while (inner := _next(chain)) is not None:
        chain.append(inner)
    return Nest(tuple(chain), None, chain[-1].body)


def _next(chain: list[Loop]) -> Loop | None:
    """The parallel loop that is all there is inside the chain, if there is one."""
    body = chain[-1].body
    if len(body) != 1 or not isinstance(body[0], Loop):
        return None
    inner = body[0]
    lone = inner.parallel and not (inner.lanes and is_vector(inner))
    return inner if lone and _is_fixed(inner, chain) else None


def _is_fixed(loop: Loop, chain: list[Loop] | tuple[Loop, ...]) -> bool:
    """Whether the bounds of ``loop`` do not depend on the loops around it."""
    return not any(b.mentions(c.iterator) for b in (loop.low, loop.high) for c in chain)


def _flattened(nest: Nest, scop: Scop) -> Nest:
    """The phase as a flat one, where its only loop over lanes accumulates nothing."""
    if nest.flat is not None or len(nest.body) != 1 or not isinstance(nest.body[0], Loop):
        return nest
    loop = nest.body[0]
    if not (loop.lanes and is_vector(loop) and _is_fixed(loop, nest.chain)):
        return nest
    if any(_accumulates(i, loop, scop) for i in instances(loop.body)):
        return nest
    return replace(nest, flat=loop, body=loop.body)


def _accumulates(instance: Instance, loop: Loop, scop: Scop) -> bool:
    """Whether iterations of ``loop`` write the same element."""
    statement = scop.statement(instance.statement)
    iterators = dict(zip(statement.iterators, instance.position, strict=True))
    written = (polynomial(s, iterators) for s in target(statement).subscripts)
    return not any(p is not None and p.mentions(loop.iterator) for p in written)
