"""Bytes that cross the border of regions of one part, counted for many regions at once.

A region is a row of truth values, one for each node of the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from tcfuse.graph.node_costs import NodeCost
from tcfuse.graph.part import set_of


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A result of a node of the part.

    Attributes:
        size: Bytes.
        readers: The nodes of the part that read it, as a bit set.
        leaves: Whether others need it too.
    """

    size: int
    readers: int
    leaves: bool


class RegionTraffic:
    """What the nodes of a part read and write.

    Attributes:
        writes: The results of each node.
    """

    def __init__(self, nodes: Sequence[ir.Node], costs: Sequence[NodeCost]) -> None:
        number = {node: k for k, node in enumerate(nodes)}
        self.writes = [
            [
                _written(value, size, number)
                for value, size in zip(node.outputs, cost.writes, strict=True)
            ]
            for node, cost in zip(nodes, costs, strict=True)
        ]
        self._read(nodes, costs, number)
        self._write(nodes, number)

    def moved(self, chosen: np.ndarray) -> np.ndarray:
        """Bytes read and written by a kernel for each row of ``chosen``."""
        moved = chosen @ self._leaving
        if len(self._starts):
            touched = np.add.reduceat(chosen[:, self._readers] * self._amounts, self._starts, 1)
            outside = np.append(~chosen, np.ones((len(chosen), 1), np.bool_), 1)
            touched = np.minimum(touched, self._whole) * outside[:, self._homes]
            moved = moved + touched.sum(1)
        if len(self._first):
            inside = np.add.reduceat(chosen[:, self._users].astype(np.int64), self._first, 1)
            seen = chosen[:, self._makers] & (inside < self._counts)
            moved = moved + seen @ self._sizes
        return moved

    def _read(
        self,
        nodes: Sequence[ir.Node],
        costs: Sequence[NodeCost],
        number: Mapping[ir.Node, int],
    ) -> None:
        """Operands by value: who reads how much of it, and the node that makes it."""
        by_value: dict[ir.Value, list[tuple[int, int]]] = {}
        whole: dict[ir.Value, int] = {}
        for k, (node, cost) in enumerate(zip(nodes, costs, strict=True)):
            for position, touched, size in cost.reads:
                value = node.inputs[position]
                assert value is not None, "it is read"
                by_value.setdefault(value, []).append((k, touched))
                whole[value] = size
        flat = [pair for pairs in by_value.values() for pair in pairs]
        self._readers = np.array([k for k, _ in flat], np.int64)
        self._amounts = np.array([touched for _, touched in flat], np.int64)
        self._starts = _starts([len(pairs) for pairs in by_value.values()])
        self._whole = np.array(list(whole.values()), np.int64)
        makers = (value.producer() for value in by_value)
        homes = [len(nodes) if m is None else number.get(m, len(nodes)) for m in makers]
        self._homes = np.array(homes, np.int64)

    def _write(self, nodes: Sequence[ir.Node], number: Mapping[ir.Node, int]) -> None:
        """Results that always leave, and those that do unless all readers are inside."""
        leaving = [sum(w.size for w in written if w.leaves) for written in self.writes]
        self._leaving = np.array(leaving, np.int64)
        kept = [
            (k, written.size, {number[user] for user, _ in value.uses()})
            for k, node in enumerate(nodes)
            for value, written in zip(node.outputs, self.writes[k], strict=True)
            if written.readers and not written.leaves
        ]
        self._makers = np.array([k for k, _, _ in kept], np.int64)
        self._sizes = np.array([size for _, size, _ in kept], np.int64)
        self._counts = np.array([len(users) for _, _, users in kept], np.int64)
        self._users = np.array([user for _, _, users in kept for user in users], np.int64)
        self._first = _starts(self._counts.tolist())


def _written(value: ir.Value, size: int, number: Mapping[ir.Node, int]) -> Written:
    users = [user for user, _ in value.uses()]
    inside = set_of(number[user] for user in users if user in number)
    leaves = value.is_graph_output() or any(user not in number for user in users)
    return Written(size, inside, leaves)


def _starts(lengths: Sequence[int]) -> np.ndarray:
    """Where runs of those lengths start, one behind the other."""
    return np.cumsum([0, *lengths[:-1]])[: len(lengths)]
