"""Phases to CUDA C: one function template each, and a ``__global__`` function a variant.

The template's parameters are the type of indices, the threads of a team, the lanes of a thread,
the vectors of a row that it keeps, and where rows are; what is printed once serves them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tcfuse.codegen.cuda.contraction import contraction_phase
from tcfuse.codegen.cuda.kernel import Kernel, PhaseText
from tcfuse.codegen.cuda.launch import Launch
from tcfuse.codegen.cuda.loops import GROUP, TeamWriter
from tcfuse.codegen.cuda.nest import LaneNest, Nest, as_divisor
from tcfuse.codegen.cuda.rows import private_rows
from tcfuse.codegen.cuda.squares import squares_phase
from tcfuse.codegen.cuda.variants import (
    Needs,
    Rows,
    Variant,
    divided_up,
    shared_bytes,
    turns_of,
    variants,
)
from tcfuse.codegen.cuda.vectors import Vector, choose_vector
from tcfuse.codegen.cuda.waits import Wait, barriers
from tcfuse.codegen.kernel_ast import instances, instances_outside_lanes
from tcfuse.codegen.scope import Lines
from tcfuse.codegen.tensors import Tensor, rounded_bytes
from tcfuse.cuda_options import CudaOptions
from tcfuse.mapping.storage import Memory
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import accesses

MULTIPROCESSOR_THREADS = 2048  # that one runs at once, on most GPUs


class PhaseWriter:
    """Writes the phases of one kernel."""

    def __init__(self, kernel: Kernel, options: CudaOptions) -> None:
        self.kernel = kernel
        self.options = options

    def write(self, nest: Nest, number: int) -> tuple[PhaseText, Polynomial]:
        """A phase, and the bytes of scratch memory that it needs for rows."""
        kernel = self.kernel
        vector = choose_vector(nest, kernel.scop, kernel.tensors, self.options.vector_bytes)
        private = private_rows(nest, kernel.scop, kernel.buffers)
        needs = self._needs(nest, private)
        chosen = variants(nest, vector, needs, self.options)
        symbol = f"{kernel.name}_{number}"
        most = self.options.vector_bytes
        tiled = contraction_phase(kernel, nest, f"{symbol}_tiled", needs.elements, most)
        if not tiled.launches:
            tiled = squares_phase(kernel, nest, f"{symbol}_squares", needs.elements, most)
        if tiled.is_complete:
            return tiled, Polynomial()
        pieces = [tiled.text] if tiled.launches else []
        if any(v.groups == 0 for v in chosen):
            pieces.append(self._template(f"{symbol}_body", nest, vector, {}))
        if any(v.groups > 0 for v in chosen):
            pieces.append(self._template(f"{symbol}_kept", nest, vector, private))
        launches = list(tiled.launches)
        for position, variant in enumerate(chosen):
            launch = self._launch(f"{symbol}_{position}", nest, variant, needs)
            body = f"{symbol}_{'kept' if variant.groups else 'body'}"
            pieces.append(kernel.entry(launch, f"{body}<{variant.arguments}>"))
            launches.append(launch)
        rows = Polynomial()
        if any(v.rows is Rows.GLOBAL for v in chosen):
            rows = needs.row_bytes * nest.turns
        return PhaseText("\n".join(pieces), tuple(launches)), rows

    # ------------------------------------------------------------------ what it needs

    def _needs(self, nest: Nest, private: Mapping[str, LaneNest]) -> Needs:
        rows = self._rows(nest)
        total = Polynomial()
        for name in rows:
            total = total + rounded_bytes(self.kernel.tensors[name])
        tensors = self.kernel.tensors.values()
        sizes = {t.size for t in tensors if not (t.register or t.lanes)}
        elements = tuple(sorted(sizes, key=str))
        memory = any(name not in private for name in rows)
        return Needs(len(private), total, memory, elements)

    def _rows(self, nest: Nest) -> list[str]:
        """The rows of a team that a phase uses."""
        used = self._used(nest)
        found = (b for b in self.kernel.buffers.values() if b.memory is Memory.ROW)
        return [b.tensor for b in found if not b.lanes and b.tensor in used]

    def _used(self, nest: Nest) -> set[str]:
        used: set[str] = set()
        for instance in instances(nest.body):
            statement = self.kernel.scop.statement(instance.statement)
            used.add(statement.comprehension.tensor)
            used |= {a.tensor for a in accesses(statement)}
        return used

    # ------------------------------------------------------------------ launches

    def _launch(self, symbol: str, nest: Nest, variant: Variant, needs: Needs) -> Launch:
        grid = divided_up(turns_of(nest, variant), variant.teams)
        shared = str(shared_bytes(variant, needs))
        most = 0
        if nest.flat is None and nest.chain:  # blocks stay, and take turn after turn
            most = self.options.waves * max(1, MULTIPROCESSOR_THREADS // variant.block)
        return Launch(symbol, str(grid), variant.block, shared, variant.when, most)

    # ------------------------------------------------------------------ the template

    def _template(
        self, name: str, nest: Nest, vector: Vector, private: Mapping[str, LaneNest]
    ) -> str:
        lines = Lines(depth=1)
        self.kernel.declare(lines)
        if nest.flat is not None:
            self._flat(nest, vector, lines)
        else:
            self._teams(nest, vector, lines, private)
        head = (
            "template <class tcf_index, int TCF_TEAM, int TCF_L, int TCF_G, int TCF_ROWS>\n"
            f"TCF_INLINE void {name}({self.kernel.signature}) {{"
        )
        return "\n".join([head, *lines.text, "}\n"])

    def _flat(self, nest: Nest, vector: Vector, lines: Lines) -> None:
        """Every thread runs groups of lanes, wherever they are."""
        loop = nest.flat
        assert loop is not None
        writer = self._writer(vector, {}, {})
        lines.add("constexpr int tcf_rank = 0; (void)tcf_rank;")
        lines.add(
            f"const tcf_index groups = ({(loop.high - loop.low).at_least_zero()}"
            " + TCF_L - 1) / TCF_L;"
        )
        total = Polynomial.factor("groups") * nest.turns
        lines.add(f"const tcf_index turns = {total};")
        head = "for (tcf_index turn = tcf::first_turn<1, tcf_index>(); turn < turns; "
        with lines.braces(head + "turn += tcf::teams<1, tcf_index>())"):
            if nest.chain:
                lines.add("tcf_index rest = turn / groups;")
                lines.add(f"const tcf_index base = {loop.low} + turn % groups * TCF_L;")
                self._decode(nest, lines)
            else:
                lines.add(f"const tcf_index base = {loop.low} + turn * TCF_L;")
            self._thread_rows(nest, lines)
            writer.one_group(loop, "base", lines)

    def _teams(
        self, nest: Nest, vector: Vector, lines: Lines, private: Mapping[str, LaneNest]
    ) -> None:
        """Every team runs turns."""
        rows = [name for name in self._rows(nest) if name not in private]
        waits = barriers(
            nest.body,
            self.kernel.scop,
            self._as_registers(private),
            rows,
            turns=[loop.iterator for loop in nest.chain] or None,
        )
        writer = self._writer(vector, private, waits)
        lines.add("tcf::team<TCF_TEAM> team;")
        lines.add("const int tcf_rank = team.rank(); (void)tcf_rank;")
        lines.add(f"const tcf_index turns = {nest.turns};")
        head = "for (tcf_index turn = tcf::first_turn<TCF_TEAM, tcf_index>(); turn < turns; "
        with lines.braces(head + "turn += tcf::teams<TCF_TEAM, tcf_index>())"):
            if nest.chain:
                lines.add("tcf_index rest = turn;")
                self._decode(nest, lines)
            self._team_rows(rows, lines)
            for name in private:
                t = self.kernel.tensors[name]
                lines.add(f"tcf::vec<{t.held}, TCF_L> {t.name}[TCF_G ? TCF_G : 1];")
            self._thread_rows(nest, lines)
            for tensor in self._uniform_registers(nest):
                lines.add(f"{tensor.held} {tensor.name} = {tensor.held}(0);")
            writer.block(nest.body, lines, None)

    def _writer(
        self, vector: Vector, private: Mapping[str, LaneNest], waits: Mapping[int, Wait]
    ) -> TeamWriter:
        return TeamWriter(
            self.kernel.scop,
            self._as_registers(private),
            reciprocals=self.kernel.reciprocals,
            vector=vector,
            rows=private,
            barriers=waits,
        )

    def _as_registers(self, private: Mapping[str, LaneNest]) -> dict[str, Tensor]:
        """The tensors, with rows that threads keep as the vector of the group in work."""
        found = dict(self.kernel.tensors)
        for name in private:
            row = found[name]
            found[name] = replace(row, name=f"{row.name}[{GROUP}]", register=True, lanes=True)
        return found

    def _decode(self, nest: Nest, lines: Lines) -> None:
        """The iterators of the parallel loops, from what is left of the turn's number."""
        for loop, extent in reversed(list(zip(nest.chain, nest.extents, strict=True))[1:]):
            value = _plus(loop.low, f"rest % {as_divisor(extent)}")
            lines.add(f"const tcf_index {loop.iterator} = {value};")
            lines.add(f"rest /= {extent};")
        first = nest.chain[0]
        lines.add(f"const tcf_index {first.iterator} = {_plus(first.low, 'rest')};")

    def _team_rows(self, rows: Sequence[str], lines: Lines) -> None:
        """Rows through which the threads of a team tell each other."""
        if not rows:
            return
        tensors = [self.kernel.tensors[name] for name in rows]
        total = Polynomial()
        for tensor in tensors:
            total = total + rounded_bytes(tensor)
        start, each = map(self.kernel.in_bytes, (self.kernel.scratch, total))
        lines.add(f"char* rows = TCF_ROWS == {int(Rows.SHARED)}")
        lines.add(f"    ? tcf_shared + team.number() * ({each})")
        lines.add(f"    : scratch + ({start}) + int64_t(turn) * ({each});")
        at = Polynomial()
        for tensor in tensors:
            place = f"rows + {self.kernel.in_bytes(at)}"
            lines.add(f"{tensor.raw}* {tensor.name} = ({tensor.raw}*)({place});")
            at = at + rounded_bytes(tensor)

    def _thread_rows(self, nest: Nest, lines: Lines) -> None:
        """Rows of which each lane has its own."""
        used = self._used(nest)
        for name, buffer in self.kernel.buffers.items():
            tensor = self.kernel.tensors[name]
            if buffer.memory is Memory.ROW and buffer.lanes and name in used:
                lines.add(f"alignas(16) {tensor.raw} {tensor.name}[{tensor.size}];")

    def _uniform_registers(self, nest: Nest) -> list[Tensor]:
        """Registers that are alike in all threads; a lane's are where no other lane runs."""
        scop, used = self.kernel.scop, self._used(nest)
        lone = (scop.statement(i.statement) for i in instances_outside_lanes(nest.body))
        alone = {statement.comprehension.tensor for statement in lone}
        found = ((n, t) for n, t in self.kernel.tensors.items() if n in used and t.register)
        return [t for n, t in found if not t.lanes or n in alone]


def _plus(low: Polynomial, text: str) -> str:
    return str(low + Polynomial.factor(text)) if low.terms else text
