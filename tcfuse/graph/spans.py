"""Runs of elements that ONNX Runtime's broadcasting operators loop over.

It calls a loop for each run over which no operand starts or ends to repeat.  Runs as long as a
block of channels take longer to call than to compute.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from tcfuse.graph.shapes import dims
from tcfuse.graph.traffic import elements

BROADCASTS = frozenset(
    {
        *("Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
        *("Max", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"),
    }
)
"""Operators whose operands are repeated to fit each other."""

SHORT = 64
"""Elements of a run that take longer than the call of the loop over them."""

SPAN_US = 0.008
"""Microseconds a run takes whatever its length, as measured with 8 to 64 elements."""


def short_spans(node: ir.Node, sizes: Mapping[str, int] | None = None) -> int:
    """How many short runs ``node`` is made of; 0 where they are long."""
    if node.op_type not in BROADCASTS or not node.outputs:
        return 0
    shape = dims(node.outputs[0])
    operands = [own for v in node.inputs if v is not None and (own := dims(v)) is not None]
    if not shape:
        return 0
    span, pattern = 1, None
    for back in range(1, len(shape) + 1):
        if shape[-back] == 1:
            continue
        repeated = tuple(len(own) < back or own[-back] == 1 for own in operands)
        if pattern is not None and repeated != pattern:
            break
        pattern, size = repeated, shape[-back]
        span *= size if isinstance(size, int) else SHORT
        if not 0 < span < SHORT:
            return 0
    count = elements(node.outputs[0], sizes) // span
    return count if count > 1 else 0
