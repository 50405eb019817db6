"""The fusion pass: which nodes of a graph become one kernel, and why the others do not.

Legal nodes are grown into maximal convex regions (``graph.regions``), which are then pruned to
what is worth a kernel (``graph.worth``).  Every node of the graph is in one group or in one
rejection.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import networkx as nx
import onnx_ir as ir

from tcfuse.graph.adoption import adopted, in_pieces, is_candidate, reads_pieces
from tcfuse.graph.boundary import group_of, halves, split
from tcfuse.graph.cuts import cut_joined, cut_shared
from tcfuse.graph.handover import hand_over
from tcfuse.graph.layout import surroundings
from tcfuse.graph.legality import Candidate, constant_nodes, may_fuse, may_join
from tcfuse.graph.machine import MACHINE, Machine
from tcfuse.graph.plan import FusionGroup, FusionPlan, Rejection
from tcfuse.graph.regions import bodies, grow, node_graph, topological
from tcfuse.graph.shape_math import shape_arithmetic
from tcfuse.graph.worth import Pruner, may_leave_native
from tcfuse.profile import timed

__all__ = ["describe", "fuse", "fuse_all", "graphs_of", "group_of", "halves", "split"]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """What regions of one graph can be made of.

    Attributes:
        order: All nodes, in topological order.
        members: Nodes that join a region wherever they can.
        waiting: Contractions that join where that pays.
        reasons: Why each other node stays, and each that waits.
        pruner: Knows the graph.
    """

    graph: ir.Graph
    dag: nx.DiGraph
    order: Sequence[ir.Node]
    members: frozenset[ir.Node]
    waiting: frozenset[ir.Node]
    reasons: Mapping[ir.Node, str]
    pruner: Pruner
    _grown: dict[frozenset[ir.Node], list[list[ir.Node]]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        graph: ir.Graph,
        opsets: Mapping[str, int],
        *,
        conservative: bool,
        machine: Machine,
        sizes: Mapping[str, int] | None,
    ) -> Field:
        """The nodes of a graph by what may become of them."""
        dag = node_graph(graph)
        order = topological(dag)
        reasons: dict[ir.Node, str] = {}
        waiting: set[ir.Node] = set()
        lengths, folded = shape_arithmetic(order), constant_nodes(order)
        for node in order:
            legal = may_join(Candidate(node, opsets, node in lengths, node in folded))
            verdict = may_leave_native(node, opsets) if legal else legal
            if not verdict:
                reasons[node] = verdict.reason or ""
                if legal and is_candidate(node, opsets, machine):
                    waiting.add(node)
        members = frozenset(node for node in order if node not in reasons)
        pieces = in_pieces(order, members, opsets) if waiting else ()
        for node in [node for node in waiting if reads_pieces(node, pieces)]:
            waiting.remove(node)
            reasons[node] = f"{node.op_type} would read pieces that its region joins or gathers"
        around = surroundings(order, folded)
        pruner = Pruner(opsets, around, conservative, machine, dict(sizes or {}))
        return cls(graph, dag, order, members, frozenset(waiting), reasons, pruner)

    def grown(self, members: Iterable[ir.Node]) -> Sequence[Sequence[ir.Node]]:
        """Maximal regions of ``members``, grown once."""
        some = frozenset(members)
        if some not in self._grown:
            self._grown[some] = grow(self.dag, some, may_fuse)
        return self._grown[some]

    def fresh_pruner(self) -> Pruner:
        """A pruner that has seen nothing yet."""
        return replace(self.pruner, reasons={}, absorbed={})


def fuse(
    graph: ir.Graph,
    opsets: Mapping[str, int],
    *,
    conservative: bool = True,
    machine: Machine = MACHINE,
    sizes: Mapping[str, int] | None = None,
) -> FusionPlan:
    """The regions of one graph; the bodies of its control flow are plans of their own.

    Args:
        graph: The main graph or the body of an If, a Loop or a Scan.
        opsets: What the model imports.
        conservative: Leave to ONNX Runtime what it does well: single cheap nodes, and what it
            fuses itself.  Otherwise everything that is legal and more than a copy is fused.
        machine: What the model runs on.
        sizes: Values of named sizes; others count as ``graph.traffic.DEFAULT_SIZE``.
    """
    field = Field.of(graph, opsets, conservative=conservative, machine=machine, sizes=sizes)
    return greedy(field)


def greedy(field: Field) -> FusionPlan:
    """The largest regions there are, pruned to what is worth a kernel."""
    opsets, machine = field.pruner.opsets, field.pruner.machine
    reasons = dict(field.reasons)

    known: dict[frozenset[ir.Node], tuple[Pruner, list[list[ir.Node]]]] = {}

    def pruned(members: Collection[ir.Node]) -> tuple[Pruner, list[list[ir.Node]]]:
        some = frozenset(members)
        if some not in known:  # asked for again when all or none of the waiting join
            pruner = field.fresh_pruner()
            parts = [part for region in field.grown(some) for part in cut_shared(region)]
            regions = hand_over(parts, opsets)
            if pruner.conservative:
                regions = [part for region in regions for part in cut_joined(region, opsets)]
            known[some] = pruner, pruner.prune(regions)
        return known[some]

    gain = field.fresh_pruner().gain
    joined, left = adopted(
        field.waiting, field.members, lambda some: pruned(some)[1], gain, machine
    )
    reasons.update(left)
    pruner, kept = pruned({*field.members, *joined})
    reasons.update(pruner.reasons)
    return plan_of(field, kept, reasons)


def plan_of(
    field: Field, regions: Iterable[Sequence[ir.Node]], reasons: Mapping[ir.Node, str]
) -> FusionPlan:
    """A plan with those regions, and the reasons for all other nodes."""
    pruner = field.pruner
    groups = tuple(group_of(nodes, pruner.opsets) for nodes in regions)
    fused = {node for group in groups for node in group.nodes}
    rejections = tuple(
        Rejection(node, reasons[node]) for node in field.order if node not in fused
    )
    return FusionPlan(field.graph, groups, rejections, pruner.machine, pruner.sizes)


@timed("plan")
def fuse_all(
    model: ir.Model,
    *,
    conservative: bool = True,
    machine: Machine = MACHINE,
    sizes: Mapping[str, int] | None = None,
) -> tuple[FusionPlan, ...]:
    """The plans of the main graph and of every body in it, outermost first.

    Bodies of the model's own functions are left out: one body serves several calls, whose
    shapes may differ.
    """
    opsets = model.opset_imports
    return tuple(
        fuse(graph, opsets, conservative=conservative, machine=machine, sizes=sizes)
        for graph in graphs_of(model)
    )


def graphs_of(model: ir.Model) -> tuple[ir.Graph, ...]:
    """The main graph and every control-flow body below it, outermost first."""
    found = [model.graph]
    for graph in found:  # grows while it is walked
        found.extend(body for node in graph for body in bodies(node))
    return tuple(found)


def describe(group: FusionGroup) -> str:
    """One line about ``group``: its operators, repeated ones counted."""
    counts: dict[str, int] = {}
    for node in group.nodes:
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
    return " ".join(f"{op}*{n}" if n > 1 else op for op, n in counts.items())
