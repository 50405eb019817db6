"""Which legal regions are worth a kernel.

Contractions join when they are small (``may_leave_native``) or their region gains by them
(``graph.adoption``).  A region then loses nodes
at its border: views, which cost nothing outside; copies that would only grow the kernel; and
nodes that ONNX Runtime merges into a neighbour that stays with it.  Taking away a node that
nothing in the region precedes, or nothing follows, keeps the rest convex.  What is left is kept
when it is more than one cheap node, is not what ONNX Runtime makes one kernel of anyway, and is
expected to be faster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import onnx_ir as ir

from tcfuse.graph import native
from tcfuse.graph.blocked import NCHWC, is_scaling
from tcfuse.graph.boundary import components, group_of
from tcfuse.graph.cost import estimate, multiply_adds, window_reads
from tcfuse.graph.layout import Surroundings, reorder_us
from tcfuse.graph.legality import ALLOWED, Verdict, definition_of
from tcfuse.graph.machine import MACHINE, Machine
from tcfuse.graph.native_kernel import node_us
from tcfuse.graph.native_kernels import native_kernels
from tcfuse.graph.products import FEW_PRODUCTS
from tcfuse.graph.shapes import dims
from tcfuse.graph.spans import short_spans
from tcfuse.graph.traffic import elements, n_bytes
from tcfuse.opdef import Kind

MIN_SPEEDUP = 0.9
"""Expected speedup below which a region is not tried.

