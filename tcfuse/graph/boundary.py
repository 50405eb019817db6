"""The values that cross the border of a set of nodes, and taking a node out of a region."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import onnx_ir as ir

from tcfuse.errors import UnsupportedError
from tcfuse.graph.legality import ALLOWED, definition_of, present_outputs
from tcfuse.graph.plan import FusionGroup
from tcfuse.graph.regions import grow, node_graph

NEWEST = 1 << 30
"""Newer than every opset: asked for when a body does not say what its model imports."""


def group_of(nodes: Iterable[ir.Node], opsets: Mapping[str, int] | None = None) -> FusionGroup:
    """The region made of ``nodes`` of one graph, in topological order.

    Args:
        nodes: A convex set; where the order is free, the given one is kept.
        opsets: What the model imports; by default what the nodes' graph says.
    """
    members = sort(tuple(dict.fromkeys(nodes)))
    imported = opsets or (members[0].graph.opset_imports if members[0].graph else None) or {}

    def is_static(node: ir.Node, position: int) -> bool:
        return position in static_inputs(node, imported)

    return _group(members, is_static)


def split(group: FusionGroup, node: ir.Node) -> tuple[FusionGroup, ...]:
    """``group`` without ``node``: what is left, as convex connected groups."""
    assert node in group.nodes, f"{node.name} is not in the group"
    return _parts(group, set(group.nodes) - {node})


def halves(group: FusionGroup) -> tuple[FusionGroup, ...]:
    """The first half of ``group`` and the second, each as convex connected groups."""
    middle = len(group.nodes) // 2
    first, second = group.nodes[:middle], group.nodes[middle:]
    return (*_parts(group, set(first)), *_parts(group, set(second)))


def _parts(group: FusionGroup, members: Collection[ir.Node]) -> tuple[FusionGroup, ...]:
    """Those nodes of ``group`` that are ``members``, as convex connected groups."""
    known = set(group.inputs) | {v for node in group.nodes for v in node.outputs}

    def is_static(member: ir.Node, position: int) -> bool:
        return member.inputs[position] not in known

    return tuple(
        _group(tuple(part), is_static)
        for part in grow(node_graph(group.nodes), members, lambda _: ALLOWED)
    )


def sort(nodes: Sequence[ir.Node]) -> tuple[ir.Node, ...]:
    """``nodes`` in the topological order that is closest to the given one."""
    position = {node: k for k, node in enumerate(nodes)}
    readers: dict[int, list[int]] = {k: [] for k in range(len(nodes))}
    waiting = [0] * len(nodes)
    for k, node in enumerate(nodes):
        producers = (v.producer() for v in node.inputs if v is not None)
        for maker in {position[p] for p in producers if p in position}:
            readers[maker].append(k)
            waiting[k] += 1
    ready = [k for k, count in enumerate(waiting) if count == 0]
    order: list[ir.Node] = []
    while ready:
        k = heapq.heappop(ready)
        order.append(nodes[k])
        for reader in readers[k]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, reader)
    assert len(order) == len(nodes), "the nodes depend on each other in a circle"
    return tuple(order)


def components(nodes: Sequence[ir.Node]) -> list[list[ir.Node]]:
    """The connected parts of ``nodes``, each in the given order, by first node."""
    members = set(nodes)
    found: dict[ir.Node, int] = {}
    for start in nodes:
        if start in found:
            continue
        found[start] = label = len(found)
        stack = [start]
        while stack:
            for other in neighbours(stack.pop()):
                if other in members and other not in found:
                    found[other] = label
                    stack.append(other)
    parts: dict[int, list[ir.Node]] = {}
    for node in nodes:
        parts.setdefault(found[node], []).append(node)
    return list(parts.values())


def neighbours(node: ir.Node) -> Iterable[ir.Node]:
    """The nodes that ``node`` reads from or writes to."""
    for value in node.inputs:
        producer = value.producer() if value is not None else None
        if producer is not None:
            yield producer
    for value in node.outputs:
        yield from (user for user, _ in value.uses())


def static_inputs(node: ir.Node, opsets: Mapping[str, int]) -> Collection[int]:
    """Inputs that ``node``'s definition consumes at compile time."""
    try:
        return definition_of(node, opsets or {node.domain: NEWEST}).static
    except UnsupportedError:
        return ()


def _group(
    members: tuple[ir.Node, ...], is_static: Callable[[ir.Node, int], bool]
) -> FusionGroup:
    """The group of sorted, connected ``members``."""
    inside = set(members)
    made = {v for node in members for v in node.outputs}
    inputs = {
        value: None
        for node in members
        for position, value in enumerate(node.inputs)
        if value is not None and value not in made and not is_static(node, position)
    }
    outputs = (
        value
        for node in members
        for value in present_outputs(node)
        if value.is_graph_output() or any(user not in inside for user, _ in value.uses())
    )
    return FusionGroup(members, tuple(inputs), tuple(outputs))
