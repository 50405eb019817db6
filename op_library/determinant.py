"""Determinants of small matrices, expanded along their rows.

A minor of the last rows is that of one row less, for every choice of columns: ``2**n`` minors
instead of ``n!`` products.  Elimination, which larger matrices need, chooses its pivots by
their values.

Source: https://onnx.ai/onnx/operators/onnx__Det.html
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from op_library._text import (
    at,
    definition,
    loops,
    names,
    needed,
    only_output,
    statement,
    widened,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op

LARGEST = 5
"""Rows of a matrix up to which the expansion is as exact as elimination, and as fast."""


@onnx_op("Det", since=11, kind=Kind.REDUCTION)
def det(call: OpCall) -> str:
    """The determinant of each matrix."""
    x, y = needed(call, 0), only_output(call)
    n = x.shape[-1] if x.rank >= 2 else None
    if not isinstance(n, int) or x.shape[-2] != n or n > LARGEST:
        raise UnsupportedError(f"Det of {x}; matrices may have up to {LARGEST} rows")
    batch = loops(y.shape)
    elements = [
        [widened(x.dtype, at("X", (*names(batch), str(row), str(k)))) for k in range(n)]
        for row in range(n)
    ]
    minors = {
        minor(columns): expansion(elements[n - len(columns)], columns)
        for size in range(1, n + 1)
        for columns in combinations(range(n), size)
    }
    value = minors.pop(minor(range(n)), "1.0")
    return definition(call, {"X": x}, {"Y": y}, [statement("Y", batch, value, lets=minors)])


def minor(columns: Sequence[int]) -> str:
    """The name of the determinant of some columns of the last rows, as many as columns."""
    return "minor" + "".join(map(str, columns))


def expansion(row: Sequence[str], columns: Sequence[int]) -> str:
    """A determinant from the minors of the rows below its first one."""
    if len(columns) == 1:
        return row[columns[0]]
    value = ""
    for k, column in enumerate(columns):
        rest = minor([*columns[:k], *columns[k + 1 :]])
        value += (" - " if k % 2 else " + ") + f"{row[column]} * {rest}"
    return value.removeprefix(" + ")
