"""Channels last between kernels and the quantized convolutions beside them.

ONNX Runtime runs quantized convolutions with the channels last and cancels Transposes that
meet.  A kernel it cannot look into would cost two of them for every value.  So each value
between such a convolution and other nodes is turned and turned back: one Transpose stays with
the convolution, where it is cancelled, and the other becomes part of the kernel.  Where there
is no kernel both are cancelled.

What kernels hand to each other in between stays as it is then: a value that is summed over its
places for one kernel and read again by the next is turned and turned back as well.
"""

from __future__ import annotations

import onnx_ir as ir

from tcfuse.graph.channels_between import handed_over
from tcfuse.graph.native import is_quantized, quantized_output
from tcfuse.graph.native_kernels import FREE
from tcfuse.graph.quantized import STAYS, new_node
from tcfuse.graph.shapes import dims

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def turn_channels(model: ir.Model) -> None:
    """Put Transposes around what quantized convolutions of ``model`` read and write."""
    for graph in model.graphs():
        names = {node.name for node in graph}
        convolutions = [n for n in graph if n.op_type == "Conv" and is_quantized(n)]
        made = dict.fromkeys(map(quantized_output, convolutions))
        read: dict[ir.Value, set[ir.Node]] = {}
        for node in convolutions:
            dequantize = node.inputs[0].producer() if node.inputs[0] is not None else None
            value = dequantize.inputs[0] if dequantize is not None else None
            if value is not None and dequantize is not None and value.producer() is not None:
                read.setdefault(value, set()).add(dequantize)
        for value in dict.fromkeys([*made, *read]):
            if value is not None:
                _turn(value, value in made, read.get(value, set()), names)
        for value in handed_over(graph, FIRST, LAST):
            _turn(value, False, set(), names)


def _turn(value: ir.Value, is_made: bool, theirs: set[ir.Node], names: set[str | None]) -> None:
    """Turn one value for those who read it, unless convolutions are on both sides.

    Args:
        value: What is quantized.
        is_made: Whether a quantized convolution makes it.
        theirs: The nodes through which quantized convolutions read it.
        names: Of all nodes of the graph.
    """
    shape, producer = dims(value), value.producer()
    graph = producer.graph if producer is not None else None
    if shape is None or len(shape) != 4 or shape[2:] == (1, 1) or graph is None:
        return
    assert producer is not None, "what has a graph is a node"
    readers = dict.fromkeys(user for user, _ in value.uses() if user.graph is graph)
    moved = [node for node in readers if not (is_made and node in theirs)]
    if not moved:
        return
    last = _transpose(value, LAST, names, stays=is_made)
    graph.insert_after(producer, last)
    for reader in moved:
        back = _transpose(last.outputs[0], FIRST, names, stays=reader in theirs)
        graph.insert_before(reader, back)
        for position, operand in enumerate(reader.inputs):
            if operand is value:
                reader.replace_input_with(position, back.outputs[0])


def _transpose(
    value: ir.Value, order: tuple[int, ...], names: set[str | None], *, stays: bool
) -> ir.Node:
    """A new Transpose of ``value``."""
    shape = value.shape
    assert shape is not None, "only values of known shapes are turned"
    turned = ir.Value(type=value.type, shape=ir.Shape([shape[k] for k in order]))
    attributes = [ir.AttrInt64s("perm", order)]
    node = new_node("Transpose", (value,), attributes, turned, names)
    node.meta[FREE] = True
    if stays:
        node.meta[STAYS] = True
    return node
