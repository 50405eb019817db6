"""Finds the nodes that only compute sizes.

Exporters write ``Reshape(x, Concat(Gather(Shape(x), 0), -1))``.  Those few integers are folded
or computed in nanoseconds by ONNX Runtime, and a kernel that produced them would have to be
waited for.  A node is shape arithmetic when all its results are small integer vectors that
either come from ``Shape`` alone or are needed for shapes alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import onnx_ir as ir

from tcfuse.graph.shapes import dims

MAX_ELEMENTS = 64
"""Longest vector that still counts as a shape."""

SOURCES = frozenset({"Shape", "Size"})

SINKS: dict[str, frozenset[int]] = {
    "CenterCropPad": frozenset({1}),
    "ConstantOfShape": frozenset({0}),
    "Expand": frozenset({1}),
    "Loop": frozenset({0}),
    "OneHot": frozenset({1}),
    "Pad": frozenset({1, 3}),
    "Range": frozenset({0, 1, 2}),
    "Reshape": frozenset({1}),
    "Resize": frozenset({2, 3}),
    "Slice": frozenset({1, 2, 3, 4}),
    "Split": frozenset({1}),
    "Squeeze": frozenset({1}),
    "Tile": frozenset({1}),
    "TopK": frozenset({1}),
    "Unsqueeze": frozenset({1}),
    "Upsample": frozenset({1}),
}
"""Inputs, by position, that are read as sizes, positions or axes."""

INTEGERS = frozenset({ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL})


def shape_arithmetic(nodes: Sequence[ir.Node]) -> frozenset[ir.Node]:
    """The nodes of one graph, given in topological order, that only compute sizes."""
    small = {node for node in nodes if all(_is_small(value) for value in node.outputs)}
    return frozenset(_from_shapes(nodes, small) | _for_shapes(nodes, small))


def _is_small(value: ir.Value) -> bool:
    """Whether ``value`` is an integer scalar or a short integer vector."""
    if value.dtype not in INTEGERS:
        return False
    shape = dims(value)
    if shape is None:
        return value.shape is not None and len(value.shape) <= 1
    return len(shape) <= 1 and all(isinstance(d, int) and d <= MAX_ELEMENTS for d in shape)


def _from_shapes(nodes: Iterable[ir.Node], small: Collection[ir.Node]) -> set[ir.Node]:
    """The ``small`` nodes whose inputs all derive from ``Shape`` and constants."""
    found: set[ir.Node] = set()
    constants: set[ir.Node] = set()
    for node in nodes:
        if node.op_type == "Constant":
            constants.add(node)
        elif node.op_type in SOURCES:
            found.add(node)
        elif node in small:
            makers = [
                v.producer() for v in node.inputs if v is not None and v.const_value is None
            ]
            made = [m in found for m in makers if m not in constants]
            if made and all(made):
                found.add(node)
    return found


def _for_shapes(nodes: Sequence[ir.Node], small: Collection[ir.Node]) -> set[ir.Node]:
    """The ``small`` nodes all of whose uses end in inputs that are read as sizes."""
    found: set[ir.Node] = set()
    for node in reversed(nodes):
        if node in small and all(_only_sizes(value, found) for value in node.outputs):
            found.add(node)
    return found


def _only_sizes(value: ir.Value, found: Collection[ir.Node]) -> bool:
    """Whether every use of ``value`` reads it as a size or is in ``found``; some use exists."""
    uses = value.uses()
    return (
        bool(uses)
        and not value.is_graph_output()
        and all(user in found or k in SINKS.get(user.op_type, ()) for user, k in uses)
    )
