"""Puts fused nodes into a model and keeps the original operators as their fallback.

Each replaced region becomes one node ``tcfuse::<name>``, and each distinct name one model-local
function whose body is the original subgraph.  ONNX Runtime prefers a registered custom operator
of that name; where the kernel library is absent it inlines the function and runs what was there
before.  So the file runs everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from tcfuse.graph.fallback import DOMAIN, body_digest, build_function
from tcfuse.graph.names import unused_name
from tcfuse.graph.plan import FusionGroup
from tcfuse.graph.regions import bodies, read_values
from tcfuse.profile import timed

FUNCTION_IR_VERSION = 8
"""First format version with model-local functions."""

NODES_KEY = "tcfuse.nodes"
"""Metadata key of the fused node: the names of the nodes it replaces, one a line."""


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """One region and the operator that takes its place.

    Attributes:
        name: Operator type; regions with one name share one kernel and one fallback, so it must
            tell apart all that differs in them (``body_digest`` of the region included).
        inputs: What the kernel reads, in its order; every other value read by the region must
            be a constant, and becomes a Constant of the fallback.
        outputs: What the kernel writes, in its order: the values others need.
        metadata: Properties of the fused node (the TC text).
        body: The digest of what the fallback computes, if it is known already.
    """

    group: FusionGroup
    name: str
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    domain: str = DOMAIN
    metadata: dict[str, str] = field(default_factory=dict)
    body: str = ""

    @property
    def digest(self) -> str:
        """What the fallback computes, as a digest: equal for equal bodies."""
        return self.body or body_digest(self.group, self.inputs, self.outputs)


@timed("rewrite")
def rewrite(model: ir.Model, replacements: Sequence[Replacement]) -> ir.Model:
    """A copy of ``model`` with the regions replaced; ``model`` itself stays as it is.

    Tensors are shared with the original, so external data stays where it is and is not read.

    Raises:
        AssertionError: Two replacements of one name differ in what they compute.
    """
    copy = model.clone()
    values, nodes = _correspondence(model, copy)
    for graph in {node.graph: None for node in nodes.values()}:
        assert isinstance(graph, ir.Graph)
        _drop_partial_types(graph)
    if not replacements:
        return copy
    for first in _one_of_each(replacements):
        function = build_function(
            first.group, first.inputs, first.outputs, first.domain, first.name, copy
        )
        copy.functions[function.identifier()] = function
        copy.graph.opset_imports.setdefault(first.domain, 1)
    positions = {node: k for k, node in enumerate(nodes.values())}
    names = {node.name or "" for node in positions}
    changed: dict[ir.Graph, None] = {}
    for replacement in replacements:
        graph = _replace(replacement, values, nodes, positions, names)
        changed[graph] = None
    for graph in changed:
        _restore_order(graph)
    copy.ir_version = max(copy.ir_version or 0, FUNCTION_IR_VERSION)
    return copy


def _one_of_each(replacements: Sequence[Replacement]) -> list[Replacement]:
    """The first replacement of every name, checked to compute what the others do."""
    by_name: dict[tuple[str, str], list[Replacement]] = {}
    for replacement in replacements:
        by_name.setdefault((replacement.domain, replacement.name), []).append(replacement)
    for first, *others in by_name.values():
        digest = first.digest if others else ""
        for other in others:
            assert other.digest == digest, (
                f"{first.name} names two bodies: {first.group} and {other.group}"
            )
    return [first for first, *_ in by_name.values()]


def _correspondence(
    model: ir.Model, copy: ir.Model
) -> tuple[dict[ir.Value, ir.Value], dict[ir.Node, ir.Node]]:
    """Every value and node of ``model`` with its counterpart in its clone ``copy``."""
    values: dict[ir.Value, ir.Value] = {}
    nodes: dict[ir.Node, ir.Node] = {}
    pairs = [(model.graph, copy.graph)]
    while pairs:
        old, new = pairs.pop()
        values.update(zip(old.inputs, new.inputs, strict=True))
        values.update((v, new.initializers[name]) for name, v in old.initializers.items())
        for before, after in zip(old, new, strict=True):
            nodes[before] = after
            values.update(zip(before.outputs, after.outputs, strict=True))
            pairs.extend(zip(bodies(before), bodies(after), strict=True))
    return values, nodes


def _replace(
    replacement: Replacement,
    values: dict[ir.Value, ir.Value],
    nodes: dict[ir.Node, ir.Node],
    positions: dict[ir.Node, int],
    names: set[str],
) -> ir.Graph:
    """Put the fused node in the place of its region's last node; the graph it was done in."""
    members = [nodes[node] for node in replacement.group.nodes]
    graph = members[0].graph
    assert isinstance(graph, ir.Graph), "the region lies in a function"
    old = [values[value] for value in replacement.outputs]
    provenance = "\n".join(node.name or node.op_type for node in members)
    fused = ir.Node(
        replacement.domain,
        replacement.name,
        [values[value] for value in replacement.inputs],
        outputs=[_twin(value) for value in old],
        name=unused_name(replacement.name, names),
        metadata_props={**replacement.metadata, NODES_KEY: provenance},
    )
    graph.insert_after(max(members, key=positions.__getitem__), fused)
    ir.convenience.replace_all_uses_with(old, fused.outputs, replace_graph_outputs=True)
    values.update(zip(replacement.outputs, fused.outputs, strict=True))
    read = [value for node in members for value in node.inputs if value is not None]
    graph.remove(members, safe=True)
    for value, twin in zip(old, fused.outputs, strict=True):
        twin.name, value.name = value.name, None
    drop_unused(read)
    return graph


def _twin(value: ir.Value) -> ir.Value:
    """A value with the type, shape and notes of ``value``, and no name yet."""
    return ir.Value(
        type=value.type,
        shape=value.shape.copy() if value.shape is not None else None,
        doc_string=value.doc_string,
        metadata_props=dict(value.metadata_props),
    )


def drop_unused(values: Iterable[ir.Value]) -> None:
    """Remove those constants among ``values`` that nobody reads any more."""
    for value in dict.fromkeys(values):
        if value.uses() or value.is_graph_output():
            continue
        producer = value.producer()
        if producer is not None and producer.op_type == "Constant":
            if producer.graph is not None:
                producer.graph.remove(producer, safe=True)
        elif value.is_initializer() and not value.is_graph_input():
            assert value.graph is not None
            assert value.name is not None
            del value.graph.initializers[value.name]


def _drop_partial_types(graph: ir.Graph) -> None:
    """Forget the types of inner values that have no shape: ONNX's checker refuses those."""
    for value in (v for node in graph for v in node.outputs):
        if value.shape is None and not value.is_graph_output():
            value.type = None


def _restore_order(graph: ir.Graph) -> None:
    """Sort ``graph`` if a fused node stands before something it reads, or after a reader."""
    seen: set[ir.Node] = set()
    inside = set(graph)
    for node in graph:
        makers = (v.producer() for v in read_values(node))
        if any(m in inside and m not in seen for m in makers):
            graph.sort()
            return
        seen.add(node)
