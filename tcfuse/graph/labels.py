"""Labels that are equal for nodes in equal surroundings, by which equal parts are priced once.

The label of a node starts as a digest of its operator, attributes, types and small constants,
and then takes in the labels of its neighbours, a few times (the Weisfeiler-Lehman refinement),
so it says what is known of everything within ``ROUNDS`` edges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import blake2b

import onnx_ir as ir

from tcfuse.graph.constants import constant_tensor
from tcfuse.graph.shapes import dims

ROUNDS = 3
"""Edges that pricing looks along: a region's border, what reads there, and its operands."""

MOST_ELEMENTS = 16
"""Of a constant that prices may depend on."""


def labels(
    nodes: Sequence[ir.Node], marked: Collection[ir.Value] = frozenset()
) -> dict[ir.Node, bytes]:
    """A label for each of ``nodes``, the same in every run.

    Args:
        nodes: All of one graph.
        marked: Values of which more is known than the graph says.
    """
    found = {node: _digest(_described(node, marked)) for node in nodes}
    makers = {
        node: [value.producer() if value is not None else None for value in node.inputs]
        for node in nodes
    }
    readers = {
        node: [(user, b"%d" % k) for value in node.outputs for user, k in value.uses()]
        for node in nodes
    }
    for _ in range(ROUNDS):
        before = found
        found = {
            node: _digest(
                [
                    before[node],
                    *(before.get(maker, b"-") if maker is not None else b"-" for maker in made),
                    b"",
                    *sorted(before.get(user, b"-") + k for user, k in readers[node]),
                ]
            )
            for node, made in makers.items()
        }
    return found


def _digest(parts: Iterable[bytes]) -> bytes:
    return blake2b(b"|".join(parts), digest_size=12).digest()


def _described(node: ir.Node, marked: Collection[ir.Value]) -> Iterator[bytes]:
    """A node by itself."""
    yield f"{node.domain}:{node.op_type}:{sorted(map(str, node.meta))}".encode()
    for attribute in sorted(node.attributes.values(), key=lambda a: a.name):
        if attribute.type not in (ir.AttributeType.TENSOR, ir.AttributeType.GRAPH):
            yield f"{attribute.name}={attribute.value}".encode()
    for value in (*node.inputs, None, *node.outputs):
        if value is None:
            yield b"-"
            continue
        shape, last = dims(value), value.is_graph_output()
        yield f"{value.dtype}{shape}{last:d}{value in marked:d}".encode()
        if (tensor := constant_tensor(value)) is not None:
            yield tensor.tobytes() if tensor.size <= MOST_ELEMENTS else b"constant"
