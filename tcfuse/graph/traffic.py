"""How many elements and bytes values have, and how many of them nodes touch."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

import onnx_ir as ir
import sympy

from tcfuse.graph.shapes import dims
from tcfuse.types import DType

DEFAULT_SIZE = 128
"""Value of a size that is only known by name."""

VIEWS = frozenset({"Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that move nothing when ONNX Runtime runs them on its own buffers."""

PARTIAL = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})
"""Operators that read no more of their first input than they write."""


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


def length(value: ir.Value | None, axis: int, sizes: Mapping[str, int] | None) -> int:
    """The size of a value along an axis; 1 when there is none, or it is unknown."""
    shape = None if value is None else dims(value)
    if not shape or not -len(shape) <= axis < len(shape):
        return 1
    size, given = shape[axis], tuple(sorted(sizes.items())) if sizes else ()
    return size if isinstance(size, int) else _number(size, given)


def read_bytes(
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
