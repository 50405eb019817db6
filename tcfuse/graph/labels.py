"""Labels that are equal for nodes in equal surroundings, by which equal parts are priced once.

The label of a node starts as a digest of its operator, attributes, types and small constants,
and then takes in the labels of its neighbours, a few times (the Weisfeiler-Lehman refinement),
so it says what is known of everything within ``ROUNDS`` edges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import onnx_ir as ir

from tcfuse.graph.constants import constant_tensor
from tcfuse.graph.shapes import dims

ROUNDS = 3
"""Edges that pricing looks along: a region's border, what reads there, and its operands."""

MOST_ELEMENTS = 16
"""Of a constant that prices may depend on."""


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Labels of the nodes of one graph, the same in every run.

    Attributes:
        own: Of each node by itself.
        around: Of each node with all that is near it.
    """

    own: dict[ir.Node, bytes]
    around: dict[ir.Node, bytes]


def labels(nodes: Sequence[ir.Node], marked: Collection[ir.Value] = frozenset()) -> Labels:
    """A label for each of ``nodes``.

    Args:
        nodes: All of one graph.
        marked: Values of which more is known than the graph says.
    """
    describe = _Describer(marked)
    own = [_digest(b"|".join(describe.node(node))) for node in nodes]
    number = {node: k for k, node in enumerate(nodes)}
    outside = len(nodes)  # whatever is not among the nodes has this number, and the label "-"
    makers = [
        [
            number.get(maker, outside)
            if value is not None and (maker := value.producer()) is not None
            else outside
            for value in node.inputs
        ]
        for node in nodes
    ]
    readers = [
        [
            (number.get(user, outside), b"%d" % position)
            for value in node.outputs
            for user, position in value.uses()
        ]
        for node in nodes
    ]
    found = [*own, b"-"]
    for _ in range(ROUNDS):
        before = found
        texts = (
            b"|".join(
                [
                    before[k],
                    *[before[maker] for maker in makers[k]],
                    b"",
                    *sorted([before[user] + position for user, position in readers[k]]),
                ]
            )
            for k in range(outside)
        )
        known: dict[bytes, bytes] = {}
        found = [known.get(text) or known.setdefault(text, _digest(text)) for text in texts]
        found.append(b"-")
    around = dict(zip(nodes, found, strict=False))
    return Labels(dict(zip(nodes, own, strict=True)), around)


def _digest(text: bytes) -> bytes:
    return blake2b(text, digest_size=12).digest()


class _Describer:
    """Describes nodes by themselves; the text of a type and a shape is made once."""

    def __init__(self, marked: Collection[ir.Value]) -> None:
        self._marked = marked
        self._texts: dict[object, bytes] = {}

    def node(self, node: ir.Node) -> Iterator[bytes]:
        """What a label says of a node."""
        yield f"{node.domain}:{node.op_type}:{sorted(map(str, node.meta))}".encode()
        for attribute in sorted(node.attributes.values(), key=lambda a: a.name):
            if attribute.type not in (ir.AttributeType.TENSOR, ir.AttributeType.GRAPH):
                yield f"{attribute.name}={attribute.value}".encode()
        if len(set(node.inputs)) < len(node.inputs):  # what is read twice is moved once
            yield str([node.inputs.index(value) for value in node.inputs]).encode()
        for value in (*node.inputs, None, *node.outputs):
            if value is None:
                yield b"-"
                continue
            yield self._value(value)
            if (tensor := constant_tensor(value)) is not None:
                yield tensor.tobytes() if tensor.size <= MOST_ELEMENTS else b"constant"

    def _value(self, value: ir.Value) -> bytes:
        """Type and shape of a value, and how it is used."""
        key = value.dtype, dims(value), value.is_graph_output(), value in self._marked
        if key not in self._texts:
            dtype, shape, last, marked = key
            self._texts[key] = f"{dtype}{shape}{last:d}{marked:d}".encode()
        return self._texts[key]
