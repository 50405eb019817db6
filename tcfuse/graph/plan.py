"""The fusion plan: which nodes become one kernel, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from tcfuse.graph.machine import MACHINE, Machine


@dataclass(frozen=True, slots=True, eq=False)
class FusionGroup:
    """A convex set of nodes of one graph, in topological order.

    Attributes:
        nodes: The members.
        inputs: Values made outside that a member reads; each once, in order of first use.
            Constants that a definition consumes at compile time (axes, shapes) are left out.
        outputs: Values made inside that somebody outside needs, in order of production.
    """

    nodes: tuple[ir.Node, ...]
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]

    def __str__(self) -> str:
        return " ".join(node.op_type for node in self.nodes)


@dataclass(frozen=True, slots=True, eq=False)
class Rejection:
    """A node (or an edge into it) that was left to ONNX Runtime, and the reason."""

    node: ir.Node
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class FusionPlan:
    """The groups of one graph or subgraph, and every rejection.

    Attributes:
        machine: What the groups were chosen for.
        sizes: Values of named sizes by which they are predicted.
    """

    graph: ir.Graph
    groups: tuple[FusionGroup, ...]
    rejections: tuple[Rejection, ...]
    machine: Machine = MACHINE
    sizes: Mapping[str, int] = field(default_factory=dict)
