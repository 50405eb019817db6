"""Grows maximal convex connected regions on a graph of nodes.

A region is *convex* when no path leaves it and comes back: otherwise the fused node would need
its own result.  Two merges that are legal one by one can be illegal together, so the question
is asked on the graph of regions as it is after every merge (the *quotient*), with reachability
kept as bit sets: one bit a node, a region's members and everything that must run before it.

Nodes are visited in topological order, and each asks to join the regions of its predecessors,
nearest first.  A refused edge stays refused, because merging only ever adds paths; so one visit
of every edge gives regions that no further merge along an edge can enlarge.  Bit sets cover a
window of ``WINDOW`` consecutive nodes, which bounds memory: a path between two nodes of a
window runs inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import networkx as nx
import onnx_ir as ir

from tcfuse.graph.legality import Edge, Verdict

WINDOW = 16384
"""Nodes that share one set of bits; regions do not cross from one window to the next."""


def node_graph(nodes: Iterable[ir.Node]) -> nx.DiGraph:
    """The nodes of one graph with an edge for every value and every capture, in given order.

    A node whose body names a value of this graph depends on that value's producer.
    """
    dag = nx.DiGraph()
    dag.add_nodes_from(nodes)
    for node in list(dag):
        for value in read_values(node):
            producer = value.producer()
            if producer is not None and producer in dag:
                dag.add_edge(producer, node)
    return dag


def read_values(node: ir.Node) -> Iterator[ir.Value]:
    """The values ``node`` reads: its inputs, then all that its bodies read or return."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield from (value for value in current.inputs if value is not None)
        for body in bodies(current):
            yield from body.outputs
            stack.extend(body)


def bodies(node: ir.Node) -> tuple[ir.Graph, ...]:
    """The graphs that the attributes of ``node`` hold."""
    found: list[ir.Graph] = []
    for attribute in node.attributes.values():
        if attribute.type is ir.AttributeType.GRAPH:
            found.append(attribute.as_graph())
        elif attribute.type is ir.AttributeType.GRAPHS:
            found.extend(attribute.as_graphs())
    return tuple(found)


def topological(dag: nx.DiGraph) -> list[ir.Node]:
    """The nodes in a topological order, as close to the given order as there is one."""
    given = {node: k for k, node in enumerate(dag)}
    if all(given[a] < given[b] for a, b in dag.edges):
        return list(given)
    return list(nx.lexicographical_topological_sort(dag, key=given.__getitem__))


def grow(
    dag: nx.DiGraph, members: Collection[ir.Node], may_fuse: Callable[[Edge], Verdict]
) -> list[list[ir.Node]]:
    """Maximal convex connected groups of ``members``, each in topological order.

    Args:
        dag: All nodes, also those that cannot be members: paths run through them.
        members: The nodes to group; every one is in exactly one group of the result.
        may_fuse: Asked before a node's region is merged with that of a predecessor.
    """
    order = topological(dag)
    groups: list[list[ir.Node]] = []
    for start in range(0, len(order), WINDOW):
        window = _Window(order[start : start + WINDOW], dag)
        for k, node in enumerate(window.nodes):
            window.visit(k)
            if node in members:
                window.join(k, members, may_fuse)
        groups.extend(window.groups(members))
    return groups


class _Window:
    """The quotient graph of one window while regions grow; a cluster is named by a member."""

    def __init__(self, nodes: Sequence[ir.Node], dag: nx.DiGraph) -> None:
        position = {node: k for k, node in enumerate(nodes)}
        self.nodes = nodes
        self._inputs = [
            sorted({position[p] for p in dag.pred[node] if p in position}, reverse=True)
            for node in nodes
        ]
        self._parent = list(range(len(nodes)))
        self._members = [1 << k for k in range(len(nodes))]
        self._before = [0] * len(nodes)
        self._size = [1] * len(nodes)
        self._preds: list[set[int]] = [set() for _ in nodes]
        self._succs: list[set[int]] = [set() for _ in nodes]

    def visit(self, k: int) -> None:
        """Enter node ``k``, all of whose predecessors are in."""
        for p in self._inputs[k]:
            cluster = self._find(p)
            self._preds[k].add(cluster)
            self._succs[cluster].add(k)
            self._before[k] |= self._before[cluster] | self._members[cluster]

    def join(
        self, k: int, members: Collection[ir.Node], may_fuse: Callable[[Edge], Verdict]
    ) -> None:
        """Merge node ``k`` with every predecessor's region that takes it."""
        for p in self._inputs[k]:
            here, there = self._find(k), self._find(p)
            if here == there or self.nodes[p] not in members:
                continue
            edge = Edge(self.nodes[p], self.nodes[k], self._size[there], self._size[here])
            if may_fuse(edge) and not self._detour(there, here):
                self._merge(there, here)

    def groups(self, members: Collection[ir.Node]) -> list[list[ir.Node]]:
        """The clusters of ``members``, by first node."""
        found: dict[int, list[ir.Node]] = {}
        for k, node in enumerate(self.nodes):
            if node in members:
                found.setdefault(self._find(k), []).append(node)
        return list(found.values())

    def _find(self, k: int) -> int:
        """The cluster node ``k`` is in."""
        while self._parent[k] != k:
            self._parent[k] = self._parent[self._parent[k]]
            k = self._parent[k]
        return k

    def _neighbours(self, clusters: set[int], itself: int) -> set[int]:
        """``clusters`` under the names they have now, without ``itself``."""
        return {c for c in map(self._find, clusters) if c != itself}

    def _detour(self, first: int, second: int) -> bool:
        """Whether a path leads from ``first`` to ``second`` through a third cluster."""
        self._preds[second] = self._neighbours(self._preds[second], second)
        target = self._members[first]
        return any(self._before[c] & target for c in self._preds[second] if c != first)

    def _merge(self, first: int, second: int) -> None:
        """Make one cluster of two, and tell all that run later what now runs before them."""
        old = (self._before[first], self._before[second])
        self._parent[second] = first
        self._size[first] += self._size[second]
        self._members[first] |= self._members[second]
        self._preds[first] = self._neighbours(self._preds[first] | self._preds[second], first)
        self._succs[first] = self._neighbours(self._succs[first] | self._succs[second], first)
        before = (old[0] | old[1]) & ~self._members[first]
        self._before[first] = before
        # One bit of a cluster is enough to know that it comes before, so a merge that brings no
        # new cluster (each node of a chain) has nothing to tell.
        if before & ~old[0] or before & ~old[1]:
            self._announce(first, before)

    def _announce(self, cluster: int, before: int) -> None:
        """Add ``before`` to every cluster that runs after ``cluster``."""
        stack = [cluster]
        while stack:
            current = stack.pop()
            self._succs[current] = self._neighbours(self._succs[current], current)
            for after in self._succs[current]:
                if before & ~self._before[after]:
                    self._before[after] |= before
                    stack.append(after)
