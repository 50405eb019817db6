"""Loops to C++ text: serial loops, register blocks, and vector lanes.

A lanes loop becomes a vector loop over whole groups of lanes, unrolled when it accumulates (to
hide the latency of the adder), and one last group: of which only the first lanes are used, or,
where running an iteration twice does no harm, which overlaps the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcfuse.codegen.bodies import Bodies
from tcfuse.codegen.body import BodyWriter
from tcfuse.codegen.copies import Copies
from tcfuse.codegen.elements import widest_bytes
from tcfuse.codegen.kernel_ast import Block, Guard, Instance, Loop, is_uniform, loops
from tcfuse.codegen.scope import LaneLoop, Lines, Names, Squares
from tcfuse.codegen.streams import MOST_STREAMED_WORK, Streams
from tcfuse.codegen.style import Style
from tcfuse.codegen.tensors import MOST_LANES, PANEL, Tensor, has_panels
from tcfuse.codegen.transposes import LANES, MEETING, Transpose, transpose_in
from tcfuse.codegen.values import Value, combined, folded, identity_text, spread
from tcfuse.mapping.blocking import GROUPS
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop
from tcfuse.types import DType


class LoopWriter:
    """Writes the loops of one kernel."""

    index = "int64_t"  # the C type of iterators
    reads_once = False  # as for ``Frame``
    prefetches = True  # rows at computed indices, some iterations ahead

    def __init__(self, scop: Scop, tensors: Mapping[str, Tensor], style: Style) -> None:
        self.tensors = tensors
        self.names = Names()
        self.style = style
        self.bodies = Bodies(scop, tensors, style.registers)
        self.fences: dict[str, None] = {}  # C conditions of what the phase streams
        self.panel = "tcf::panel" if has_panels(scop) else str(MOST_LANES)
        body = BodyWriter(
            scop, tensors, self.names, style.reciprocals, reads_once=self.reads_once
        )
        self.copies = Copies(body)

    def block(self, block: Block, lines: Lines, lane: LaneLoop | None) -> None:
        """Everything in ``block``, in order."""
        for node in block:
            match node:
                case Instance():
                    self.instance(node, lines, lane)
                case Guard():
                    self._guarded(node, lines, lane)
                case Loop() if node.block and is_uniform(node):
                    self._blocked(node, lines, lane)
                case Loop() if node.lanes and lane is None and is_vector(node):
                    self.lanes(node, lines, whole=node.high - node.low)
                case Loop():
                    self.serial(node, lines, lane)

    def instance(self, instance: Instance, lines: Lines, lane: LaneLoop | None) -> None:
        """One instance of a statement, in every copy there is."""
        self.copies.write(instance, lines, lane)

    def _guarded(self, guard: Guard, lines: Lines, lane: LaneLoop | None) -> None:
        if lane is not None:
            lane.guarded += 1
        with lines.braces(f"if ({guard.condition})"):
            self.block(guard.then, lines, lane)
        if guard.otherwise:
            with lines.braces("else"):
                self.block(guard.otherwise, lines, lane)
        if lane is not None:
            lane.guarded -= 1

    # ------------------------------------------------------------------ serial loops

    def serial(self, loop: Loop, lines: Lines, lane: LaneLoop | None) -> None:
        """One iteration after the other."""
        i = loop.iterator
        low = str(loop.low)
        if lane is not None:
            low = self.squares(loop, lines, lane) or low
        with lines.braces(f"for ({self.index} {i} = {low}; {i} < {loop.high}; ++{i})"):
            if lane is None:
                self.declare_lane_registers(loop, lines)
            else:
                lane.nested += 1
                if self.prefetches:
                    lane.inside.append((i, str(loop.high)))
            self.block(loop.body, lines, lane)
            if lane is not None:
                lane.nested -= 1
                if self.prefetches:
                    lane.inside.pop()

    def squares(self, loop: Loop, lines: Lines, lane: LaneLoop) -> str | None:
        """Whole squares of a loop that transposes; where the rest starts, if it does."""
        if loops(loop.body) or lane.squares is not None or len(self.copies) > 1:
            return None
        if lane.partial is not None and not self.bodies.copies_only(loop.body):
            return None
        written = frozenset(tensor.name for tensor in self.bodies.written(loop.body))
        kept = frozenset(tensor.name for tensor in self.bodies.written_once(loop.body))
        squares = Squares(loop.iterator, self.names.fresh("q"), written, kept, lane.guarded)
        inner = Lines(depth=lines.depth + 3)
        lane.squares, lane.nested = squares, lane.nested + 1
        self.block(loop.body, inner, lane)
        lane.squares, lane.nested = None, lane.nested - 1
        if not squares.loads and not squares.stores:
            return None
        i, width, start = loop.iterator, lane.width, self.names.fresh("start")
        side = self.names.fresh("Q")
        most = "" if loop.longest is None else f", {loop.longest}"
        lines.add(f"constexpr int {side} = tcf::square_of({width}{most});")
        lines.add(f"int64_t {start} = {loop.low};")
        again = self.bodies.copies_only(loop.body)  # the last square may overlap the one before
        with lines.braces(f"if ({start} + {side} <= {loop.high})"):
            head = f"for (; {start} + {side} <= {loop.high}; {start} += {side})"
            if again:
                head = f"for (; {start} < {loop.high}; {start} += {side})"
            with lines.braces(head):
                if again:
                    lines.add(f"{start} = tcf_min({start}, {loop.high} - {side});")
                for (at, stride), (name, raw) in squares.loads.items():
                    lines.add(f"tcf::vec<{raw}, {width}> {name}[{side}];")
                    with lines.braces():
                        lines.add(f"const int64_t {i} = {start};")
                        rows = f", {lane.partial}" if lane.partial else ""
                        load = f"tcf::load_columns<{side}, {width}>"
                        lines.add(f"{load}({name}, {at}, {stride}{rows});")
                for name, raw in squares.stores.values():
                    lines.add(f"tcf::vec<{raw}, {width}> {name}[{side}];")
                if not self.bodies.waits(loop.body):  # code that long is better left a loop
                    lines.add("TCF_UNROLL")
                q = squares.index
                with lines.braces(f"for (int {q} = 0; {q} < {side}; ++{q})"):
                    lines.add(f"const int64_t {i} = {start} + {q};")
                    lines.extend(inner)
                for (at, stride), (name, _) in squares.stores.items():
                    with lines.braces():
                        lines.add(f"const int64_t {i} = {start};")
                        store = f"tcf::store_columns<{side}, {width}>"
                        lines.add(f"{store}({at}, {stride}, {name});")
        return start

    def declare_lane_registers(self, loop: Loop, lines: Lines) -> None:
        """A lanes loop that runs as scalars still needs its registers."""
        if loop.lanes:
            for tensor in self.bodies.lane_registers(loop.body):
                for name in self.copies.names(tensor):
                    lines.add(f"{tensor.held} {name} = {tensor.held}(0);")

    # ------------------------------------------------------------------ register blocks

    def _blocked(self, loop: Loop, lines: Lines, lane: LaneLoop | None) -> None:
        """A loop in blocks of several sizes, the largest first."""
        i, outside = loop.iterator, self.copies.current
        own = self.bodies.registers_written(loop.body)
        lanes_inside = any(inner.lanes for inner in loops(loop.body))
        with lines.braces():  # two such loops may follow each other
            lines.add(f"int64_t {i} = {loop.low};")
            for size in _covering(loop):
                rows = [Polynomial.constant(k) for k in range(size)]
                with lines.braces(f"for (; {i} + {size} <= {loop.high}; {i} += {size})"):
                    self.copies.current = self.copies.within(i, rows, own)
                    for tensor in own:
                        # A lanes loop declares its own; one that runs once is no loop any more.
                        if lane is not None or not tensor.lanes or not lanes_inside:
                            self.declare(tensor, lines, lane)
                    self.block(loop.body, lines, lane)
                    self.copies.current = outside

    # ------------------------------------------------------------------ lanes

    def lanes(
        self, loop: Loop, lines: Lines, *, whole: Polynomial, shortest: int | None = None
    ) -> None:
        """A vector loop over ``loop``.

        Args:
            loop: The loop.
            lines: Where it goes.
            whole: The extent that chooses the lane count.
            shortest: The fewest iterations that one run has, where that is less.
        """
        turned = transpose_in(loop, self.bodies.scop, self.tensors)
        if turned is None or len(self.copies) > 1:
            self._lanes(loop, lines, whole, shortest)
        else:
            self._transposed(loop, turned, lines, whole, shortest)

    def _transposed(
        self,
        loop: Loop,
        turned: Transpose,
        lines: Lines,
        whole: Polynomial,
        shortest: int | None,
    ) -> None:
        """Both loops in blocks, or as they are: a block of lanes is never short."""
        inner, fresh = turned.inner, self.names.fresh
        low, high, left, right = map(fresh, ("low", "high", "left", "right"))
        meet, rest = fresh("meet"), f"{loop.high} - {low}"
        lines.add(f"const bool {meet} = ({turned.apart}) % {MEETING} == 0;")
        head = f"int64_t {low} = {loop.low}, {high}; {low} < {loop.high}; {low} = {high}"
        with lines.braces(f"for ({head})"):
            few = f"{meet} && {rest} >= {2 * LANES}"
            lines.add(f"{high} = {few} ? {low} + {LANES} : {loop.high};")
            end = inner.high
            head = f"int64_t {left} = {inner.low}, {right}; {left} < {end}; {left} = {right}"
            with lines.braces(f"for ({head})"):
                few = f"{meet} && {end} - {left} > {MOST_LANES}"
                lines.add(f"{right} = {few} ? {left} + {MOST_LANES} : {end};")
                bounds = [Polynomial.factor(name) for name in (low, high, left, right)]
                body = replace(inner, low=bounds[2], high=bounds[3], most=inner.longest)
                part = replace(loop, low=bounds[0], high=bounds[1], body=(body,))
                self._lanes(part, lines, whole, shortest)

    def _lanes(self, loop: Loop, lines: Lines, whole: Polynomial, shortest: int | None) -> None:
        width = self.names.fresh("L")
        widest = widest_bytes(self.bodies.dtypes(loop))
        extent = whole.number if whole.number is not None else 1 << 20
        beside = self.style.vectors or GROUPS  # in a register block
        groups = beside if len(self.copies) > 1 and loops(loop.body) else 1
        registers = 1 if groups > 1 else self.bodies.registers(loop, whole)
        wanted = f"{widest}, {extent}" + (f", {registers}" if registers > 1 else "")
        if any(inner.block for inner in loops(loop.body)):
            wanted = f"{widest}, {extent}, {min(beside, GROUPS)}, {self.panel}"
        lines.add(f"constexpr int {width} = tcf::lanes_for({wanted});")
        lane = LaneLoop(loop.iterator, width, Lines(depth=lines.depth + 1))
        most = PANEL if any(inner.block for inner in loops(loop.body)) else MOST_LANES
        self.copy(loop, Polynomial(), Lines(depth=lines.depth + 3), lane)  # finds accumulators
        steps = Lines(depth=lines.depth + 1)
        if not lane.accumulators and self.bodies.repeatable(loop.body):
            short = extent < most or whole.number is None
            if shortest is not None:
                short = short or shortest < most * registers
            self._overlapping(loop, steps, lane, groups, short=short)
        else:
            copies = max(1, self.bodies.copies(loop.body, self.style.accumulators) // registers)
            unrolled = copies if lane.accumulators else 1
            rest = whole.number is None or whole.number % (most * registers) != 0
            self._disjoint(loop, steps, lane, unrolled, rest=rest)
        head = f"if ({loop.low} < {loop.high})"
        streams = self._streams(loop, whole, lane)
        if streams is not None:
            self._past_caches(loop, streams, lines, lane)
            if not streams.sizes and not streams.runs:
                return
            head = f"else {head}"
        with lines.braces(head):
            lines.extend(lane.before)
            self.accumulators(lane, lines, declare=True)
            lines.extend(steps)
            self.accumulators(lane, lines, declare=False)

    def _streams(self, loop: Loop, whole: Polynomial, lane: LaneLoop) -> Streams | None:
        """What ``loop`` stores past the caches, if it may do so."""
        far = len(self.copies) > 1 or bool(loops(loop.body))  # from what is written next
        if not lane.streamed or lane.accumulators or far:
            return None
        streamed = [t for t in self.tensors.values() if t.name in lane.streamed]
        streams = Streams.of(streamed, whole, self.style.streaming)
        twice = bool(streams.sizes or streams.runs)
        if streams.short or (twice and self.bodies.work(loop.body) > MOST_STREAMED_WORK):
            return None
        return streams

    def _past_caches(
        self, loop: Loop, streams: Streams, lines: Lines, outside: LaneLoop
    ) -> None:
        """Groups of lanes that are lines, and what is left before and behind them."""
        (name, offset), *_ = outside.streamed.items()
        width, base = self.names.fresh("L"), self.names.fresh("base")
        at = offset.put(loop.iterator, Polynomial.factor(base))
        start = offset.put(loop.iterator, loop.low)
        lane = LaneLoop(loop.iterator, width, Lines(depth=lines.depth + 1), streams=True)
        steps = Lines(depth=lines.depth + 1)
        with steps.braces(
            f"for (int64_t {base} = {loop.low}, left; {base} < {loop.high}; {base} += left)"
        ):
            before = f"tcf::into_line({name} + {at})"
            steps.add(f"left = tcf_min({width} - {before}, {loop.high} - {base});")
            with steps.braces(f"if (left == {width})"):
                self.copy(loop, Polynomial.factor(base), steps, lane)
            lane.partial = "left"
            with steps.braces("else"):
                self.copy(loop, Polynomial.factor(base), steps, lane)
        runs = [text.format(start=f"{name} + {start}") for text in streams.runs]
        tests = " && ".join((f"{loop.low} < {loop.high}", *streams.sizes, *runs))
        with lines.braces(f"if ({tests})"):
            lines.add(f"constexpr int {width} = tcf::line_of<{streams.raw}>({outside.width});")
            lines.extend(lane.before)
            lines.extend(steps)
        self.fences[" && ".join(streams.sizes)] = None

    def fence(self, lines: Lines) -> None:
        """The end of a phase, after which other threads may read what it streamed."""
        for test in self.fences:
            lines.add(f"if ({test}) tcf::streamed();" if test else "tcf::streamed();")
        self.fences.clear()

    def _disjoint(
        self, loop: Loop, steps: Lines, lane: LaneLoop, unrolled: int, *, rest: bool
    ) -> None:
        """Groups one after the other, and the first lanes of one more."""
        base, width = self.names.fresh("base"), lane.width
        start = Polynomial.factor(base)
        steps.add(f"int64_t {base} = {loop.low};")
        if unrolled > 1:
            step = f"{unrolled} * {width}"
            head = f"for (; {base} + {step} <= {loop.high}; {base} += {step})"
            with steps.braces(head):
                for copy in range(unrolled):
                    lane.copy = copy
                    shift = Polynomial.of({(width,): copy})
                    self.copy(loop, start + shift, steps, lane)
        lane.copy = 0
        with steps.braces(f"for (; {base} + {width} <= {loop.high}; {base} += {width})"):
            self.copy(loop, start, steps, lane)
        if rest:
            with steps.braces(f"if ({base} < {loop.high})"):
                self._first_lanes(loop, base, steps, lane)

    def _overlapping(
        self, loop: Loop, steps: Lines, lane: LaneLoop, groups: int, *, short: bool
    ) -> None:
        """Groups side by side; the last ones start early enough to be whole.

        Where the loop may be shorter than a group (``short``), it has the first lanes of one.
        """
        base, width, last = self.names.fresh("base"), lane.width, self.names.fresh("last")
        steps.add(f"int64_t {base} = {loop.low};")
        steps.add(f"const int64_t {last} = {loop.high} - {width};")
        with steps.braces(f"if ({base} <= {last})"):
            for count in dict.fromkeys((groups, 1)):
                room, step = f" + {count - 1} * {width}", f"{count} * {width}"
                if count == 1:
                    room, step = "", width
                head = f"for (; {base}{room} < {loop.high}; {base} += {step})"
                with steps.braces(head):
                    self._groups(loop, base, last, count, steps, lane)
        if short:
            with steps.braces("else"):
                self._first_lanes(loop, base, steps, lane)

    def _groups(
        self, loop: Loop, base: str, last: str, count: int, lines: Lines, lane: LaneLoop
    ) -> None:
        """That many groups of lanes side by side."""
        starts = [self.names.fresh("at") for _ in range(count)]
        for k, start in enumerate(starts):
            shift = f" + {k} * {lane.width}" if k else ""
            lines.add(f"const int64_t {start} = tcf_min({base}{shift}, {last});")
        first, outside = Polynomial.factor(starts[0]), self.copies.current
        shifts = [Polynomial(), *(Polynomial.factor(s) - first for s in starts[1:])]
        if count > 1:
            own = self.bodies.lane_registers(loop.body)
            self.copies.current = self.copies.within(loop.iterator, shifts, own)
        self.copy(loop, first, lines, lane)
        self.copies.current = outside

    def _first_lanes(self, loop: Loop, base: str, lines: Lines, lane: LaneLoop) -> None:
        """A group of which only the first lanes are used."""
        lane.partial = "left"
        lines.add(f"const int64_t left = {loop.high} - {base};")
        self.copy(loop, Polynomial.factor(base), lines, lane)
        lane.partial = None

    def copy(self, loop: Loop, start: Polynomial, lines: Lines, lane: LaneLoop) -> None:
        """The body for lanes from ``start`` on."""
        with lines.braces():
            lines.add(f"const {self.index} {loop.iterator} = {start};")
            for tensor in self.bodies.lane_registers(loop.body):
                self.declare(tensor, lines, lane)
            self.block(loop.body, lines, lane)

    def declare(self, tensor: Tensor, lines: Lines, lane: LaneLoop | None) -> None:
        """The registers of a tensor, one for each copy."""
        kind = tensor.held
        if tensor.lanes and lane is not None:
            kind = f"tcf::vec<{kind}, {lane.width}>"
            if tensor.dtype is DType.BOOL:
                kind = f"tcf::mask<{lane.width}>"
        for name in self.copies.names(tensor):
            lines.add(f"{kind} {name} = {{}};")

    def accumulators(self, lane: LaneLoop, lines: Lines, *, declare: bool) -> None:
        """The partial results of a loop over lanes: declared, or folded into their targets."""
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
            tensor = next(t for t in self.tensors.values() if target in self.copies.names(t))
            place = target if tensor.register else f"{target}[{offset}]"
            old = place if tensor.register else tensor.decoded(place)
            text = combined(operator, old, result, dtype)
            lines.add(f"{place} = {text if tensor.register else tensor.encoded(text)};")


def _covering(loop: Loop) -> list[int]:
    """Sizes of blocks that together run every iteration of ``loop``, the largest first."""
    left = (loop.high - loop.low).number
    if left is None:
        return list(dict.fromkeys((*loop.block, 1)))
    sizes = []
    for size in (*loop.block, 1):
        if left >= size:
            sizes.append(size)
            left %= size
    return sizes


def is_vector(loop: Loop) -> bool:
    """Whether a lanes loop runs as lanes: more than once, its statements whatever the lane."""
    return is_uniform(loop) and (loop.high - loop.low).number != 1