Half of the predictions are off by a third or more, and what is tried for nothing costs a second
of compiling, so only what is likely to lose is left out.
"""

MIN_GAIN_US = 0.2
"""What must be gained beyond that; less drowns in the cost of calling a custom operator."""

_QUANTIZATIONS = frozenset({"DequantizeLinear", "QuantizeLinear"})

MOST_TAPS = 8
"""Length of the filters up to which a convolution of single rows is taken."""

FOREIGN_BYTES = 4
"""A movement at the border goes when it moves this many times what it shares with the rest."""


def may_leave_native(node: ir.Node, opsets: Mapping[str, int]) -> Verdict:
    """Whether a legal node may be taken from ONNX Runtime at all.

    Contractions stay with its tuned kernels, and so do pools and resizes but the cubic ones;
    only those whose few operations cost less than the call join a region.
    """
    if node.domain == NCHWC and node.op_type == "Conv" and not is_scaling(node):
        return Verdict("a blocked Conv is left to ONNX Runtime's own kernel")
    if definition_of(node, opsets).kind is Kind.CONTRACTION:
        count = multiply_adds
    elif window_reads(node) and not _is_slow_resize(node):
        count = window_reads
    else:
        return ALLOWED
    shapes = [dims(v) for v in (*node.inputs, *node.outputs) if v is not None]
    is_static = all(s is not None and all(isinstance(d, int) for d in s) for s in shapes)
    if is_static and (count(node) <= FEW_PRODUCTS or _is_short_filter(node)):
        return ALLOWED
    return Verdict(f"{node.op_type} is left to ONNX Runtime's own kernel")


def _is_short_filter(node: ir.Node) -> bool:
    """Whether a convolution is a few terms of arithmetic on neighbours in one row.

    ONNX Runtime runs each channel as a matrix product of its own, at 3 billion products a
    second; in two dimensions its blocked kernels are good.
    """
    if node.op_type != "Conv" or len(node.inputs) < 2 or node.inputs[1] is None:
        return False
    shape = dims(node.inputs[1])
    if shape is None or len(shape) != 3 or shape[0] != node.attributes.get_int("group", 1):
        return False
    return shape[1] == 1 and isinstance(shape[2], int) and shape[2] <= MOST_TAPS


def _is_slow_resize(node: ir.Node) -> bool:
    """Whether ONNX Runtime interpolates element by element, many times slower than a kernel."""
    is_cubic = node.attributes.get_string("mode", "nearest") == "cubic"
    return is_cubic or bool(node.attributes.get_int("antialias", 0))


@dataclass(frozen=True, slots=True, eq=False)
class Pruner:
    """Prunes the regions of one graph.

    Attributes:
        opsets: What the model imports.
        around: What is known of the graph as ONNX Runtime runs it.
        conservative: Whether a region must be expected to win; otherwise it only has to leave
            alone what ONNX Runtime merges into its convolutions and matrix products.
        machine: What the model runs on.
        sizes: Values of named sizes, by which costs are counted.
        reasons: Filled in: why each node that was taken out is left to ONNX Runtime.
        absorbed: Filled in: what ONNX Runtime merges into products and convolutions.
        kinds: Filled in: of operators that were asked about.
        leaving: Filled in: whether nodes may leave a region whose border they come to.
        following: Filled in: whether a product or convolution is before nodes.
    """

    opsets: Mapping[str, int]
    around: Surroundings
    conservative: bool
    machine: Machine = MACHINE
    sizes: Mapping[str, int] = field(default_factory=dict)
    reasons: dict[ir.Node, str] = field(default_factory=dict)
    absorbed: native.Absorbed = field(default_factory=dict)
    kinds: dict[ir.Node, Kind] = field(default_factory=dict)
    leaving: dict[ir.Node, bool] = field(default_factory=dict)
    following: dict[ir.Node, bool] = field(default_factory=dict)

    def prune(self, regions: Sequence[Sequence[ir.Node]]) -> list[list[ir.Node]]:
        """What is left of ``regions``, each in topological order."""
        kept: list[list[ir.Node]] = []
        for region in regions:
            parts = components(self.trimmed(list(region)))
            for part in parts:
                # Cutting a view that held two parts together may leave views at new borders.
                trimmed = self.trimmed(part) if len(parts) > 1 else part
                verdict = self.worthwhile(trimmed) if trimmed else Verdict("nothing is left")
                if verdict:
                    kept.append(trimmed)
                else:
                    self.reasons.update(dict.fromkeys(trimmed, verdict.reason or ""))
        return kept

    def times(self, nodes: Sequence[ir.Node]) -> tuple[float, float]:
        """Microseconds of ``nodes`` as they are, and as a kernel, reorders included."""
        cost = estimate(group_of(nodes, self.opsets), self.sizes, self.machine)
        native_reorders, fused_reorders = reorder_us(
            set(nodes), self.around, self.machine, self.sizes
        )
        now = cost.native_us + native_reorders - self._merged_us(nodes)
        return now, cost.fused_us + fused_reorders

    def native_us(self, nodes: Sequence[ir.Node]) -> float:
        """Microseconds of ``nodes`` as they are, without reorders."""
        kernels = native_kernels(nodes)
        total = sum(kernel.time_us(self.sizes, self.machine) for kernel in kernels)
        return total - self._merged_us(nodes)

    def gain(self, nodes: Sequence[ir.Node]) -> float:
        """Microseconds that a kernel of ``nodes`` is expected to save."""
        now, then = self.times(nodes)
        return now - then

    def _merged_us(self, nodes: Sequence[ir.Node]) -> float:
        """Time of the members that ONNX Runtime merges into contractions among them."""
        if not any(self.kind(node) is Kind.CONTRACTION for node in nodes):
            return 0.0
        merged: native.Absorbed = {}
        saved = 0.0
        for node in nodes:
            after = native.epilogue(node, merged, self.around)
            if after is not None:
                merged[node] = after[0]
            if node.op_type in _QUANTIZATIONS:  # priced as part of a quantized operator
                continue
            if after is not None or native.prologue(node, self.around) is not None:
                saved += node_us(node, self.sizes, self.machine)
        return saved

    def kind(self, node: ir.Node) -> Kind:
        """The kind of a member."""
        found = self.kinds.get(node)
        if found is None:
            found = self.kinds[node] = definition_of(node, self.opsets).kind
        return found

    def trimmed(self, nodes: Sequence[ir.Node]) -> list[ir.Node]:
        """``nodes`` without those at the border that are better off outside."""
        members = dict.fromkeys(nodes)
        queue = deque(node for node in nodes if self.may_leave(node))
        while queue:
            node = queue.popleft()
            if node not in members:
                continue
            reason = self._better_outside(node, members)
            if reason is not None:
                del members[node]
                self.reasons[node] = reason
                near = (n for n in dict.fromkeys(_around(node)) if n in members)
                queue.extend(n for n in near if self.may_leave(n))
        return list(members)

    def may_leave(self, node: ir.Node) -> bool:
        """Whether there are regions that are better off without ``node`` at their border."""
        found = self.leaving.get(node)
        if found is None:
            found = self.leaving[node] = (
                self.kind(node) is Kind.VIEW
                or node.op_type in COPIES_BOTH
                or native.may_be_epilogue(node, self.around, self.following)
                or native.prologue(node, self.around) is not None
            )
        return found

    def _better_outside(self, node: ir.Node, members: Mapping[ir.Node, None]) -> str | None:
        """Why ``node`` leaves the region, if it is at the border and should."""
        first = not any(v is not None and v.producer() in members for v in node.inputs)
        last = not any(user in members for v in node.outputs for user, _ in v.uses())
        if not first and not last:
            return None
        if self.kind(node) is Kind.VIEW and not self._is_call_saved(node, members):
            return f"{node.op_type} at the border of a region costs nothing in ONNX Runtime"
        after = native.epilogue(node, self.absorbed, self.around) if first else None
        if after is not None:
            self.absorbed[node] = after[0]
            return after[1]
        reason = native.prologue(node, self.around) if last else None
        if (
            reason is None
            and self.conservative
            and self.kind(node) is Kind.MOVEMENT
            and self._only_copies(node, members)
        ):
            return f"{node.op_type} at the border moves data that the region does not touch"
        return reason

    def _is_call_saved(self, node: ir.Node, members: Mapping[ir.Node, None]) -> bool:
        """Whether a view that lies between a kernel and one value spares a call in the kernel.

        In a graph that ONNX Runtime is still to optimize it may go with others.
        """
        if not self.around.final or node.outputs[0].is_graph_output():
            return False
        first, result = node.inputs[0], node.outputs[0]
        made = first is not None and first.producer() in members and len(first.uses()) == 1
        read = all(user in members for user, _ in result.uses())
        return made or read

    def _only_copies(self, node: ir.Node, members: Mapping[ir.Node, None]) -> bool:
        """Whether most of what a movement moves is neither made nor read in the region."""
        if node.op_type not in COPIES_BOTH:
            return False
        shared = sum(
            n_bytes(v) for v in node.inputs if v is not None and v.producer() in members
        ) + sum(n_bytes(v) for v in node.outputs if any(u in members for u, _ in v.uses()))
        return sum(n_bytes(v) for v in node.outputs) >= FOREIGN_BYTES * max(shared, 1)

    def worthwhile(self, nodes: Sequence[ir.Node]) -> Verdict:
        """Whether ``nodes`` should be a kernel."""
        rules = CONSERVATIVE if self.conservative else EAGER
        return next((v for rule in rules if not (v := rule(self, nodes))), ALLOWED)


COPIES_BOTH = frozenset({"Concat", "Expand", "Pad", "Tile"})
"""Movements whose result may have little to do with the region's share of it."""


