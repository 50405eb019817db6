"""Parts of a graph in which regions are chosen, each by itself.

Legal nodes are grown into maximal convex regions, as the greedy planner does.  Contracted,
these leave the graph acyclic; so do regions inside them that do so inside each, since a circle
through several would be one of the maximal ones.  That makes a program for each of them, and
equal ones have equal answers.

Nodes of a part are numbers, and sets of them the bits of an integer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from tcfuse.graph.regions import read_values
from tcfuse.store import key_of

FEW = 12
"""Numbers that are faster taken out of a set one by one than by NumPy."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Nodes of one graph, in topological order, and how they depend on each other.

    Attributes:
        edges: Pairs of numbers of which the second waits for the first.
        greedy: The regions of the greedy plan, as bit sets.
        key: A digest that equal parts share.
        preds: For each node, those that it waits for at once.
        near: Those, and those that wait for it.
        before: All that it waits for.
        after: All that wait for it.
    """

    nodes: tuple[ir.Node, ...]
    edges: tuple[tuple[int, int], ...]
    greedy: tuple[int, ...]
    key: str
    preds: list[int] = field(init=False)
    near: list[int] = field(init=False)
    before: list[int] = field(init=False)
    after: list[int] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.nodes)
        preds, near, before, after = ([0] * count for _ in range(4))
        for a, b in self.edges:
            preds[b] |= 1 << a
            near[a] |= 1 << b
            near[b] |= 1 << a
        for a, b in sorted(self.edges, key=lambda edge: edge[1]):
            before[b] |= before[a] | 1 << a
        for a, b in sorted(self.edges, reverse=True):
            after[a] |= after[b] | 1 << b
        found = {"preds": preds, "near": near, "before": before, "after": after}
        for name, sets in found.items():
            object.__setattr__(self, name, sets)

    @property
    def everything(self) -> int:
        """All nodes."""
        return (1 << len(self.nodes)) - 1

    def members(self, some: int) -> list[ir.Node]:
        """The nodes of a set, in order."""
        return [self.nodes[k] for k in bits(some)]

    def is_convex(self, some: int) -> bool:
        """Whether no path leaves the set and comes back."""
        outside = self.span(some) & ~some
        if outside.bit_count() > some.bit_count():
            return self.hull(some) == some
        return not any(self.before[k] & some and self.after[k] & some for k in bits(outside))

    def span(self, some: int) -> int:
        """All numbers from the first of a set to its last."""
        return (1 << some.bit_length()) - (some & -some)

    def hull(self, some: int) -> int:
        """The smallest convex set around a set."""
        before = after = 0
        for k in bits(some):
            before |= self.before[k]
            after |= self.after[k]
        return some | before & after

    def pieces(self, some: int) -> list[int]:
        """The connected pieces of a set, by first node."""
        pieces: dict[int, int] = {}  # by their first nodes
        home: dict[int, int] = {}
        for k in bits(some):
            joined, first = 1 << k, k
            beside = self.preds[k] & some
            while beside:
                other = home[beside.bit_length() - 1]
                while other not in pieces:  # joined to another since
                    other = home[other]
                piece = pieces.pop(other)
                beside &= ~piece
                joined |= piece
                low, high = min(first, other), max(first, other)
                first = home[high] = low
            pieces[first] = joined
            home[k] = first
        return [pieces[first] for first in sorted(pieces)]


def bits(some: int) -> Sequence[int]:
    """The numbers in a set, smallest first."""
    if some.bit_count() > FEW:
        return np.flatnonzero(rows([some], some.bit_length())[0]).tolist()
    found = []
    while some:
        lowest = some & -some
        found.append(lowest.bit_length() - 1)
        some ^= lowest
    return found


def rows(sets: Sequence[int], count: int) -> np.ndarray:
    """A row of truth values for each set, of which ``count`` numbers are asked for."""
    width = -(-count // 8)
    data = b"".join(some.to_bytes(width, "little") for some in sets)
    packed = np.frombuffer(data, np.uint8).reshape(len(sets), width)
    return np.unpackbits(packed, axis=1, count=count, bitorder="little").view(np.bool_)


def set_of(numbers: Iterable[int]) -> int:
    """Numbers as the bits of an integer."""
    found = 0
    for k in numbers:
        found |= 1 << k
    return found


def parts(
    order: Sequence[ir.Node],
    grown: Iterable[Collection[ir.Node]],
    greedy: Iterable[Collection[ir.Node]],
    labels: Mapping[ir.Node, bytes],
    joined: Iterable[Collection[ir.Node]] = (),
) -> list[Part]:
    """The parts of one graph.

    Args:
        order: Its nodes in topological order.
        grown: Maximal regions.
        greedy: Regions chosen already; those that lie in several maximal ones make one of them.
        labels: Of all nodes; parts are equal when these are.
        joined: Further sets of nodes that make one part of those that they lie in.
    """
    grown = [frozenset(nodes) for nodes in grown]
    position = {node: k for k, node in enumerate(order)}
    regions = [frozenset(region) for region in greedy]
    home: dict[ir.Node, int] = {}
    members: dict[int, set[ir.Node]] = {}
    for number, nodes in enumerate([*grown, *regions, *map(frozenset, joined)]):
        known = {home[node] for node in nodes if node in home}
        target = min(known, default=number)
        members.setdefault(target, set()).update(nodes)
        for other in known - {target}:
            members[target] |= members.pop(other)
        home.update(dict.fromkeys(members[target], target))
    inside: dict[int, list[frozenset[ir.Node]]] = {}
    for region in regions:
        inside.setdefault(home[next(iter(region))], []).append(region)
    alone = set(grown)
    return [
        _part(
            sorted(nodes, key=position.__getitem__),
            inside.get(number, []),
            labels,
            [] if frozenset(nodes) in alone else order,
            position,
        )
        for number, nodes in members.items()
    ]


def _part(
    nodes: Sequence[ir.Node],
    greedy: Iterable[Collection[ir.Node]],
    labels: Mapping[ir.Node, bytes],
    order: Sequence[ir.Node],
    position: Mapping[ir.Node, int],
) -> Part:
    """One part; paths through nodes of ``order`` outside of it count as edges."""
    number = {node: k for k, node in enumerate(nodes)}
    sources: dict[ir.Node, set[int]] = {node: {k} for node, k in number.items()}
    edges: set[tuple[int, int]] = set()
    for node in order[position[nodes[0]] : position[nodes[-1]] + 1] or nodes:
        read = {v.producer() for v in read_values(node)}
        waits = set().union(*(sources.get(maker, ()) for maker in read if maker is not None))
        if node in number:
            edges |= {(k, number[node]) for k in waits}
        elif waits:
            sources[node] = waits
    regions = tuple(sorted(set_of(number[node] for node in region) for region in greedy))
    found = tuple(sorted(edges))
    key = key_of(*(labels[node] for node in nodes), found, regions)
    return Part(tuple(nodes), found, regions, key)
