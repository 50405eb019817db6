"""Numbers that are quantized again as they were, which kernels take for themselves.

Exporters put a DequantizeLinear and a QuantizeLinear around operators that only move elements;
with one scale and one zero point they leave every number as it is (``tc.requantize``).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir as ir

from tcfuse.graph.constants import constant_value
from tcfuse.graph.traffic import VIEWS

MOVES = frozenset({*VIEWS, "Transpose"})


def requantizations(nodes: Collection[ir.Node]) -> set[ir.Node]:
    """The DequantizeLinear and QuantizeLinear among ``nodes`` that cancel each other."""
    found: set[ir.Node] = set()
    for last in nodes:
        if last.op_type != "QuantizeLinear":
            continue
        first = _maker(last, nodes)
        while first is not None and first.op_type in MOVES:
            first = _maker(first, nodes)
        if first is not None and first.op_type == "DequantizeLinear" and _alike(first, last):
            found |= {first, last}
    return found


def _maker(node: ir.Node, nodes: Collection[ir.Node]) -> ir.Node | None:
    """What makes the first operand of ``node``, if it is one of ``nodes``."""
    value = node.inputs[0]
    maker = value.producer() if value is not None else None
    return maker if maker in nodes else None


def _alike(first: ir.Node, last: ir.Node) -> bool:
    """Whether two nodes have equal scales and zero points."""
    pairs = list(zip(first.inputs[1:], last.inputs[1:], strict=False))
    if len(first.inputs) != len(last.inputs) or len(pairs) != 2:
        return False
    for a, b in pairs:
        x = constant_value(a) if a is not None else None
        y = constant_value(b) if b is not None else None
        if x is None or y is None or not np.array_equal(x, y):
            return False
    return True
