"""Loop nests to C++ functions, one for each phase of a kernel.

A parallel outer loop becomes the range ``[begin, end)`` that a phase is called with; the loops
inside are written by ``codegen.loops``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcfuse.codegen.duration import Durations
from tcfuse.codegen.kernel_ast import Block, Loop, Node, loops
from tcfuse.codegen.loops import LoopWriter, is_vector
from tcfuse.codegen.scope import Lines
from tcfuse.codegen.style import Style
from tcfuse.codegen.tensors import MOST_LANES, Tensor
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop

STEP = 256 * MOST_LANES  # iterations in one step of a parallel lanes loop
STEP_AROUND_LOOPS = 4 * MOST_LANES  # and of one that has loops inside


@dataclass(frozen=True, slots=True)
class PhaseBody:
    """One phase as C text: its function's lines, its iterations, picoseconds of one of them."""

    lines: Lines
    extent: str
    cost: str


class NestWriter:
    """Writes the phases of one kernel."""

    def __init__(
        self,
        scop: Scop,
        tensors: Mapping[str, Tensor],
        style: Style,
    ) -> None:
        self.loops = LoopWriter(scop, tensors, style)
        self.durations = Durations(scop, tensors)

    def phases(self, nests: list[Block]) -> list[PhaseBody]:
        """The phases of a kernel, in the order in which they run."""
        found: list[PhaseBody] = []
        serial: list[Node] = []
        for nest in nests:
            for node in nest:
                if isinstance(node, Loop) and node.parallel:
                    if serial:
                        found.append(self._serial(tuple(serial)))
                        serial = []
                    found.append(self._parallel(node))
                else:
                    serial.append(node)
        if serial:
            found.append(self._serial(tuple(serial)))
        return found

    # ------------------------------------------------------------------ phases

    def _serial(self, block: Block) -> PhaseBody:
        lines = Lines()
        self.loops.block(block, lines, None)
        self.loops.fence(lines)
        return PhaseBody(lines, "1", str(self.durations.block(block)))

    def _parallel(self, loop: Loop) -> PhaseBody:
        if loop.lanes and is_vector(loop):
            return self._parallel_lanes(loop)
        chain = [loop]
        while self._collapses(chain):
            inner = chain[-1].body[0]
            assert isinstance(inner, Loop)
            chain.append(inner)
        lines = Lines()
        extents = [c.high - c.low for c in chain]
        total = Polynomial.constant(1)
        for extent in extents:
            # two empty loops must not make a product that is positive
            total = total * _atom(extent if len(chain) == 1 else extent.at_least_zero())
        self._decode(chain, extents, lines)
        self.loops.declare_lane_registers(loop, lines)
        with lines.braces("for (int64_t turn = begin; turn < end; ++turn)"):
            self.loops.block(chain[-1].body, lines, None)
            self._advance(chain, lines)
        self.loops.fence(lines)
        return PhaseBody(lines, str(total), str(self.durations.block(chain[-1].body)))

    def _collapses(self, chain: list[Loop]) -> bool:
        """Whether the only thing in the innermost loop is a parallel loop of fixed bounds."""
        body = chain[-1].body
        if len(body) != 1 or not isinstance(body[0], Loop):
            return False
        inner = body[0]
        outer = [c.iterator for c in chain]
        fixed = not any(inner.low.mentions(i) or inner.high.mentions(i) for i in outer)
        return inner.parallel and not inner.lanes and fixed

    def _decode(self, chain: list[Loop], extents: list[Polynomial], lines: Lines) -> None:
        """Iterators of the first turn."""
        if len(chain) == 1:
            lines.add(f"int64_t {chain[0].iterator} = {chain[0].low} + begin;")
            return
        lines.add("int64_t rest = begin;")
        for loop, extent in zip(reversed(chain[1:]), reversed(extents[1:]), strict=True):
            lines.add(f"int64_t {loop.iterator} = {loop.low} + rest % ({extent});")
            lines.add(f"rest /= {_atom(extent)};")
        lines.add(f"int64_t {chain[0].iterator} = {chain[0].low} + rest;")

    def _advance(self, chain: list[Loop], lines: Lines) -> None:
        """Iterators of the next turn."""
        text = f"++{chain[0].iterator};"
        for loop in chain[1:]:
            name = loop.iterator
            text = f"if (++{name} == {loop.high}) {{ {name} = {loop.low}; {text} }}"
        lines.add(text)

    def _parallel_lanes(self, loop: Loop) -> PhaseBody:
        extent = loop.high - loop.low
        lines = Lines()
        step = STEP_AROUND_LOOPS if loops(loop.body) else STEP
        low = f"{loop.low} + begin * {step}"
        high = f"tcf_min({loop.high}, {loop.low} + end * {step})"
        lines.add(f"const int64_t first = {low}, last = {high};")
        part = Loop(
            loop.iterator,
            Polynomial.factor("first"),
            Polynomial.factor("last"),
            loop.body,
            lanes=True,
        )
        left = extent.number % step if extent.number is not None else 0
        self.loops.lanes(part, lines, whole=extent, shortest=left or None)
        self.loops.fence(lines)
        steps = (
            str((extent.number + step - 1) // step)
            if extent.number is not None
            else f"({extent} + {step - 1}) / {step}"
        )
        per_step = extent if (extent.number or step) < step else Polynomial.constant(step)
        cost = self.durations.block(loop.body, loop.iterator) * per_step
        return PhaseBody(lines, steps, str(cost))


def _atom(extent: Polynomial) -> Polynomial:
    """An extent as one factor of a product, when it is a sum."""
    return extent if len(extent.terms) <= 1 else Polynomial.factor(f"({extent})")
