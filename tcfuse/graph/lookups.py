"""Nodes whose result is a function of one 8-bit number, which kernels look up in a table.

Between a DequantizeLinear and the QuantizeLinear behind it there may be any number of
functions and of further roundings; one access is left of all of them (``mapping.tables``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeAlias

import onnx_ir as ir

from tcfuse.graph.legality import is_elementwise, is_fixed
from tcfuse.graph.shapes import dims

Origin: TypeAlias = Hashable
"""An 8-bit value, or one and how it was turned: what is turned twice alike is one number."""


def lookups(nodes: Iterable[ir.Node]) -> dict[ir.Node, set[ir.Node]]:
    """The functions among ``nodes``, in topological order: all members by the last one."""
    found: dict[ir.Node, set[ir.Node]] = {}
    constants: set[ir.Value] = set()
    origin: dict[ir.Value, Origin] = {}
    turned: dict[ir.Value, Origin] = {}
    behind: dict[ir.Value, set[ir.Node]] = {}
    for node in nodes:
        read = [v for v in node.inputs if v is not None and not is_fixed(v)]
        read = [v for v in read if v not in constants]
        if not read:
            constants.update(node.outputs)
            continue
        if node.op_type == "Transpose" and len(read) == 1:
            order = tuple(node.attributes.get_ints("perm", ()) or ())
            turned[node.outputs[0]] = turned.get(read[0], read[0]), order
        source = _source(node, read, origin, turned)
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
    node: ir.Node,
    read: list[ir.Value],
    origin: Mapping[ir.Value, Origin],
    turned: Mapping[ir.Value, Origin],
) -> Origin | None:
    """The 8-bit value that ``node`` computes a function of, element by element."""
    if len(node.outputs) != 1 or not is_elementwise(node):
        return None
    starts = node.op_type == "DequantizeLinear"
    sources = {origin.get(v, turned.get(v, v) if starts else None) for v in read}
    if len(sources) != 1 or len({dims(value) for value in read}) != 1:
        return None
    return sources.pop()
