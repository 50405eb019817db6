"""What a region costs: bytes moved, arithmetic, launches, and a time made of them.

The numbers order regions and decide close calls before anything is compiled; the gate measures
what survives.  So they need the right ratios, not the right microseconds.  Rates are those of a
``graph.machine.Machine``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from tcfuse.graph.legality import is_fixed
from tcfuse.graph.lookups import lookups
from tcfuse.graph.machine import MACHINE, Machine
from tcfuse.graph.native_kernel import kernel_name
from tcfuse.graph.native_kernels import FREE, native_kernels
from tcfuse.graph.plan import FusionGroup
from tcfuse.graph.products import kernel_cycles, product_of
from tcfuse.graph.requantized import requantizations
from tcfuse.graph.traffic import (
    PARTIAL,
    VIEWS,
    elements,
    length,
    n_bytes,
    read_bytes,
)

PRODUCTS = frozenset(
    {
        *("DynamicQuantizeMatMul", "FusedMatMul", "MatMul", "MatMulInteger"),
        *("MatMulIntegerToFloat", "MatMulNBits", "QLinearMatMul", "TransposeMatMul"),
    }
)
"""Products of matrices."""

FILTERS = {"Conv": 1, "ConvInteger": 1, "DeformConv": 1, "FusedConv": 1, "QLinearConv": 3}
"""Convolutions, and which of their inputs are the filters."""

CONTRACTIONS = PRODUCTS | FILTERS.keys() | {"ConvTranspose", "Einsum", "FusedGemm", "Gemm"}
"""Operators whose multiplications are counted."""

WINDOWS = frozenset({"AveragePool", "LpPool", "MaxPool", "QLinearAveragePool"})
"""Operators that combine the elements in windows."""

RESIZES = frozenset({"Resize", "Upsample"})
"""Operators that interpolate between elements."""

OPERATIONS: Mapping[str, float] = {
    "Acos": 10, "Acosh": 33, "Asin": 9, "Asinh": 37, "Atan": 11, "Atanh": 20, "BiasGelu": 11,
    "Cast": 2, "Celu": 10, "Concat": 4, "Cos": 9, "Cosh": 10, "Div": 4, "Elu": 10, "Erf": 10,
    "Exp": 8, "FastGelu": 11, "Gelu": 11, "GlobalAveragePool": 3, "GroupNormalization": 9,
    "HardSigmoid": 2, "HardSwish": 2, "InstanceNormalization": 9, "LayerNormalization": 12,
    "Log": 12, "LogSoftmax": 18, "Mish": 44, "Mod": 16, "Pow": 64, "QuantizeLinear": 5,
    "QuickGelu": 10, "Reciprocal": 3, "Selu": 11, "Sigmoid": 10, "Sin": 8, "Sinh": 13,
    "SkipLayerNormalization": 12, "Softmax": 18, "Softplus": 28, "Softsign": 3, "Sqrt": 5,
    "Tan": 13, "Tanh": 9, "Transpose": 6,
}  # fmt: skip
"""Cycles that a vector of 16 lanes takes in our kernels; other operators take one."""

VECTOR = 16
"""Lanes of a vector."""

LOOKUP = 2
"""Cycles of 16 functions of one byte, looked up in a table."""

MULTIPLY_ADD = 5
"""Cycles of 16 multiply-adds of contractions so small that they join a region."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a region moves and computes.

    Attributes:
        bytes_in: Bytes of the values it reads, each once.
        bytes_out: Bytes of the values others need.
        bytes_between: Bytes of the values that stay inside, each written and read once.
        flops: Scalar operations, weighted by what they cost.
        kernels: Kernels ONNX Runtime would launch.
        native_us: Time of those kernels.
        fused_us: Time of one kernel for the whole region.
    """

    bytes_in: int
    bytes_out: int
    bytes_between: int
    flops: float
    kernels: int
    native_us: float
    fused_us: float

    @property
    def speedup(self) -> float:
        """How many times faster the fused kernel is expected to be."""
        return self.native_us / self.fused_us


def estimate(
    group: FusionGroup, sizes: Mapping[str, int] | None = None, machine: Machine = MACHINE
) -> Estimate:
    """What ``group`` costs as it is and fused.

    Args:
        group: The region.
        sizes: Values of named sizes; ``DEFAULT_SIZE`` for the others.
        machine: What runs it.
    """
    kernels = native_kernels(group.nodes)
    visible = set(group.outputs)
    inside = [v for node in group.nodes for v in node.outputs if v not in visible and v.uses()]
    bytes_in = read_bytes(group.nodes, sizes, set(group.inputs))
    bytes_out = sum(n_bytes(v, sizes) for v in group.outputs)
    flops = region_flops(group.nodes, sizes)
    moving = (bytes_in + bytes_out) / machine.copy_rate(bytes_in + bytes_out)
    return Estimate(
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        bytes_between=2 * sum(n_bytes(v, sizes) for v in inside),
        flops=flops,
        kernels=sum(not kernel.is_view for kernel in kernels),
        native_us=sum(kernel.time_us(sizes, machine) for kernel in kernels),
        fused_us=machine.fused_us + max(moving, flops / VECTOR / machine.hertz * 1e6),
    )


def multiply_adds(node: ir.Node, sizes: Mapping[str, int] | None = None) -> int:
    """Products that a contraction sums; for one that is not in the table, at most so many.

    No output element of a contraction of two operands depends on more than all of the larger.
    """
    inputs = (*node.inputs, *[None] * 4)  # a malformed node may lack some
    counts = [1 if v is None else elements(v, sizes) for v in inputs]
    made = max((elements(v, sizes) for v in node.outputs), default=0)
    if node.op_type in PRODUCTS:
        rows_last = bool(node.attributes.get_int("transA", 0))
        return made * length(inputs[0], -2 if rows_last else -1, sizes)
    if node.op_type in FILTERS:
        filters = FILTERS[node.op_type]
        return made * counts[filters] // max(length(inputs[filters], 0, sizes), 1)
    match node.op_type:
        case "Gemm" | "FusedGemm":
            return made * counts[0] // max(length(node.outputs[0], 0, sizes), 1)
        case "ConvTranspose":
            return counts[0] * counts[1] // max(length(inputs[1], 0, sizes), 1)
        case "Einsum":
            return math.prod(counts)
        case "Attention" | "FlexAttention" | "MultiHeadAttention":
            keys = length(inputs[1], -2, sizes) + _past_length(node, sizes)
            return 2 * elements(node.outputs[0], sizes) * keys
        case "RNN" | "GRU" | "LSTM":
            points = counts[0] // max(length(inputs[0], -1, sizes), 1)
            return points * (counts[1] + counts[2])
        case "CausalConvWithState":
            return counts[0] * length(inputs[1], -1, sizes)
        case "LinearAttention":  # each key is decayed, corrected, added to and read
            heads = max(1, node.attributes.get_int("kv_num_heads", 1))
            return 3 * counts[2] * max(1, length(inputs[1], -1, sizes) // heads)
        case _:
            return made * max(counts, default=1)


def window_reads(node: ir.Node, sizes: Mapping[str, int] | None = None) -> int:
    """Elements that a pool or a resize reads for all of its output; 0 for other operators."""
    made = max((elements(v, sizes) for v in node.outputs), default=0)
    if node.op_type in WINDOWS:
        return made * math.prod(node.attributes.get_ints("kernel_shape", ()))
    if node.op_type in RESIZES:
        taps = {"nearest": 1, "linear": 4, "cubic": 16}
        return made * taps.get(node.attributes.get_string("mode", "nearest"), 1)
    return 0


def _past_length(node: ir.Node, sizes: Mapping[str, int] | None) -> int:
    """How many steps lie before those of an attention's keys."""
    position = 6 if node.op_type == "MultiHeadAttention" else 4
    past = node.inputs[position] if len(node.inputs) > position else None
    return 0 if past is None else length(past, 2, sizes)


