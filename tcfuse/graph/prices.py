"""What the choices of a part cost: by the cost model, and by what was measured.

The same numbers as ``graph.cost`` has, from sums kept for each node, since a part has hundreds
of candidates.  A node that ONNX Runtime merges into a product or a convolution costs nothing
while that stays with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from tcfuse.graph import native
from tcfuse.graph.boundary import neighbours, static_inputs
from tcfuse.graph.cost import VECTOR, node_flops, region_flops
from tcfuse.graph.layout import reorder_us
from tcfuse.graph.native_kernel import node_us
from tcfuse.graph.native_kernels import FREE, native_kernels
from tcfuse.graph.part import Part, bits, set_of
from tcfuse.graph.products import product_of
from tcfuse.graph.traffic import PARTIAL, n_bytes
from tcfuse.graph.worth import Pruner

MERGING = frozenset({*native.QUANTIZED_ANCHORS, *native.POOLS})
"""Operators that take in what prepares their operands."""


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """What one node moves and computes.

    Attributes:
        reads: For each operand: a number for the value, the number of the node of the part that
            makes it or -1, and the bytes that are touched and that there are.
        writes: For each result: its bytes, the nodes of the part that read it as a bit set, and
            whether others need it too.
        flops: Weighted operations.
    """

    reads: tuple[tuple[int, int, int, int], ...]
    writes: tuple[tuple[int, int, bool], ...]
    flops: float


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Prices of regions and of ONNX Runtime's kernels in one part, in microseconds.

    Attributes:
        pruner: Knows the graph and the machine.
        merged: For nodes that ONNX Runtime merges into a product or a convolution, that node.
        doubt: What the predicted time of a region is multiplied by.
        native: ONNX Runtime's kernels: the set of their nodes, followed by the sets that are
            merged into it one by one, and the price.
        alone: ONNX Runtime's price of each node, whatever becomes of the others.
    """

    part: Part
    pruner: Pruner
    merged: Mapping[ir.Node, ir.Node]
    doubt: float = 1.0
    traffic: list[Traffic] = field(init=False)
    tables: int = field(init=False)
    native: list[tuple[list[int], float]] = field(init=False)
    alone: list[float] = field(init=False)

    def __post_init__(self) -> None:
        number = {node: k for k, node in enumerate(self.part.nodes)}
        values: dict[ir.Value, int] = {}
        found = [self._traffic(node, number, values) for node in self.part.nodes]
        object.__setattr__(self, "traffic", found)
        # Where operators of a region decide each other's price the cost model is asked.
        beside = [k for node, k in number.items() if _depends_on_others(node, number)]
        object.__setattr__(self, "tables", set_of(beside))
        object.__setattr__(self, "native", self._native(number))
        object.__setattr__(self, "alone", [self._alone_us(n, number) for n in self.part.nodes])

    def _traffic(
        self, node: ir.Node, number: Mapping[ir.Node, int], values: dict[ir.Value, int]
    ) -> Traffic:
        sizes, reads = self.pruner.sizes, []
        static = static_inputs(node, self.pruner.opsets)
        written = [n_bytes(value, sizes) for value in node.outputs]
        for position, value in enumerate(node.inputs):
            if value is None or position in static:
                continue
            touched = whole = n_bytes(value, sizes)
            if node.op_type in PARTIAL and position == 0:
                touched = sum(written)
            maker = value.producer()
            home = -1 if maker is None else number.get(maker, -1)
            reads.append((values.setdefault(value, len(values)), home, touched, whole))
        writes = []
        for value, size in zip(node.outputs, written, strict=True):
            users = {user for user, _ in value.uses()}
            inside = set_of(number[user] for user in users if user in number)
            others = value.is_graph_output() or any(user not in number for user in users)
            writes.append((size, inside, others))
        return Traffic(tuple(reads), tuple(writes), node_flops(node, sizes))

    def kernel_us(self, region: int) -> float:
        """Predicted time of a kernel for ``region``, as ``graph.cost.estimate`` has it."""
        moved, flops = 0, 0.0
        touched: dict[int, int] = {}
        for k in bits(region):
            traffic = self.traffic[k]
            flops += traffic.flops
            for value, home, amount, whole in traffic.reads:
                if home < 0 or not region >> home & 1:
                    touched[value] = min(touched.get(value, 0) + amount, whole)
            for size, inside, others in traffic.writes:
                if others or inside & ~region:
                    moved += size
        moved += sum(touched.values())
        if region & self.tables:
            flops = region_flops(self.part.members(region), self.pruner.sizes)
        machine = self.pruner.machine
        compute = flops / VECTOR / machine.hertz * 1e6
        return machine.fused_us + max(moved / machine.copy_rate(moved), compute)

    def region_us(self, region: int) -> float:
        """Predicted price of a region: its kernel, and what it adds to reorders."""
        return self.doubt * self.kernel_us(region) + self._reorders_us(region)

    def measured_us(self, region: int, gain: float) -> float:
        """Price of a region whose kernel was measured to save ``gain`` microseconds."""
        nodes = self.part.members(region)
        return self.pruner.native_us(nodes) - gain + self._reorders_us(region)

    def _reorders_us(self, region: int) -> float:
        pruner = self.pruner
        if not pruner.around.blocked:
            return 0.0
        nodes = set(self.part.members(region))
        now, then = reorder_us(nodes, pruner.around, pruner.machine, pruner.sizes)
        return then - now

    def _native(self, number: Mapping[ir.Node, int]) -> list[tuple[list[int], float]]:
        """ONNX Runtime's kernels, with their prices."""
        found: dict[int, tuple[list[int], float]] = {}
        behind: list[tuple[int, int]] = []
        for kernel in native_kernels(self.part.nodes):
            numbers = {number[node] for node in kernel.nodes}
            roots = {self.merged.get(node) for node in kernel.nodes}
            root = roots.pop() if len(roots) == 1 else None
            if root is not None and root in number:
                behind.append((number[root], set_of(numbers)))
                continue
            price = kernel.time_us(self.pruner.sizes, self.pruner.machine)
            bundle = [set_of(numbers)], 0.0 if root is not None else price
            found |= dict.fromkeys(numbers, bundle)
        for k, merged in behind:
            found[k][0].append(merged)
        return list({sets[0]: (sets, price) for sets, price in found.values()}.values())

    def rest_us(self, covered: int) -> float:
        """What ONNX Runtime takes for the nodes that no region has."""
        total = 0.0
        for sets, price in self.native:
            whole = True
            for number, nodes in enumerate(sets):
                whole = whole and not nodes & covered
                if not whole:
                    total += sum(self.alone[k] for k in bits(nodes & ~covered))
                elif number == 0:
                    total += price
        return total

    def _alone_us(self, node: ir.Node, number: Mapping[ir.Node, int]) -> float:
        """ONNX Runtime's kernel for one node."""
        if FREE in node.meta or self.merged.get(node, node) not in number:
            return 0.0
        return node_us(node, self.pruner.sizes, self.pruner.machine)


