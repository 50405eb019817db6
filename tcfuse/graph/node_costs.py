"""What single nodes move and take, worked out once for all nodes that are alike.

A graph of thousands of nodes has few kinds of them: the cost model is asked once for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from tcfuse.graph.boundary import static_inputs
from tcfuse.graph.cost import CONTRACTIONS, node_flops, wanted
from tcfuse.graph.labels import Labels
from tcfuse.graph.native_kernel import node_us
from tcfuse.graph.traffic import PARTIAL, n_bytes
from tcfuse.graph.worth import Pruner


@dataclass(frozen=True, slots=True)
class NodeCost:
    """What one node moves and computes.

    Attributes:
        reads: For each operand that a kernel reads: its position, and the bytes that are
            touched and that there are.
        writes: Bytes of each result.
        flops: Weighted operations.
        alone_us: Microseconds of ONNX Runtime's kernel for the node.
    """

    reads: tuple[tuple[int, int, int], ...]
    writes: tuple[int, ...]
    flops: float
    alone_us: float


@dataclass(frozen=True, slots=True, eq=False)
class NodeCosts:
    """Costs of the nodes of one graph.

    Attributes:
        pruner: Knows the sizes and the machine.
        labels: Of all nodes; the costs are equal where they are.
    """

    pruner: Pruner
    labels: Labels
    _known: dict[object, NodeCost] = field(default_factory=dict)

    def of(self, node: ir.Node) -> NodeCost:
        """What ``node`` costs."""
        if node.op_type in CONTRACTIONS:  # it matters what prepares their operands
            key: object = self.labels.around[node]
        else:
            key = self.labels.own[node], wanted(node, self.pruner.sizes)
        if key not in self._known:
            self._known[key] = self._counted(node)
        return self._known[key]

    def _counted(self, node: ir.Node) -> NodeCost:
        pruner, sizes = self.pruner, self.pruner.sizes
        static = static_inputs(node, pruner.opsets)
        writes = tuple(n_bytes(value, sizes) for value in node.outputs)
        reads = []
        for position, value in enumerate(node.inputs):
            if value is None or position in static:
                continue
            whole = n_bytes(value, sizes)
            partly = node.op_type in PARTIAL and position == 0
            reads.append((position, sum(writes) if partly else whole, whole))
        alone_us = node_us(node, sizes, pruner.machine)
        return NodeCost(tuple(reads), writes, node_flops(node, sizes), alone_us)
