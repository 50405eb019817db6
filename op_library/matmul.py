"""Products of matrices: MatMul over batches, and Gemm.

Source: https://onnx.ai/onnx/operators/onnx__MatMul.html and onnx__Gemm.html.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from op_library._text import (
    Loops,
    at,
    broadcast,
    definition,
    loops,
    names,
    needed,
    number,
    only_output,
    require_equal,
    statement,
    widened,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import TensorType

INNER = "c"
"""The index that is summed over."""


@dataclass(frozen=True, slots=True)
class Product:
    """The loops of a batched product of matrices and what it reads at a point of them.

    Attributes:
        point: The loops of the result.
        inner: The loop that is summed over.
        left: Subscripts of the first factor.
        right: Subscripts of the second factor.
    """

    point: Loops
    inner: Loops
    left: tuple[str, ...]
    right: tuple[str, ...]


def product_of(a: TensorType, b: TensorType, y: TensorType) -> Product:
    """The product of ``a`` and ``b`` as ``numpy.matmul`` has it, of vectors and batches too.

    Raises:
        UnsupportedError: The shapes do not fit each other.
    """
    if not a.rank or not b.rank:
        raise UnsupportedError("a product of matrices of rank 0")
    if y.rank != max(a.rank, b.rank, 2) - (a.rank == 1) - (b.rank == 1):
        raise UnsupportedError(f"ranks {a.rank} and {b.rank} do not make rank {y.rank}")
    require_equal(a.shape[-1], b.shape[-2 if b.rank > 1 else 0])
    point, inner = loops(y.shape), (INNER, a.shape[-1])
    columns = point[-1:] if b.rank > 1 else ()
    rest = point[: len(point) - len(columns)]
    rows = rest[-1:] if a.rank > 1 else ()
    batch = rest[: len(rest) - len(rows)]
    matrices = ((a.shape[-2:-1], rows), (b.shape[-1:] if b.rank > 1 else (), columns))
    for sizes, along in matrices:
        for size, (_, extent) in zip(sizes, along, strict=True):
            require_equal(size, extent)
    left = broadcast(TensorType(a.dtype, a.shape[:-2]), batch)
    right = broadcast(TensorType(b.dtype, b.shape[:-2]), batch)
    return Product(
        point,
        (inner,),
        (*left, *names(rows), INNER),
        (*right, INNER, *names(columns)),
    )


@onnx_op("MatMul", since=1, kind=Kind.CONTRACTION)
def matmul(call: OpCall) -> str:
    """``numpy.matmul``."""
    a, b, y = needed(call, 0), needed(call, 1), only_output(call)
    product = product_of(a, b, y)
    value = f"{at('A', product.left)} * {at('B', product.right)}"
    body = [statement("Y", product.point, value, assign="+=!", reduce=product.inner)]
    return definition(call, {"A": a, "B": b}, {"Y": y}, body)


@onnx_op("Gemm", since=7, kind=Kind.CONTRACTION)
def gemm(call: OpCall) -> str:
    """``alpha * A * B + beta * C``, where A and B may be given transposed."""
    a, b, c, y = needed(call, 0), needed(call, 1), call.input(2), only_output(call)
    if (a.rank, b.rank, y.rank) != (2, 2, 2):
        raise UnsupportedError(f"Gemm of ranks {a.rank} and {b.rank}")
    alpha, beta = factor(call, "alpha"), factor(call, "beta")
    point = loops(y.shape)
    (row, rows), (column, columns) = point
    left, right = [row, INNER], [INNER, column]
    a_shape, b_shape = a.shape, b.shape
    if call.attributes.get("transA", 0):
        left, a_shape = left[::-1], a_shape[::-1]
    if call.attributes.get("transB", 0):
        right, b_shape = right[::-1], b_shape[::-1]
    for size, extent in ((a_shape[0], rows), (a_shape[1], b_shape[0]), (b_shape[1], columns)):
        require_equal(size, extent)
    value = f"{at('A', left)} * {at('B', right)}"
    inner = ((INNER, a_shape[1]),)
    params = {"A": a, "B": b, "C": c}
    # As in ONNX Runtime, a C that counts nothing is not read: it may hold NaN.
    added = c if c and beta != "0" else None
    if alpha == "1" and not added:
        body = [statement("Y", point, value, assign="+=!", reduce=inner)]
        return definition(call, params, {"Y": y}, body)
    result = scaled(alpha, at("Product", names(point)))
    if added:
        result += f" + {scaled(beta, at('C', broadcast(added, point)))}"
    body = [
        statement("Product", point, widened(a.dtype, value), assign="+=!", reduce=inner),
        statement("Y", point, result),
    ]
    return definition(call, params, {"Y": y}, body)


def factor(call: OpCall, name: str) -> str:
    """A factor of Gemm as a literal; as an integer where it is one.

    Raises:
        UnsupportedError: Integers are multiplied by a fraction.
    """
    value = np.float32(call.attributes.get(name, 1.0))
    if value == np.trunc(value):
        return number(int(value))
    if not needed(call, 0).dtype.is_float:
        raise UnsupportedError(f"{call.op_type} of integers with {name} {value}")
    return number(float(value))


def scaled(scale: str, value: str) -> str:
    """``scale * value``, as short as it goes."""
    return value if scale == "1" else f"{scale} * {value}"