def region_flops(nodes: Sequence[ir.Node], sizes: Mapping[str, int] | None) -> float:
    """Weighted scalar operations of a region; what a table is cheaper for is looked up."""
    each = {
        node: 0.0 if _is_index_map(node, nodes) else node_flops(node, sizes) for node in nodes
    }
    each.update(dict.fromkeys(requantizations(nodes), 0.0))
    for last, members in lookups(nodes).items():
        computed = sum(each[node] for node in members)
        table = LOOKUP * max(elements(value, sizes) for value in last.outputs)
        if table < computed:
            each |= dict.fromkeys(members, 0.0)
            each[last] = table
    return sum(each.values())


def _is_index_map(node: ir.Node, nodes: Sequence[ir.Node]) -> bool:
    """Whether a Transpose is the way a product of the region reads or writes."""
    if node.op_type != "Transpose":
        return False
    users = [user for value in node.outputs for user, _ in value.uses()]
    makers = [value.producer() for value in node.inputs if value is not None]
    near = (n for n in (*users, *makers) if n is not None and n in nodes)
    return any(product_of(n) is not None for n in near)


def node_flops(node: ir.Node, sizes: Mapping[str, int] | None) -> float:
    """Weighted scalar operations of ``node``: on its largest operand, since it may reduce."""
    if node.op_type in VIEWS:
        return 0
    product = product_of(node)
    if product is not None:
        return VECTOR * kernel_cycles(product)
    if node.op_type in CONTRACTIONS:
        return MULTIPLY_ADD * multiply_adds(node, sizes)
    if reads := window_reads(node, sizes):
        return reads
    read = () if node.op_type in PARTIAL else node.inputs
    values = [v for v in (*read, *node.outputs) if v is not None]
    largest = max((elements(value, sizes) for value in values), default=0)
    return min(largest, wanted(node, sizes)) * _cycles(node)


def wanted(node: ir.Node, sizes: Mapping[str, int] | None) -> float:
    """Elements that those who read ``node`` want: parts of it only, or all."""
    users = [user for value in node.outputs for user in value.uses()]
    if not users or any(u.op_type not in PARTIAL or position != 0 for u, position in users):
        return math.inf
    return sum(elements(value, sizes) for user, _ in users for value in user.outputs)


def _cycles(node: ir.Node) -> float:
    """Cycles for 16 elements: what a constant divides or raises to a power is cheap."""
    name = kernel_name(node)
    divisor = node.inputs[1] if node.op_type == "Div" else None
    if name == "Pow" or (divisor is not None and is_fixed(divisor)):
        return 1
    if node.op_type == "Transpose":  # of rows, of nothing, and one that is undone cost little
        return OPERATIONS[name] if name in OPERATIONS and FREE not in node.meta else 1
    return OPERATIONS.get(node.op_type, 1)
