"""Values that kernels hand to each other between two places where channels are last.

Behind a quantized convolution a kernel turns its input back and before the next one a kernel
turns its output.  Where a value in between is summed over its places, which ends a kernel, and
read again beside what became of the sum, two kernels would transpose it to no end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from tcfuse.graph.legality import is_elementwise
from tcfuse.graph.quantized import STAYS
from tcfuse.graph.shapes import dims


def handed_over(
    nodes: Sequence[ir.Node], first: tuple[int, ...], last: tuple[int, ...]
) -> list[ir.Value]:
    """The 8-bit values among those of ``nodes`` that are read both ways.

    Args:
        nodes: In topological order.
        first: The order of axes that turns channels back to the front.
        last: The one that puts them last.
    """
    behind = {v for node in _turning(nodes, first) for v in node.outputs}
    before = {v for node in _turning(nodes, last) for v in node.inputs if v is not None}
    for node in nodes:
        if _keeps(node, behind, node.inputs):
            behind.update(node.outputs)
    for node in reversed(nodes):
        if _keeps(node, before, node.outputs):
            before.update(v for v in node.inputs if v is not None)
    return [
        value
        for node in nodes
        if node.op_type == "QuantizeLinear"
        for value in node.outputs
        if value in behind and value in before and _ends_a_kernel(value, before)
    ]


def _turning(nodes: Iterable[ir.Node], order: tuple[int, ...]) -> list[ir.Node]:
    """Transposes to ``order`` that are there for kernels."""
    return [
        node
        for node in nodes
        if node.op_type == "Transpose"
        and STAYS not in node.meta
        and tuple(node.attributes.get_ints("perm", ())) == order
    ]


def _keeps(node: ir.Node, known: set[ir.Value], side: Iterable[ir.Value | None]) -> bool:
    """Whether ``node`` computes elements of its result from those at their places.

    Args:
        node: A node.
        known: Values whose places are known to matter.
        side: The inputs or the outputs, of which one must be known.
    """
    shapes = [dims(v) for v in side if v is not None and v in known]
    result = dims(node.outputs[0]) if len(node.outputs) == 1 else None
    return result is not None and result in shapes and is_elementwise(node)


def _ends_a_kernel(value: ir.Value, before: set[ir.Value]) -> bool:
    """Whether some read ``value`` place by place, and others all of its places at once."""
    readers = [_reader(user) for user, _ in value.uses()]
    along = [any(v in before for v in reader.inputs) for reader in readers]
    return any(along) and any(
        not is_elementwise(reader) and reader.op_type != "Transpose" for reader in readers
    )


def _reader(node: ir.Node) -> ir.Node:
    """What reads the numbers that ``node`` gives, if that is a DequantizeLinear for one."""
    uses = [user for value in node.outputs for user, _ in value.uses()]
    return uses[0] if node.op_type == "DequantizeLinear" and len(uses) == 1 else node
