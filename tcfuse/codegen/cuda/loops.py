"""Loops to CUDA C: what a team of threads does in one iteration of the parallel loops.

All threads of a team run everything outside loops over lanes, and the first of them writes what
is written to memory there.  A loop over lanes is divided: thread ``tcf_rank`` runs groups of
``TCF_L`` neighbouring iterations, ``TCF_TEAM`` groups apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tcfuse.codegen.cuda.nest import LaneNest, as_factor, lane_nest
from tcfuse.codegen.cuda.vectors import Vector
from tcfuse.codegen.cuda.waits import Wait
from tcfuse.codegen.kernel_ast import Block, Instance, Loop
from tcfuse.codegen.loops import LoopWriter
from tcfuse.codegen.scope import LaneLoop, Lines
from tcfuse.codegen.style import Style
from tcfuse.codegen.tensors import Tensor
from tcfuse.codegen.values import Value, combined, folded, identity_text, spread
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop
from tcfuse.types import DType

INDEX = "tcf_index"
LANES = "TCF_L"
GROUP = "tcf_group"  # the number of a group of lanes among those of its thread
TOGETHER = {"+": "sum", "*": "product", "min": "min", "max": "max"}
BOOLEAN = {"+": "any", "*": "all", "min": "all", "max": "any"}


class TeamWriter(LoopWriter):
    """Writes what one team does, or one thread of a flat phase."""

    index = INDEX
    prefetches = False
    reads_once = True

    def __init__(
        self,
        scop: Scop,
        tensors: Mapping[str, Tensor],
        *,
        reciprocals: bool,
        vector: Vector,
        rows: Collection[str] = (),
        barriers: Mapping[int, Wait] | None = None,
    ) -> None:
        """A writer.

        Args:
            scop: The statements.
            tensors: Where the tensors are.
            reciprocals: As for ``Evaluation``.
            vector: The widest groups of lanes.
            rows: Tensors that stay in the registers of the threads through several loops.
            barriers: Before which nodes, by identity, the threads of a team wait, and how.
        """
        super().__init__(scop, tensors, Style(1, reciprocals=reciprocals))
        self.rows = frozenset(tensors[name].name for name in rows)
        self.barriers = barriers or {}
        self.vector = vector

    def block(self, block: Block, lines: Lines, lane: LaneLoop | None) -> None:
        """Everything in ``block``, in order, with the barriers in between."""
        for node in block:
            if id(node) in self.barriers:
                lines.add(f"team.{self.barriers[id(node)].value}();")
            nest = lane_nest(node) if lane is None else None
            if nest is not None and nest.around:
                self._spread(nest, lines)
            else:
                super().block((node,), lines, lane)

    def instance(self, instance: Instance, lines: Lines, lane: LaneLoop | None) -> None:
        """One instance; outside lanes, the first thread alone writes to memory."""
        if lane is not None:
            super().instance(instance, lines, lane)
            return
        statement = self.bodies.scop.statement(instance.statement)
        if self.tensors[statement.comprehension.tensor].register:
            super().instance(instance, lines, None)
            return
        with lines.braces("if (tcf_rank == 0)"):
            super().instance(instance, lines, None)

    def squares(self, loop: Loop, lines: Lines, lane: LaneLoop) -> str | None:
        """None: transposes in registers are the CPU's."""
        return None

    def declare(self, tensor: Tensor, lines: Lines, lane: LaneLoop | None) -> None:
        """The registers of a tensor; rows are declared where a turn begins."""
        if tensor.name not in self.rows:
            super().declare(tensor, lines, lane)

    def lanes(
        self, loop: Loop, lines: Lines, *, whole: Polynomial, shortest: int | None = None
    ) -> None:
        """A loop over lanes, divided among the threads of the team."""
        lane = LaneLoop(loop.iterator, LANES, Lines(depth=lines.depth + 1))
        self.copy(loop, Polynomial(), Lines(depth=lines.depth + 3), lane)  # finds accumulators
        steps = Lines(depth=lines.depth + 1)
        low, high = loop.low, loop.high
        steps.add("#pragma unroll (TCF_G ? TCF_G : 1)")
        count = f"tcf::groups<TCF_G, TCF_TEAM, TCF_L>({high - low})"
        with steps.braces(f"for (int {GROUP} = 0; {GROUP} < {count}; ++{GROUP})"):
            base = self.names.fresh("base")
            at = f"({GROUP} * TCF_TEAM + tcf_rank) * TCF_L"
            steps.add(f"const {INDEX} {base} = {low + Polynomial.factor(at)};")
            self.group(loop, base, steps, lane)
        self.accumulators(lane, lines, declare=True)
        with lines.braces(f"if ({low} < {high})"):
            lines.extend(lane.before)
            lines.extend(steps)
        self.accumulators(lane, lines, declare=False)  # a barrier, whatever the sizes are

    def _spread(self, nest: LaneNest, lines: Lines) -> None:
        """A loop over lanes and those around it, their iterations divided together."""
        loop = nest.loop
        lane = LaneLoop(loop.iterator, LANES, Lines(depth=lines.depth + 2))
        self.copy(loop, Polynomial(), Lines(depth=lines.depth + 4), lane)  # finds accumulators
        groups, total = self.names.fresh("groups"), self.names.fresh("total")
        steps = Lines(depth=lines.depth)
        steps.add("#pragma unroll (TCF_G ? TCF_G : 1)")
        count = f"tcf::groups<TCF_G, TCF_TEAM, 1>({total})"
        with steps.braces(f"for (int {GROUP} = 0; {GROUP} < {count}; ++{GROUP})"):
            rest, base = self.names.fresh("rest"), self.names.fresh("base")
            steps.add(f"{INDEX} {rest} = {GROUP} * TCF_TEAM + tcf_rank;")
            steps.add(f"if ({rest} >= {total}) continue;")
            at = loop.low + Polynomial.factor(f"{rest} % {groups} * TCF_L")
            steps.add(f"const {INDEX} {base} = {at};")
            steps.add(f"{rest} /= {groups};")
            for outer in reversed(nest.around[1:]):
                extent = as_factor(outer.high - outer.low)
                value = outer.low + Polynomial.factor(f"{rest} % {extent}")
                steps.add(f"const {INDEX} {outer.iterator} = {value};")
                steps.add(f"{rest} /= {extent};")
            first = nest.around[0]
            value = first.low + Polynomial.factor(rest)
            steps.add(f"const {INDEX} {first.iterator} = {value};")
            body = Lines(depth=steps.depth)
            self.group(loop, base, body, lane)
            steps.extend(lane.before)
            steps.extend(body)
        extent = (loop.high - loop.low).at_least_zero()
        lines.add(f"const {INDEX} {groups} = ({extent} + TCF_L - 1) / TCF_L;")
        product = Polynomial.factor(groups)
        for outer in nest.around:
            product = product * as_factor((outer.high - outer.low).at_least_zero())
        lines.add(f"const {INDEX} {total} = {product};")
        self.accumulators(lane, lines, declare=True)
        lines.extend(steps)
        self.accumulators(lane, lines, declare=False)

    def one_group(self, loop: Loop, base: str, lines: Lines) -> None:
        """The iterations from ``base`` on that a thread of a flat phase runs, alone."""
        steps = Lines(depth=lines.depth)
        lane = LaneLoop(loop.iterator, LANES, lines)
        self.group(loop, base, steps, lane)
        lines.extend(steps)

    def group(self, loop: Loop, base: str, lines: Lines, lane: LaneLoop) -> None:
        """The iterations of one thread from ``base`` on, those that there are."""
        with lines.braces(f"if ({base} + TCF_L <= {loop.high})"):
            self.copy(loop, Polynomial.factor(base), lines, lane)
        if self.vector.fills(loop.high - loop.low):
            return
        with lines.braces(f"else if (TCF_L > 1 && {base} < {loop.high})"):
            lane.partial = "left"
            lines.add(f"const int left = int({loop.high} - {base});")
            self.copy(loop, Polynomial.factor(base), lines, lane)
            lane.partial = None

    def accumulators(self, lane: LaneLoop, lines: Lines, *, declare: bool) -> None:
        """The partial results of a loop over lanes: declared, or folded over the team."""
        for key, (name, *_) in lane.accumulators.items():
            assert isinstance(key, tuple)
            target, offset, operator, dtype = key
            if declare:
                neutral = Value(identity_text(operator, dtype), dtype)
                lines.extend_declarations(spread(neutral, dtype, lane.width), [name])
                continue
            kind = (BOOLEAN if dtype is DType.BOOL else TOGETHER)[operator]
            lines.add(f"const auto {name}_all = team.{kind}({folded(operator, name, dtype)});")
            tensor = next(t for t in self.tensors.values() if target in self.copies.names(t))
            if tensor.register:
                text = combined(operator, target, f"{name}_all", dtype)
                lines.add(f"{target} = {text};")
                continue
            place = f"{target}[{offset}]"
            text = combined(operator, tensor.decoded(place), f"{name}_all", dtype)
            lines.add(f"if (tcf_rank == 0) {place} = {tensor.encoded(text)};")
