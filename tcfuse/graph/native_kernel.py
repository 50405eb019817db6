"""One kernel that ONNX Runtime launches: its name, what it moves, and what it takes.

A kernel is *named* as in ``Machine.rates``: by operator, with what makes the same operator fast
or slow behind a colon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from tcfuse.graph import products
from tcfuse.graph.constants import constant_value
from tcfuse.graph.machine import MACHINE, Machine
from tcfuse.graph.products import product_of
from tcfuse.graph.shapes import dims
from tcfuse.graph.spans import SPAN_US, short_spans
from tcfuse.graph.traffic import PARTIAL, VIEWS, n_bytes

SETUP_US = {"Conv": 0.8, "QLinearConv": 0.8}
"""Microseconds that a kernel takes to set up whatever its operands' sizes."""


@dataclass(frozen=True, slots=True, eq=False)
class NativeKernel:
    """One launch.

    Attributes:
        name: The key of its rate.
        nodes: The nodes that it stands for.
        reads: The values it reads.
        writes: The values it writes.
    """

    name: str
    nodes: tuple[ir.Node, ...]
    reads: tuple[ir.Value, ...]
    writes: tuple[ir.Value, ...]

    @property
    def is_view(self) -> bool:
        """Whether it moves nothing."""
        return self.name in VIEWS

    def time_us(
        self, sizes: Mapping[str, int] | None = None, machine: Machine = MACHINE
    ) -> float:
        """Microseconds it takes."""
        if self.is_view:
            return machine.native_us
        product = product_of(self.nodes[0]) if len(self.nodes) == 1 else None
        if product is not None:
            return products.native_us(product, machine)
        written = sum(n_bytes(value, sizes) for value in self.writes)
        read = [n_bytes(value, sizes) for value in self.reads]
        if read and self.name.partition(":")[0] in PARTIAL:
            read[0] = min(read[0], written)
        moved = written + sum(read)
        fixed = machine.native_us + SETUP_US.get(self.name, 0.0)
        if len(self.nodes) == 1:
            fixed += short_spans(self.nodes[0], sizes) * SPAN_US
        return fixed + moved / machine.native_rate(self.name, moved)


def node_us(
    node: ir.Node, sizes: Mapping[str, int] | None = None, machine: Machine = MACHINE
) -> float:
    """Time of ONNX Runtime's kernel for ``node`` by itself."""
    return alone(node).time_us(sizes, machine)


def alone(node: ir.Node) -> NativeKernel:
    """The kernel of one node."""
    reads = tuple(dict.fromkeys(v for v in node.inputs if v is not None))
    return NativeKernel(kernel_name(node), (node,), reads, tuple(node.outputs))


def kernel_name(node: ir.Node) -> str:
    """The key of the rate of ``node``: its operator, and what decides how fast that is."""
    variant = VARIANTS.get(node.op_type)
    return variant(node) if variant is not None else node.op_type


def _transpose_name(node: ir.Node) -> str:
    """A Transpose of sizes that are 1 is a view; one that keeps rows together copies them."""
    shape = dims(node.inputs[0]) if node.inputs[0] is not None else None
    order = node.attributes.get_ints("perm", ()) or ()
    if shape is None or len(order) != len(shape):
        return node.op_type
    moved = [k for k in order if shape[k] != 1]
    if moved == sorted(moved):
        return "Identity"
    return "Transpose:rows" if moved[-1] == max(moved) else node.op_type


def _cast_name(node: ir.Node) -> str:
    """A Cast to the type that a value has is dropped."""
    value = node.inputs[0]
    return "Identity" if value is not None and value.dtype is node.outputs[0].dtype else "Cast"


def _reduction_name(node: ir.Node) -> str:
    """A reduction that keeps the last axis runs over columns."""
    shape = dims(node.inputs[0]) if node.inputs[0] is not None else None
    axes = node.attributes.get_ints("axes", None)
    if axes is None and len(node.inputs) > 1:
        value = constant_value(node.inputs[1])
        axes = None if value is None else value.reshape(-1).tolist()
    if not axes or shape is None:
        return node.op_type
    last = len(shape) - 1
    return node.op_type if last in {a % len(shape) for a in axes} else f"{node.op_type}:columns"


def _softmax_name(node: ir.Node) -> str:
    """A Softmax over another axis than the last is turned first."""
    shape = dims(node.inputs[0]) if node.inputs[0] is not None else None
    axis = node.attributes.get_int("axis", -1)
    is_last = shape is None or axis in (-1, len(shape) - 1)
    return node.op_type if is_last else f"{node.op_type}:columns"


def _pow_name(node: ir.Node) -> str:
    """Squares are products."""
    exponent = constant_value(node.inputs[1])
    is_plain = exponent is not None and exponent.size == 1 and float(exponent) in (2.0, 3.0)
    return node.op_type if is_plain else "Pow:general"


VARIANTS: Mapping[str, Callable[[ir.Node], str]] = {
    "Cast": _cast_name,
    "LogSoftmax": _softmax_name,
    "Pow": _pow_name,
    "Softmax": _softmax_name,
    "Transpose": _transpose_name,
    **dict.fromkeys(
        [
            *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
            *("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
        ],
        _reduction_name,
    ),
}
"""Operators whose kernels are not equally fast for all attributes."""
