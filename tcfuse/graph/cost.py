"""What a region costs: bytes moved, arithmetic, launches, and a time made of them.

The numbers order regions and decide close calls before anything is compiled; the gate measures
what survives.  So they need the right ratios, not the right microseconds.  Rates are those of a
``graph.machine.Machine``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import onnx_ir as ir
import sympy

from tcfuse.graph.machine import MACHINE, Machine
from tcfuse.graph.plan import FusionGroup
from tcfuse.graph.shapes import dims
from tcfuse.types import DType

DEFAULT_SIZE = 128
"""Value of a size that is only known by name."""

VIEWS = frozenset({"Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that move nothing when ONNX Runtime runs them on its own buffers."""

PARTIAL = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})
"""Operators that read no more of their first input than they write."""

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
    "Acos": 20, "Acosh": 20, "Asin": 20, "Asinh": 20, "Atan": 16, "Atanh": 20,
    "Celu": 14, "Cos": 14, "Cosh": 16, "Div": 8, "Elu": 14, "Erf": 14, "Exp": 12,
    "Gelu": 16, "LayerNormalization": 6, "Log": 12, "LogSoftmax": 16, "Mish": 28, "Mod": 10,
    "Pow": 8, "Reciprocal": 8, "Selu": 14, "Sigmoid": 16, "Sin": 14, "Sinh": 16, "Softmax": 16,
    "Softplus": 24, "Softsign": 9, "Sqrt": 8, "Tan": 20, "Tanh": 16,
}  # fmt: skip
"""Cycles a vector of 16 lanes takes; operators that are not listed take one."""


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


def elements(value: ir.Value, sizes: Mapping[str, int] | None = None) -> int:
    """Elements of ``value``; sizes that are not given count as ``DEFAULT_SIZE``.

    A value of unknown shape counts as one element: nothing is known to be gained by it.
    """
    shape = dims(value)
    if shape is None:
        return 1
    given = tuple(sorted(sizes.items())) if sizes else ()
    return math.prod(max(s if isinstance(s, int) else _number(s, given), 0) for s in shape)


@lru_cache(maxsize=1 << 16)
def _number(size: sympy.Expr, sizes: tuple[tuple[str, int], ...]) -> int:
    """The value of an expression over named sizes."""
    known = {s: dict(sizes).get(str(s), DEFAULT_SIZE) for s in size.free_symbols}
    return int(size.subs(known))


def n_bytes(value: ir.Value, sizes: Mapping[str, int] | None = None) -> int:
    """Bytes of ``value``; an unknown element type counts as four bytes."""
    return elements(value, sizes) * _element_bytes(value.dtype)


@lru_cache
def _element_bytes(dtype: ir.DataType | None) -> int:
    """Bytes of one element."""
    known = DType.from_onnx(int(dtype)) if dtype is not None else None
    return known.bytes if known else 4


def node_us(
    node: ir.Node, sizes: Mapping[str, int] | None = None, machine: Machine = MACHINE
) -> float:
    """Time of ONNX Runtime's kernel for ``node``."""
    if node.op_type in VIEWS:
        return machine.native_us
    moved = _read_bytes([node], sizes) + sum(n_bytes(v, sizes) for v in node.outputs)
    return machine.native_us + moved / machine.native_rate(node.op_type, moved)


def estimate(
    group: FusionGroup, sizes: Mapping[str, int] | None = None, machine: Machine = MACHINE
) -> Estimate:
    """What ``group`` costs as it is and fused.

    Args:
        group: The region.
        sizes: Values of named sizes; ``DEFAULT_SIZE`` for the others.
        machine: What runs it.
    """
    visible = set(group.outputs)
    inside = [v for node in group.nodes for v in node.outputs if v not in visible and v.uses()]
    bytes_in = _read_bytes(group.nodes, sizes, set(group.inputs))
    bytes_out = sum(n_bytes(v, sizes) for v in group.outputs)
    flops = sum(_flops(node, sizes) for node in group.nodes)
    moving = (bytes_in + bytes_out) / machine.copy_rate(bytes_in + bytes_out)
    return Estimate(
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        bytes_between=2 * sum(n_bytes(v, sizes) for v in inside),
        flops=flops,
        kernels=sum(node.op_type not in VIEWS for node in group.nodes),
        native_us=sum(node_us(node, sizes, machine) for node in group.nodes),
        fused_us=machine.fused_us + max(moving, flops / 16 / machine.hertz * 1e6),
    )


