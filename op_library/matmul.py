"""Products of matrices: MatMul over batches, and Gemm.

Source: https://onnx.ai/onnx/operators/onnx__MatMul.html and onnx__Gemm.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from op_library._text import (
    Loops,
    at,
    broadcast,
    broadcast_shape,
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
from tcfuse.types import Size

T = TypeVar("T")
Sizes: TypeAlias = tuple[Size, ...]

INNER = "c"
"""The index that is summed over."""

RESULT = "result"
"""What a product is called where more is done with it."""


@dataclass(frozen=True, slots=True)
class Product:
    """The loops of a batched product of matrices and what it reads at a point of them.

    Attributes:
        batch: The loops over matrices.
        rows: The loop over the rows of the first factor; none when it is a vector.
        columns: The loop over the columns of the second factor; none when it is a vector.
        inner: The loop that is summed over.
        left: Subscripts of the first factor.
        right: Subscripts of the second factor.
    """

    batch: Loops
    rows: Loops
    columns: Loops
    inner: Loops
    left: tuple[str, ...]
    right: tuple[str, ...]

    @property
    def point(self) -> Loops:
        """The loops of the result."""
        return self.batch + self.rows + self.columns

    def summed(self, target: str, value: str) -> str:
        """The statement that sums ``value`` for each point."""
        return statement(target, self.point, value, assign="+=!", reduce=self.inner)


def product_of(a: Sizes, b: Sizes, result: Sizes) -> Product:
    """The product of tensors of these shapes, as ``numpy.matmul`` has it.

    Raises:
        UnsupportedError: The shapes do not fit each other.
    """
    if not a or not b or len(result) != max(len(a), len(b), 2) - [len(a), len(b)].count(1):
        raise UnsupportedError(f"a product of ranks {len(a)} and {len(b)}")
    point = loops(result)
    n_columns, n_rows = int(len(b) > 1), int(len(a) > 1)
    split = len(point) - n_columns
    rows, columns = point[split - n_rows : split], point[split:]
    batch = point[: split - n_rows]
    require_equal(a[-1], b[-2 if n_columns else 0])
    for sizes, outer in ((a[-2:-1], rows), (b[1:][-1:], columns)):
        for size, (_, extent) in zip(sizes, outer, strict=True):
            require_equal(size, extent)
    left = broadcast_shape(a[:-2], batch)
    right = broadcast_shape(b[:-2], batch)
    return Product(
        batch,
        rows,
        columns,
        ((INNER, a[-1]),),
        (*left, *names(rows), INNER),
        (*right, INNER, *names(columns)),
    )


@onnx_op("MatMul", since=1, kind=Kind.CONTRACTION)
def matmul(call: OpCall) -> str:
    """``numpy.matmul``."""
    a, b, y = needed(call, 0), needed(call, 1), only_output(call)
    product = product_of(a.shape, b.shape, y.shape)
    value = f"{at('A', product.left)} * {at('B', product.right)}"
    body = [product.summed("Y", value)]
    return definition(call, {"A": a, "B": b}, {"Y": y}, body)


@onnx_op("Gemm", since=7, kind=Kind.CONTRACTION)
def gemm(call: OpCall) -> str:
    """``alpha * A * B + beta * C``, where A and B may be given transposed."""
    return gemm_then(call, RESULT)


def gemm_then(call: OpCall, value: str) -> str:
    """The definition of ``value`` of what ``gemm`` gives, which it calls ``RESULT``."""
    a, b, c, y = needed(call, 0), needed(call, 1), call.input(2), only_output(call)
    if (a.rank, b.rank, y.rank) != (2, 2, 2):
        raise UnsupportedError(f"{call.op_type} of ranks {a.rank} and {b.rank}")
    alpha, beta = factor(call, "alpha"), factor(call, "beta")
    flip_a, flip_b = (bool(call.attributes.get(name, 0)) for name in ("transA", "transB"))
    product = product_of(flipped(a.shape, flip_a), flipped(b.shape, flip_b), y.shape)
    left, right = flipped(product.left, flip_a), flipped(product.right, flip_b)
    each = f"{at('A', left)} * {at('B', right)}"
    params = {"A": a, "B": b, "C": c}
    # As in ONNX Runtime, a C that counts nothing is not read: it may hold NaN.
    added = c if c and beta != "0" else None
    if alpha == "1" and not added and value == RESULT:
        return definition(call, params, {"Y": y}, [product.summed("Y", each)])
    result = scaled(alpha, at("Product", names(product.point)))
    if added:
        result += f" + {scaled(beta, at('C', broadcast(added, product.point)))}"
    lets = {} if value == RESULT else {RESULT: result}
    body = [
        product.summed("Product", widened(a.dtype, each)),
        statement("Y", product.point, value if lets else result, lets=lets),
    ]
    return definition(call, params, {"Y": y}, body)


def flipped(axes: tuple[T, ...], flip: bool) -> tuple[T, ...]:
    """What belongs to the axes of a tensor, with that of the last two exchanged if asked."""
    return (*axes[:-2], axes[-1], axes[-2]) if flip else axes


def factor(call: OpCall, name: str) -> str:
    """A factor of Gemm as a literal; as an integer where it is one.

    Raises:
        UnsupportedError: Integers are multiplied by a fraction.
    """
    value = np.float32(call.attributes.get(name, 1.0))
    if np.isfinite(value) and value == np.trunc(value):
        return number(int(value))
    if not needed(call, 0).dtype.is_float:
        raise UnsupportedError(f"{call.op_type} of integers with {name} {value}")
    return number(float(value))


def scaled(scale: str, value: str) -> str:
    """``scale * value``, as short as it goes."""
    return value if scale == "1" else f"{scale} * {value}"
