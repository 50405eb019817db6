"""How long products of matrices take: ONNX Runtime's, and those of a fused kernel.

Both reach the peak of a core on large matrices, so what decides is around them: ONNX Runtime
pays for each matrix of a batch, and packs the right one unless it is a constant; a fused kernel
pays for each register block, for the copies of what its lanes stride through, and for vectors
that columns do not fill.  ``docs/performance.md`` compares both models with measurements.

Source: Van Zee and van de Geijn, "BLIS", TOMS 41(3), 2015 (blocks, panels and their costs).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from tcfuse.graph.legality import is_fixed
from tcfuse.graph.machine import MACHINE, Machine
from tcfuse.graph.shapes import dims

FEW_PRODUCTS = 4096
"""Multiply-adds up to which a contraction is taken from ONNX Runtime: they take less time than
the call of its kernel does (0.1 to 1 us), whose tiles such sizes do not fill."""

LANES = 16
NATIVE_STEP = 0.55  # cycles of 16 multiply-adds in ONNX Runtime's kernel
STORE_CYCLES = 2.5  # of a vector of results
MATRIX_CYCLES = 400.0  # of calling it for one matrix of a batch
PACK_CYCLES = 0.5  # of packing an element of a right matrix that is no constant
ROWS, GROUPS = 6, 2  # of a register block (``mapping.blocking``)
LATENCY = 3.5  # cycles of a multiply-add, of which two start in each and blocks overlap
BLOCK_CYCLES = 8.0  # of starting and storing a register block, besides one a row
KERNEL_FACTOR = 1.15  # what the loops of a kernel take longer than these cycles
TURN_CYCLES = 0.3  # of copying an element that lanes stride through
NEAR_BYTES = 16 << 10  # a right matrix that takes more comes from the second-level cache
FAR_FACTOR = 1.25
BLOCK = 8  # channels and filters of a group that ONNX Runtime's blocked kernels can take
WINDOW_CYCLES = 0.65  # of writing out an element of a window
SLIDING_FACTOR = 1.6  # reading windows that begin anywhere, and padding the image
MOST_BYTES = 1 << 19  # of a right matrix that a kernel reads again and again


@dataclass(frozen=True, slots=True)
class Product:
    """A batch of products of matrices.

    Attributes:
        batches: How many.
        rows: Of the left matrices and of the results.
        columns: Of the right matrices and of the results.
        depth: Columns of the left matrices, rows of the right ones.
        fixed: The right matrices are constants.
        turned: The right matrices lie transposed in memory.
        line: Columns that are neighbours in the image whose windows the right matrices are,
            which ONNX Runtime writes out; 0 for other products.
    """

    batches: int
    rows: int
    columns: int
    depth: int
    fixed: bool = False
    turned: bool = False
    line: int = 0


def product_of(node: ir.Node) -> Product | None:
    """The product that a node computes in 32 bits.

    ``None`` where it is not known, and for small ones, which join a region in any case.
    """
    if node.op_type == "Conv":
        return _in_groups(node)
    if node.op_type not in ("MatMul", "Gemm") or node.outputs[0].dtype is not ir.DataType.FLOAT:
        return None
    shapes = [_static(v) for v in (*node.inputs[:2], node.outputs[0])]
    left, right, made = shapes
    if left is None or right is None or made is None or min(len(left), len(right)) < 2:
        return None
    assert node.inputs[1] is not None, "it has a shape"
    fixed, turned = is_fixed(node.inputs[1]), _is_turned(node.inputs[1])
    if node.op_type == "Gemm":
        if node.attributes.get_int("transA", 0):
            return None
        turned = bool(node.attributes.get_int("transB", 0))
        return _large(Product(1, made[0], made[1], left[1], fixed, turned))
    rows, columns, depth = made[-2], made[-1], left[-1]
    batches = math.prod(made[:-2])
    if math.prod(right[:-2]) == 1:  # one right matrix: the batch is so many rows more
        batches, rows = 1, batches * rows
    return _large(Product(batches, rows, columns, depth, fixed, turned))


def _in_groups(node: ir.Node) -> Product | None:
    """A convolution of images in groups too small for ONNX Runtime's blocked kernels."""
    shapes = [_static(v) for v in (*node.inputs[:2], node.outputs[0])]
    data, filters, made = shapes
    if data is None or filters is None or made is None or len(made) != 4:
        return None
    assert node.inputs[1] is not None, "it has a shape"
    groups = node.attributes.get_int("group", 1) or 1
    each = filters[0] // groups
    is_plain = node.outputs[0].dtype is ir.DataType.FLOAT and is_fixed(node.inputs[1])
    steps = set(node.attributes.get_ints("strides", (1,)) or ())
    small = 1 < filters[1] < BLOCK and 1 < each < BLOCK
    if groups == 1 or not small or not is_plain or steps != {1}:
        return None
    depth = math.prod(filters[1:])
    return _large(
        Product(made[0] * groups, each, made[2] * made[3], depth, fixed=True, line=made[3])
    )


