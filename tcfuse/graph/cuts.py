"""Takes small shared operands out of the regions that merely read them.

An attention mask is computed once and added in every layer.  Growing merges it with the first
layer, which then needs a kernel of its own, while the mask is written to memory in any case.
Cut off, the mask is a small region (or a node for ONNX Runtime) and all layers share one
kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import onnx_ir as ir

from tcfuse.graph.legality import ALLOWED, Edge, Verdict
from tcfuse.graph.regions import grow, node_graph
from tcfuse.graph.traffic import elements

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