def merged_nodes(order: Sequence[ir.Node], pruner: Pruner) -> dict[ir.Node, ir.Node]:
    """Nodes that ONNX Runtime merges into a product or a convolution, and into which.

    Args:
        order: All nodes of a graph, in topological order.
        pruner: Knows the graph.
    """
    absorbed: native.Absorbed = {}
    found: dict[ir.Node, ir.Node] = {}
    for node in order:
        after = native.epilogue(node, absorbed, pruner.around)
        if after is None:
            continue
        anchored = (v for v in node.inputs if v is not None and native.anchor_of(v, absorbed))
        makers = (value.producer() for value in anchored)
        maker = next((maker for maker in makers if maker is not None), None)
        if maker is not None:
            absorbed[node] = after[0]
            found[node] = found.get(maker, maker)
    for node in order:
        if node not in found and native.prologue(node, pruner.around) is not None:
            reader = next((user for value in node.outputs for user, _ in value.uses()), None)
            if reader is not None and reader.op_type in MERGING:
                found[node] = reader
    return found


def _depends_on_others(node: ir.Node, part: Collection[ir.Node]) -> bool:
    """Whether what a node costs depends on which others are in its region."""
    if node.op_type == "Transpose":
        return any(
            other in part and product_of(other) is not None for other in neighbours(node)
        )
    return node.op_type == "QuantizeLinear"