def _large(p: Product) -> Product | None:
    return p if p.batches * p.rows * p.columns * p.depth > FEW_PRODUCTS else None


def _static(value: ir.Value | None) -> Sequence[int] | None:
    shape = None if value is None else dims(value)
    if shape is None or not all(isinstance(d, int) for d in shape):
        return None
    return [int(d) for d in shape]


def _is_turned(value: ir.Value) -> bool:
    """Whether a value is the transpose of another."""
    maker = value.producer()
    if maker is None or maker.op_type != "Transpose":
        return False
    perm = maker.attributes.get_ints("perm", ())
    return bool(perm) and perm[-1] != len(perm) - 1


def native_us(product: Product, machine: Machine = MACHINE) -> float:
    """Time of ONNX Runtime's kernel."""
    width = _padded(product.columns)
    vectors = product.rows * width / LANES
    cycles = vectors * (product.depth * NATIVE_STEP + STORE_CYCLES) + MATRIX_CYCLES
    if product.line:
        cycles += product.depth * product.columns * WINDOW_CYCLES
    if not product.fixed:
        cycles += product.depth * width * PACK_CYCLES
    moved = 4 * product.batches * product.rows * (product.depth + product.columns)
    arithmetic = product.batches * cycles / machine.hertz * 1e6
    return machine.native_us + max(arithmetic, moved / machine.copy_rate(moved))


def kernel_us(product: Product, machine: Machine = MACHINE) -> float:
    """Time that the product takes inside a fused kernel."""
    return kernel_cycles(product) / machine.hertz * 1e6


def kernel_cycles(product: Product) -> float:
    """Cycles that the product takes inside a fused kernel."""
    p = product
    if p.line:
        row = Product(1, p.rows, p.line, p.depth)
        return p.batches * p.columns // p.line * _cycles(row) * SLIDING_FACTOR
    ways = [_cycles(p)]
    if p.columns < LANES:  # lanes along the rows, of which a panel is copied
        ways.append(_cycles(replace(p, rows=p.columns, columns=p.rows, turned=True)))
    return p.batches * min(ways)


def may_gain(product: Product) -> bool:
    """Whether a kernel could be as fast at all: what it reads again stays in a cache."""
    return 4 * product.depth * (product.line or product.columns) <= MOST_BYTES


def _padded(columns: int) -> int:
    return math.ceil(columns / LANES) * LANES


def _cycles(p: Product) -> float:
    """Cycles of one matrix of a batch with lanes along its columns."""
    vectors = _padded(p.columns) // LANES
    pairs, single = divmod(vectors, GROUPS)
    whole, rest = divmod(p.rows, ROWS)
    total = 0.0
    for groups, count in ((GROUPS, pairs), (1, single)):
        total += count * (whole * _block(ROWS, groups, p.depth))
        total += count * _block(rest, groups, p.depth) if rest else 0.0
    total *= KERNEL_FACTOR
    if 4 * p.depth * p.columns > NEAR_BYTES:
        total *= FAR_FACTOR
    return total + (p.depth * vectors * LANES * TURN_CYCLES if p.turned else 0.0)


def _block(rows: int, groups: int, depth: int) -> float:
    step = max(rows * groups / 2, (rows + groups) / 2, LATENCY)
    return depth * step + BLOCK_CYCLES + rows