def _around(node: ir.Node) -> list[ir.Node]:
    """The nodes whose border status may change when ``node`` goes."""
    makers = [v.producer() for v in node.inputs if v is not None]
    users = [user for v in node.outputs for user, _ in v.uses()]
    return [m for m in makers if m is not None] + users


def does_something(pruner: Pruner, nodes: Sequence[ir.Node]) -> Verdict:
    """A region computes, or moves data at least twice."""
    real = list(islice((n for n in nodes if pruner.kind(n) is not Kind.VIEW), 2))
    if not real:
        return Verdict("only relabels dimensions")
    if [pruner.kind(node) for node in real] == [Kind.MOVEMENT]:
        return Verdict(f"a single {real[0].op_type} is a copy, as fast in ONNX Runtime")
    return ALLOWED


def more_than_one(pruner: Pruner, nodes: Sequence[ir.Node]) -> Verdict:
    """A single operator is a region only where ONNX Runtime's kernel for it is slow."""
    real = list(islice((n for n in nodes if pruner.kind(n) is not Kind.VIEW), 2))
    if len(real) != 1:
        return ALLOWED
    (node,) = real
    if node.op_type not in native.SLOW_ALONE and not short_spans(node):
        return Verdict(f"nothing to fuse: ONNX Runtime runs a single {node.op_type} well")
    if max(elements(v) for v in node.outputs) < native.SLOW_ELEMENTS:
        return Verdict(f"a single {node.op_type} of so few elements is not worth a kernel")
    return ALLOWED


def not_native(pruner: Pruner, nodes: Sequence[ir.Node]) -> Verdict:
    """A region is more than one of ONNX Runtime's own fused kernels."""
    real = [node for node in nodes if pruner.kind(node) is not Kind.VIEW]
    return native.not_one_native_kernel(real, pruner.around)


def expected_to_win(pruner: Pruner, nodes: Sequence[ir.Node]) -> Verdict:
    """The kernel, with the reorders it causes, beats ONNX Runtime's kernels with theirs."""
    now, then = pruner.times(nodes)
    if now < MIN_SPEEDUP * then + MIN_GAIN_US:
        return Verdict(f"not expected to be faster: {then:.1f} us fused, {now:.1f} us as it is")
    return ALLOWED


Rule = Callable[[Pruner, Sequence[ir.Node]], Verdict]
EAGER: tuple[Rule, ...] = (does_something,)
CONSERVATIVE: tuple[Rule, ...] = (does_something, more_than_one, not_native, expected_to_win)
