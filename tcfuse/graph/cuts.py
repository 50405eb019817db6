"""Cuts regions that are worth more in parts.

Small shared operands leave the regions that merely read them.

An attention mask is computed once and added in every layer.  Growing merges it with the first
layer, which then needs a kernel of its own, while the mask is written to memory in any case.
Cut off, the mask is a small region (or a node for ONNX Runtime) and all layers share one
kernel.

A normalisation reads its rows several times.  Where they are joined of pieces along an outer
axis, every read asks which piece it is in, and takes many times as long; so does a piece that
is normalised again for every place it goes to.  Cut there, both sides are fast.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import onnx_ir as ir

from tcfuse.graph.boundary import components
from tcfuse.graph.legality import ALLOWED, Edge, Verdict, definition_of
from tcfuse.graph.regions import grow, node_graph
from tcfuse.graph.shapes import dims
from tcfuse.graph.traffic import elements
from tcfuse.opdef import Kind

NORMALISATIONS = frozenset(
    {
        *("GroupNormalization", "InstanceNormalization", "LayerNormalization", "LogSoftmax"),
        *("LpNormalization", "MeanVarianceNormalization", "RMSNormalization", "Softmax"),
    }
)
"""Operators that reduce rows and then read them again."""

MOVES = (Kind.MOVEMENT, Kind.VIEW)

BROADCAST = 4
"""An operand is small when the node that reads it writes this many times its elements."""


def cut_shared(region: Sequence[ir.Node]) -> list[list[ir.Node]]:
    """``region`` without the edges that bring it a small operand others read too."""
    members = set(region)
    cut = {
        (producer, consumer)
        for producer in region
        for value in producer.outputs
        for consumer in _inner_readers(value, members)
        if _is_small(producer, members, elements(consumer.outputs[0]))
    }
    if not cut:
        return [list(region)]

    def may_fuse(edge: Edge) -> Verdict:
        is_cut = (edge.producer, edge.consumer) in cut
        return Verdict("a small operand that others read too") if is_cut else ALLOWED

    return grow(node_graph(region), members, may_fuse)


def cut_joined(region: Sequence[ir.Node], opsets: Mapping[str, int]) -> list[list[ir.Node]]:
    """``region`` without the edges between what moves data and what normalises it."""
    if not any(n.op_type in NORMALISATIONS for n in region) or not any(map(joins, region)):
        return [list(region)]
    kinds = {node: definition_of(node, opsets).kind for node in region}
    parts = components([node for node in region if kinds[node] in MOVES])
    moves = {n for part in parts for n in part if any(kinds[m] is Kind.MOVEMENT for m in part)}

    def may_fuse(edge: Edge) -> Verdict:
        is_cut = (edge.producer in moves) != (edge.consumer in moves)
        return Verdict("pieces that are joined for a normalisation") if is_cut else ALLOWED

    return grow(node_graph(region), set(region), may_fuse)


def joins(node: ir.Node) -> bool:
    """Whether ``node`` puts values side by side along another axis than the last."""
    shape = dims(node.outputs[0])
    if node.op_type != "Concat" or shape is None:
        return False
    return node.attributes.get_int("axis", 0) % max(len(shape), 1) != len(shape) - 1


def _inner_readers(value: ir.Value, members: Collection[ir.Node]) -> set[ir.Node]:
    """The members that read ``value``, if a node outside does too."""
    readers = {user for user, _ in value.uses()}
    inside = {reader for reader in readers if reader in members}
    return inside if len(inside) < len(readers) else set()


def _is_small(producer: ir.Node, members: Collection[ir.Node], limit: int) -> bool:
    """Whether all that is computed and read for ``producer``'s result is small."""
    seen = {producer}
    stack = [producer]
    while stack:
        node = stack.pop()
        values = [v for v in (*node.inputs, *node.outputs) if v is not None]
        if any(elements(value) * BROADCAST > limit for value in values):
            return False
        makers = {v.producer() for v in node.inputs if v is not None} - seen
        inside = {m for m in makers if m is not None and m in members}
        seen |= inside
        stack.extend(inside)
    return True
