"""A DequantizeLinear for each node that reads one.

ONNX Runtime makes the same copies before it looks for operators to run on 8-bit integers, so
they cost nothing.  With them a region takes the DequantizeLinear in front of its own nodes and
leaves that of the quantized operator beside it, which would run on floats without.
"""

from __future__ import annotations

import onnx_ir as ir


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
    for number, reader in enumerate(list(readers)[0 if value.is_graph_output() else 1 :], 2):
        twin = ir.Value(type=value.type, shape=value.shape)
        copy = ir.Node(
            node.domain,
            node.op_type,
            node.inputs,
            list(node.attributes.values()),
            outputs=[twin],
            name=_unused(f"{node.name or node.op_type}_{number}", names),
        )
        node.graph.insert_after(node, copy)
        for position, operand in enumerate(reader.inputs):
            if operand is value:
                reader.replace_input_with(position, twin)


def _unused(name: str, names: set[str | None]) -> str:
    """``name``, with as many underscores behind it as it takes to be new; now taken."""
    while name in names:
        name += "_"
    names.add(name)
    return name
