"""A DequantizeLinear for each node that reads one.

ONNX Runtime makes the same copies before it looks for operators to run on 8-bit integers, so
they cost nothing.  With them a region takes the DequantizeLinear in front of its own nodes and
leaves that of the quantized operator beside it, which would run on floats without.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

STAYS = "tcfuse.stays"
"""Key in the ``meta`` of a node that stays with the quantized operator beside it."""


def own_dequantizers(model: ir.Model) -> None:
    """Copy every DequantizeLinear of ``model`` for each node but the first that reads it."""
    for graph in model.graphs():
        names = {node.name for node in graph}
        for node in list(graph):
            if node.op_type == "DequantizeLinear":
                _copy_for_readers(node, names)


def _copy_for_readers(node: ir.Node, names: set[str | None]) -> None:
    """Leave ``node`` to the first node of its graph that reads it."""
    (value,) = node.outputs
    readers = dict.fromkeys(user for user, _ in value.uses() if user.graph is node.graph)
    assert node.graph is not None, "a node of a model is in a graph"
    for reader in list(readers)[0 if value.is_graph_output() else 1 :]:
        twin = ir.Value(type=value.type, shape=value.shape)
        attributes = list(node.attributes.values())
        copy = new_node(node.op_type, node.inputs, attributes, twin, names, node.domain)
        node.graph.insert_after(node, copy)
        for position, operand in enumerate(reader.inputs):
            if operand is value:
                reader.replace_input_with(position, twin)


def new_node(
    op_type: str,
    inputs: Sequence[ir.Value | None],
    attributes: Sequence[ir.Attr],
    output: ir.Value,
    names: set[str | None],
    domain: str = "",
) -> ir.Node:
    """A node with a name that is none of ``names``, which grow by it."""
    name = _unused(f"{op_type}_tcfuse", names)
    return ir.Node(domain, op_type, inputs, attributes, outputs=[output], name=name)


def _unused(name: str, names: set[str | None]) -> str:
    """``name`` with the first number behind it that makes it new; now taken."""
    number = len(names)
    while f"{name}_{number}" in names:
        number += 1
    names.add(f"{name}_{number}")
    return f"{name}_{number}"
