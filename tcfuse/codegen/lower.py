"""Loop nests to C++ functions, one for each phase of a kernel.

A parallel outer loop becomes the range ``[begin, end)`` that a phase is called with.  A lanes
loop becomes a vector loop over whole groups of lanes, unrolled when it accumulates (to hide the
latency of the adder), and one last group of which only the first lanes are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcfuse.codegen.bodies import Bodies
from tcfuse.codegen.body import BodyWriter
from tcfuse.codegen.elements import widest_bytes
from tcfuse.codegen.kernel_ast import (
    Block,
    Guard,
    Instance,
    Loop,
    Node,
    is_uniform,
    loops,
)
from tcfuse.codegen.scope import LaneLoop, Lines, Names, Squares
from tcfuse.codegen.tensors import MOST_LANES, Tensor
from tcfuse.codegen.values import Value, combined, folded, identity_text, spread
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop
from tcfuse.types import DType

GROUPS = 256  # groups of MOST_LANES iterations in one step of a parallel lanes loop
STEP = 16 * GROUPS


@dataclass(frozen=True, slots=True)
class PhaseBody:
    """One phase: its function's lines, number of iterations and work of each, as C text."""

    lines: Lines
    extent: str
    cost: str


class NestWriter:
    """Writes the phases of one kernel."""

    def __init__(
        self,
        scop: Scop,
        tensors: Mapping[str, Tensor],
        unroll: int,
        *,
        reciprocals: bool = False,
    ) -> None:
        self.scop = scop
        self.tensors = tensors
        self.names = Names()
        self.body = BodyWriter(scop, tensors, self.names, reciprocals)
        self.unroll = unroll
        self.bodies = Bodies(scop, tensors)

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
        self._block(block, lines, None)
        return PhaseBody(lines, "1", str(self.bodies.cost(block)))

    def _parallel(self, loop: Loop) -> PhaseBody:
        if loop.lanes and _is_vector(loop):
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
            total = total * _atom(extent)
        self._decode(chain, extents, lines)
        self._declare_lane_registers(loop, lines)
        with lines.braces("for (int64_t turn = begin; turn < end; ++turn)"):
            self._block(chain[-1].body, lines, None)
            self._advance(chain, lines)
        return PhaseBody(lines, str(total), str(self.bodies.cost(chain[-1].body)))

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
        low = f"{loop.low} + begin * {STEP}"
        high = f"tcf_min({loop.high}, {loop.low} + end * {STEP})"
        lines.add(f"const int64_t first = {low}, last = {high};")
        part = Loop(
            loop.iterator,
            Polynomial.factor("first"),
            Polynomial.factor("last"),
            loop.body,
            lanes=True,
        )
        self._lanes(part, lines, whole=extent)
        steps = (
            str((extent.number + STEP - 1) // STEP)
            if extent.number is not None
            else f"({extent} + {STEP - 1}) / {STEP}"
        )
        per_step = extent if (extent.number or STEP) < STEP else Polynomial.constant(STEP)
        return PhaseBody(lines, steps, str(self.bodies.cost(loop.body) * per_step))

    # ------------------------------------------------------------------ loops

    def _block(self, block: Block, lines: Lines, lane: LaneLoop | None) -> None:
        for node in block:
            match node:
                case Instance():
                    self.body.write(node, lines, lane)
                case Guard():
                    with lines.braces(f"if ({node.condition})"):
                        self._block(node.then, lines, lane)
                    if node.otherwise:
                        with lines.braces("else"):
                            self._block(node.otherwise, lines, lane)
                case Loop() if node.lanes and lane is None and _is_vector(node):
                    self._lanes(node, lines, whole=node.high - node.low)
                case Loop():
                    self._serial_loop(node, lines, lane)

    def _serial_loop(self, loop: Loop, lines: Lines, lane: LaneLoop | None) -> None:
        i = loop.iterator
        if lane is None:
            self._declare_lane_registers(loop, lines)
        low = str(loop.low)
        if lane is not None:
            low = self._squares(loop, lines, lane) or low
        with lines.braces(f"for (int64_t {i} = {low}; {i} < {loop.high}; ++{i})"):
            if lane is not None:
                lane.nested += 1
            self._block(loop.body, lines, lane)
            if lane is not None:
                lane.nested -= 1

    def _squares(self, loop: Loop, lines: Lines, lane: LaneLoop) -> str | None:
        """Whole squares of a loop that transposes; where the rest starts, if it does."""
        if loops(loop.body) or lane.partial is not None or lane.squares is not None:
            return None
        squares = Squares(loop.iterator, self.names.fresh("q"))
        inner = Lines(depth=lines.depth + 2)
        lane.squares, lane.nested = squares, lane.nested + 1
        self._block(loop.body, inner, lane)
        lane.squares, lane.nested = None, lane.nested - 1
        if not squares.loads:
            return None
        i, width, start = loop.iterator, lane.width, self.names.fresh("start")
        lines.add(f"int64_t {start} = {loop.low};")
        head = f"for (; {start} + {width} <= {loop.high}; {start} += {width})"
        with lines.braces(head):
            for (at, stride), (name, raw) in squares.loads.items():
                lines.add(f"tcf::vec<{raw}, {width}> {name}[{width}];")
                with lines.braces():
                    lines.add(f"const int64_t {i} = {start};")
                    lines.add(f"tcf::load_square<{width}>({name}, {at}, {stride});")
            lines.add("TCF_UNROLL")
            q = squares.index
            with lines.braces(f"for (int {q} = 0; {q} < {width}; ++{q})"):
                lines.add(f"const int64_t {i} = {start} + {q};")
                lines.extend(inner)
        return start

    def _declare_lane_registers(self, loop: Loop, lines: Lines) -> None:
        """A lanes loop that runs as scalars still needs its registers."""
        if loop.lanes:
            for tensor in self.bodies.lane_registers(loop.body):
                lines.add(f"{tensor.held} {tensor.name} = {tensor.held}(0);")

    def _lanes(self, loop: Loop, lines: Lines, *, whole: Polynomial) -> None:
        """A vector loop over ``loop``; ``whole`` is the extent that chooses the lane count."""
        width = self.names.fresh("L")
        widest = widest_bytes(self.bodies.dtypes(loop))
        extent = whole.number if whole.number is not None else 1 << 20
        registers = self.bodies.registers(loop, whole)
        wanted = f"{widest}, {extent}" + (f", {registers}" if registers > 1 else "")
        lines.add(f"constexpr int {width} = tcf::lanes_for({wanted});")
        before, steps = Lines(depth=lines.depth + 1), Lines(depth=lines.depth + 1)
        lane = LaneLoop(loop.iterator, width, before)
        base = self.names.fresh("base")
        copies = max(1, self.bodies.copies(loop.body, self.unroll) // registers)
        trial = Lines(depth=lines.depth + 3)
        self._copy(loop, base, 0, trial, lane, copies=1)
        unrolled = copies if lane.accumulators else 1
        steps.add(f"int64_t {base} = {loop.low};")
        if unrolled > 1:
            step = f"{unrolled} * {width}"
            head = f"for (; {base} + {step} <= {loop.high}; {base} += {step})"
            with steps.braces(head):
                for copy in range(unrolled):
                    self._copy(loop, base, copy, steps, lane, copies=unrolled)
        with steps.braces(f"for (; {base} + {width} <= {loop.high}; {base} += {width})"):
            self._copy(loop, base, 0, steps, lane, copies=1)
        most = MOST_LANES * registers
        if whole.number is None or whole.number % most:
            with steps.braces(f"if ({base} < {loop.high})"):
                lane.partial = "left"
                steps.add(f"const int64_t left = {loop.high} - {base};")
                self._copy(loop, base, 0, steps, lane, copies=1)
        with lines.braces(f"if ({loop.low} < {loop.high})"):
            lines.extend(before)
            self._accumulators(lane, lines, declare=True)
            lines.extend(steps)
            self._accumulators(lane, lines, declare=False)

    def _copy(
        self, loop: Loop, base: str, copy: int, lines: Lines, lane: LaneLoop, *, copies: int
    ) -> None:
        lane.copy = copy
        with lines.braces():
            shift = f" + {copy} * {lane.width}" if copy else ""
            lines.add(f"const int64_t {loop.iterator} = {base}{shift};")
            for tensor in self.bodies.lane_registers(loop.body):
                kind = f"tcf::vec<{tensor.held}, {lane.width}>"
                if tensor.dtype is DType.BOOL:
                    kind = f"tcf::mask<{lane.width}>"
                lines.add(f"{kind} {tensor.name} = {{}};")
            self._block(loop.body, lines, lane)

    def _accumulators(self, lane: LaneLoop, lines: Lines, *, declare: bool) -> None:
        for key, names in lane.accumulators.items():
            assert isinstance(key, tuple)
            target, offset, operator, dtype = key
            neutral = spread(Value(identity_text(operator, dtype), dtype), dtype, lane.width)
            if declare:
                lines.extend_declarations(neutral, names)
                continue
            total = names[0]
            for name in names[1:]:
                total = combined(operator, total, name, dtype)
            result = folded(operator, total, dtype)
            tensor = next(t for t in self.tensors.values() if t.name == target)
            place = target if tensor.register else f"{target}[{offset}]"
            old = place if tensor.register else tensor.decoded(place)
            text = combined(operator, old, result, dtype)
            lines.add(f"{place} = {text if tensor.register else tensor.encoded(text)};")


def _is_vector(loop: Loop) -> bool:
    """Whether a lanes loop runs as lanes: more than once, its statements whatever the lane."""
    return is_uniform(loop) and (loop.high - loop.low).number != 1


def _atom(extent: Polynomial) -> Polynomial:
    """An extent as one factor of a product, when it is a sum."""
    return extent if len(extent.terms) <= 1 else Polynomial.factor(f"({extent})")
