"""Statements that only give a tensor another shape: heads side by side that were apart.

Rewrite:
    R(i, j, k) = ...; Y(i, c) = R(i, c / 64, c % 64)  ->  a view of R under the name Y
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcfuse.tc.ast import Access, AssignKind, Binary, Comprehension, Const, Expr, Var
from tcfuse.tc.draft import is_full
from tcfuse.types import Size, TensorType


def reshapes(
    body: Sequence[Comprehension], tensors: Mapping[str, TensorType], inputs: Sequence[str]
) -> dict[int, str]:
    """The statements that reshape a temporary, by position, with the temporary."""
    written = [s.tensor for s in body]
    found = {}
    for position, s in enumerate(body):
        if not isinstance(s.value, Access) or s.assign is not AssignKind.SET:
            continue
        source = s.value.tensor
        once = written.count(source) == written.count(s.tensor) == 1 and source not in inputs
        if once and _keeps_order(s, s.value.subscripts, tensors[source], tensors[s.tensor]):
            found[position] = source
    return found


def _keeps_order(
    s: Comprehension, subscripts: Sequence[Expr], source: TensorType, result: TensorType
) -> bool:
    """Whether a copy walks both tensors whole and in row-major order."""
    whole = len(s.ranges) == len(s.indices) and all(map(is_full, s.ranges, result.shape))
    if not whole or source.dtype is not result.dtype or source.shape == result.shape:
        return False
    at = 0
    for name, size in zip(s.indices, result.shape, strict=True):
        rest = list(zip(subscripts[at : at + 2], source.shape[at : at + 2], strict=True))
        if rest[:1] == [(Var(name), size)]:
            at += 1
        elif len(rest) == 2 and _splits(name, size, rest[0], rest[1]):
            at += 2
        else:
            return False
    return at == source.rank


def _splits(name: str, size: Size, outer: tuple[Expr, Size], inner: tuple[Expr, Size]) -> bool:
    """Whether two subscripts are quotient and remainder of an index of that size."""
    width = inner[1]
    if not (isinstance(size, int) and isinstance(outer[1], int) and isinstance(width, int)):
        return False
    divided = Binary("/", Var(name), Const(width)), Binary("%", Var(name), Const(width))
    return (outer[0], inner[0]) == divided and outer[1] * width == size