def _read_bytes(
    readers: Iterable[ir.Node],
    sizes: Mapping[str, int] | None,
    wanted: Collection[ir.Value] | None = None,
) -> int:
    """Bytes that ``readers`` touch of the ``wanted`` values, by default of all they read.

    A Gather or a Slice touches no more of its first operand than it keeps.
    """
    touched: dict[ir.Value, int] = {}
    for node in readers:
        for position, value in enumerate(node.inputs):
            if value is None or (wanted is not None and value not in wanted):
                continue
            amount = whole = n_bytes(value, sizes)
            if node.op_type in PARTIAL and position == 0:
                amount = sum(n_bytes(output, sizes) for output in node.outputs)
            touched[value] = min(touched.get(value, 0) + amount, whole)
    return sum(touched.values())


def multiply_adds(node: ir.Node, sizes: Mapping[str, int] | None = None) -> int:
    """Products that a contraction sums; for one that is not in the table, at most so many.

    No output element of a contraction of two operands depends on more than all of the larger.
    """
    inputs = (*node.inputs, *[None] * 4)  # a malformed node may lack some
    counts = [1 if v is None else elements(v, sizes) for v in inputs]
    made = max((elements(v, sizes) for v in node.outputs), default=0)
    if node.op_type in PRODUCTS:
        rows_last = bool(node.attributes.get_int("transA", 0))
        return made * _length(inputs[0], -2 if rows_last else -1, sizes)
    if node.op_type in FILTERS:
        filters = FILTERS[node.op_type]
        return made * counts[filters] // max(_length(inputs[filters], 0, sizes), 1)
    match node.op_type:
        case "Gemm" | "FusedGemm":
            return made * counts[0] // max(_length(node.outputs[0], 0, sizes), 1)
        case "ConvTranspose":
            return counts[0] * counts[1] // max(_length(inputs[1], 0, sizes), 1)
        case "Einsum":
            return math.prod(counts)
        case "Attention" | "FlexAttention" | "MultiHeadAttention":
            keys = _length(inputs[1], -2, sizes) + _past_length(node, sizes)
            return 2 * elements(node.outputs[0], sizes) * keys
        case "RNN" | "GRU" | "LSTM":
            points = counts[0] // max(_length(inputs[0], -1, sizes), 1)
            return points * (counts[1] + counts[2])
        case "CausalConvWithState":
            return counts[0] * _length(inputs[1], -1, sizes)
        case "LinearAttention":  # each key is decayed, corrected, added to and read
            heads = max(1, node.attributes.get_int("kv_num_heads", 1))
            return 3 * counts[2] * max(1, _length(inputs[1], -1, sizes) // heads)
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
    return 0 if past is None else _length(past, 2, sizes)


def _length(value: ir.Value | None, axis: int, sizes: Mapping[str, int] | None) -> int:
    """The size of a value along an axis; 1 when there is none, or it is unknown."""
    shape = None if value is None else dims(value)
    if not shape or not -len(shape) <= axis < len(shape):
        return 1
    size, given = shape[axis], tuple(sorted(sizes.items())) if sizes else ()
    return size if isinstance(size, int) else _number(size, given)


def _flops(node: ir.Node, sizes: Mapping[str, int] | None) -> float:
    """Weighted scalar operations of ``node``: on its largest operand, since it may reduce."""
    if node.op_type in VIEWS:
        return 0
    if node.op_type in CONTRACTIONS:
        return multiply_adds(node, sizes)
    if reads := window_reads(node, sizes):
        return reads
    read = () if node.op_type in PARTIAL else node.inputs
    values = [v for v in (*read, *node.outputs) if v is not None]
    largest = max((elements(value, sizes) for value in values), default=0)
    return largest * OPERATIONS.get(node.op_type, 1)
