"""What the choices of a part cost: by the cost model, and by what was measured.

The same numbers as ``graph.cost`` has, for many regions at once from what is known of each
node, since a part has hundreds of candidates.  A node that ONNX Runtime merges into a product
or a convolution costs nothing while that stays with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from tcfuse.graph import native
from tcfuse.graph.boundary import neighbours
from tcfuse.graph.cost import VECTOR, region_flops
from tcfuse.graph.layout import reorder_us
from tcfuse.graph.native_kernels import FREE, native_kernels
from tcfuse.graph.node_costs import NodeCosts
from tcfuse.graph.part import Part, bits, rows, set_of
from tcfuse.graph.products import product_of
from tcfuse.graph.region_traffic import RegionTraffic
from tcfuse.graph.worth import Pruner

MERGING = frozenset({*native.QUANTIZED_ANCHORS, *native.POOLS})
"""Operators that take in what prepares their operands."""

LOOKED_UP = frozenset({"QuantizeLinear"})
"""Operators behind which functions may be looked up, or need not be computed."""


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Prices of regions and of ONNX Runtime's kernels in one part, in microseconds.

    Attributes:
        pruner: Knows the graph and the machine.
        merged: For nodes that ONNX Runtime merges into a product or a convolution, that node.
        costs: Of single nodes.
        doubt: What the predicted time of a region is multiplied by.
        traffic: What the nodes read and write.
        native: ONNX Runtime's kernels: the set of their nodes, followed by the sets that are
            merged into it one by one, and the price.
        alone: ONNX Runtime's price of each node, whatever becomes of the others.
    """

    part: Part
    pruner: Pruner
    merged: Mapping[ir.Node, ir.Node]
    costs: NodeCosts
    doubt: float = 1.0
    traffic: RegionTraffic = field(init=False)
    native: list[tuple[list[int], float]] = field(init=False)
    alone: list[float] = field(init=False)
    _flops: np.ndarray = field(init=False)
    _turned: list[tuple[int, int]] = field(init=False)
    _quantized: int = field(init=False)
    _single: np.ndarray = field(init=False)
    _several: list[tuple[int, list[int], float]] = field(init=False)

    def __post_init__(self) -> None:
        nodes = self.part.nodes
        number = {node: k for k, node in enumerate(nodes)}
        costs = [self.costs.of(node) for node in nodes]
        native = self._native(number)
        single, several = np.zeros(len(nodes)), []
        for sets, price in native:
            if len(sets) > 1 or sets[0].bit_count() > 1:
                several.append((sum(sets), sets, price))
            else:
                single[sets[0].bit_length() - 1] = price
        found = {
            "traffic": RegionTraffic(nodes, costs),
            "native": native,
            "alone": [
                0.0 if FREE in n.meta or self.merged.get(n, n) not in number else cost.alone_us
                for n, cost in zip(nodes, costs, strict=True)
            ],
            "_flops": np.array([cost.flops for cost in costs]),
            "_turned": list(_turned(number)),
            "_quantized": set_of(k for n, k in number.items() if n.op_type in LOOKED_UP),
            "_single": single,
            "_several": several,
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def kernels_us(self, regions: Sequence[int]) -> list[float]:
        """Predicted times of kernels, as ``graph.cost.estimate`` has them."""
        if not regions:
            return []
        chosen = rows(regions, len(self.part.nodes))
        flops = chosen @ self._flops
        for k, products in self._turned:
            mapped = [bool(region >> k & 1 and region & products) for region in regions]
            flops -= np.array(mapped) * self._flops[k]
        for j, region in enumerate(regions):
            if region & self._quantized:  # its nodes decide each other's price
                flops[j] = region_flops(self.part.members(region), self.pruner.sizes)
        machine = self.pruner.machine
        compute = flops / VECTOR / machine.hertz * 1e6
        return [
            machine.fused_us + max(moved / machine.copy_rate(moved), time)
            for moved, time in zip(
                self.traffic.moved(chosen).tolist(), compute.tolist(), strict=True
            )
        ]

    def regions_us(self, regions: Sequence[int]) -> list[float]:
        """Predicted prices of regions: their kernels, and what they add to reorders."""
        times = self.kernels_us(regions)
        return [
            self.doubt * time + self._reorders_us(region)
            for region, time in zip(regions, times, strict=True)
        ]

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
            if len(kernel.nodes) == 1:
                price = self.costs.of(kernel.nodes[0]).alone_us
            else:
                price = kernel.time_us(self.pruner.sizes, self.pruner.machine)
            bundle = [set_of(numbers)], 0.0 if root is not None else price
            found |= dict.fromkeys(numbers, bundle)
        for k, merged in behind:
            found[k][0].append(merged)
        return list({sets[0]: (sets, price) for sets, price in found.values()}.values())

    def rest_us(self, covered: int) -> float:
        """What ONNX Runtime takes for the nodes that no region has."""
        return self.rests_us([covered])[0]

    def rests_us(self, covered: Sequence[int]) -> list[float]:
        """The same beside each of several sets."""
        if not covered:
            return []
        totals = (~rows(covered, len(self.part.nodes)) @ self._single).tolist()
        return [
            total + self._several_us(some) for some, total in zip(covered, totals, strict=True)
        ]

    def _several_us(self, covered: int) -> float:
        """Of kernels that may be several nodes, what is left outside of a set."""
        total = 0.0
        for whole, sets, price in self._several:
            if not whole & covered:
                total += price
                continue
            first, *others = sets
            is_whole = not first & covered
            total += price if is_whole else self._alone_us(first & ~covered)
            for nodes in others:
                is_whole = is_whole and not nodes & covered
                total += 0.0 if is_whole else self._alone_us(nodes & ~covered)
        return total

    def _alone_us(self, some: int) -> float:
        """Nodes of a set, each by itself."""
        return sum(self.alone[k] for k in bits(some))


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


def _turned(number: Mapping[ir.Node, int]) -> Iterator[tuple[int, int]]:
    """Transposes, and the products that read or write by them when both are in a region."""
    for node, k in number.items():
        if node.op_type == "Transpose":
            near = {other for other in neighbours(node) if other in number}
            products = set_of(number[other] for other in near if product_of(other) is not None)
            if products:
                yield k, products
