"""Nodes whose result is a function of one 8-bit number, which kernels look up in a table.

Between a DequantizeLinear and the QuantizeLinear behind it there may be any number of
functions and of further roundings; one access is left of all of them (``mapping.tables``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from tcfuse.graph.legality import is_elementwise, is_fixed
from tcfuse.graph.shapes import dims


def lookups(nodes: Iterable[ir.Node]) -> dict[ir.Node, set[ir.Node]]:
    """The functions among ``nodes``, in topological order: all members by the last one."""
    found: dict[ir.Node, set[ir.Node]] = {}
    constants: set[ir.Value] = set()
    origin: dict[ir.Value, ir.Value] = {}
    behind: dict[ir.Value, set[ir.Node]] = {}
    for node in nodes:
        read = [v for v in node.inputs if v is not None and not is_fixed(v)]
        read = [v for v in read if v not in constants]
        if not read:
            constants.update(node.outputs)
            continue
        source = _source(node, read, origin)
        if source is None:
            continue
        (result,) = node.outputs
        origin[result] = source
        behind[result] = {node}.union(*(behind.get(value, ()) for value in read))
        if node.op_type == "QuantizeLinear":
            for inner in found.keys() & behind[result]:
                del found[inner]
            found[node] = behind[result]
    return found


def _source(
    node: ir.Node, read: list[ir.Value], origin: Mapping[ir.Value, ir.Value]
) -> ir.Value | None:
    """The 8-bit value that ``node`` computes a function of, element by element."""
    if len(node.outputs) != 1 or not is_elementwise(node):
        return None
    starts = node.op_type == "DequantizeLinear"
    sources = {origin.get(value, value if starts else None) for value in read}
    if len(sources) != 1 or len({dims(value) for value in read}) != 1:
        return None
    return sources.pop()
