"""Which row buffers a team's threads can keep in registers.

A row whose elements are all written and read in loops over the same lanes, each element in the
lane of its own number, never leaves the thread that runs the lane.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcfuse.codegen.cuda.nest import LaneNest, Nest, lane_nest
from tcfuse.codegen.kernel_ast import Guard, Instance, Loop
from tcfuse.mapping.access import touches
from tcfuse.mapping.storage import Buffer, Memory
from tcfuse.poly.polynomial import Polynomial, polynomial
from tcfuse.poly.scop import Scop


def private_rows(nest: Nest, scop: Scop, buffers: Mapping[str, Buffer]) -> dict[str, LaneNest]:
    """The rows of a phase that stay in one thread each, with a loop over their lanes."""
    found: dict[str, LaneNest | None] = {}

    def visit(node: Loop | Guard | Instance, lane: LaneNest | None) -> None:
        match node:
            case Loop():
                inner = lane_nest(node) if lane is None else lane
                for child in node.body:
                    visit(child, inner)
            case Guard():
                for child in (*node.then, *node.otherwise):
                    visit(child, lane)
            case Instance():
                for name, own in _rows(node, lane, scop, buffers):
                    before = found.setdefault(name, lane if own else None)
                    if not own or not _alike(before, lane):
                        found[name] = None

    if nest.flat is None:
        for part in nest.body:
            visit(part, None)
    return {name: loop for name, loop in found.items() if loop is not None}


def _rows(
    instance: Instance, lane: LaneNest | None, scop: Scop, buffers: Mapping[str, Buffer]
) -> list[tuple[str, bool]]:
    """The row buffers that an instance touches, and whether only in its own lane."""
    statement = scop.statement(instance.statement)
    places = dict(zip(statement.iterators, instance.position, strict=True))
    found = []
    for touch in touches(scop, statement):
        buffer = buffers.get(touch.tensor)
        if buffer is None or buffer.memory is not Memory.ROW or buffer.lanes:
            continue
        own = lane is not None
        if lane is not None:
            kept = [polynomial(touch.access.subscripts[d], places) for d in buffer.kept]
            own = kept == [Polynomial.factor(loop.iterator) for loop in lane.loops]
        found.append((touch.tensor, own))
    return found


def _alike(one: LaneNest | None, other: LaneNest | None) -> bool:
    """Whether two loops over lanes give the same iteration to the same thread."""
    if one is None or other is None:
        return False
    return one.bounds == other.bounds
