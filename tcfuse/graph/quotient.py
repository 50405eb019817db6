"""Circles among regions: what a graph becomes when each region is contracted to one node."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import networkx as nx

Circle: TypeAlias = Sequence[frozenset[int]]
"""For each region on the way, the nodes at which the circle enters and leaves it."""


def circles(
    edges: Iterable[tuple[int, int]], regions: Sequence[Collection[int]]
) -> Iterator[Circle]:
    """Circles among disjoint ``regions``; none when they can run one after the other.

    Every strongly connected part of the quotient gives one circle for each of its regions, a
    shortest one; equal ones are given once.

    Args:
        edges: Of an acyclic graph; a node in no region stays by itself.
        regions: Sets of its nodes.
    """
    home = {node: -1 - k for k, region in enumerate(regions) for node in region}
    between: dict[tuple[int, int], tuple[int, int]] = {}
    for a, b in edges:
        ends = home.get(a, a), home.get(b, b)
        if ends[0] != ends[1]:
            between.setdefault(ends, (a, b))
    quotient = nx.DiGraph(_stuck(between))
    seen: set[frozenset[frozenset[int]]] = set()
    for part in nx.strongly_connected_components(quotient):
        if len(part) == 1:
            continue
        for region in sorted(node for node in part if node < 0):
            circle = _pairs(_shortest(quotient, part, region), between)
            if frozenset(circle) not in seen:
                seen.add(frozenset(circle))
                yield circle


def _stuck(edges: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges that are left when what waits for nothing is taken away again and again."""
    waiting: dict[int, int] = {}
    after: dict[int, list[int]] = {}
    for a, b in edges:
        waiting[b] = waiting.get(b, 0) + 1
        after.setdefault(a, []).append(b)
    ready = [node for node in after if node not in waiting]
    while ready:
        for node in after.pop(ready.pop(), ()):
            waiting[node] -= 1
            if not waiting[node]:
                ready.append(node)
    return [(a, b) for a, b in edges if a in after]


def _shortest(quotient: nx.DiGraph, part: Collection[int], start: int) -> list[int]:
    """A shortest way from ``start`` to itself inside its strongly connected part."""
    came: dict[int, int] = {}
    waiting = deque([start])
    while start not in came:
        node = waiting.popleft()
        for after in quotient.succ[node]:
            if after in part and after not in came:
                came[after] = node
                waiting.append(after)
    way = [start]
    while (node := came[way[-1]]) != start:
        way.append(node)
    return way[::-1]


def _pairs(
    way: Sequence[int], between: Mapping[tuple[int, int], tuple[int, int]]
) -> list[frozenset[int]]:
    """Where a circle enters and leaves each of its regions."""
    steps = [between[way[k - 1], way[k]] for k in range(len(way))]  # the edge into each
    return [
        frozenset({steps[k][1], steps[(k + 1) % len(way)][0]})
        for k, node in enumerate(way)
        if node < 0
    ]
