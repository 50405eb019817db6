"""Tensors of which every reader has a part of its own.

The steps of a recurrence that is written out each read one row of a matrix, the pieces of a
Split some of its columns.  Computed in its readers, such a tensor is still computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from tcfuse.tc.affine import affine
from tcfuse.tc.ast import Access, Expr, Range
from tcfuse.tc.draft import Draft, bounds
from tcfuse.tc.pool import accesses

Ranges: TypeAlias = Mapping[str, Range]
Span: TypeAlias = tuple[int, int]
"""Integers from the first to before the second."""


def read_in_parts(draft: Draft, tensors: Iterable[str]) -> frozenset[str]:
    """Those of ``tensors`` of which no two accesses of the draft read the same element."""
    read: dict[str, list[tuple[Access, Ranges]]] = {tensor: [] for tensor in tensors}
    for statement in draft.body:
        ranges = {r.name: r for r in statement.ranges}
        for access in accesses((statement.value,)):
            if access.tensor in read:
                read[access.tensor].append((access, ranges))
    return frozenset(
        tensor
        for tensor, found in read.items()
        if any(
            are_apart([span(access.subscripts[position], ranges) for access, ranges in found])
            for position in range(len(draft.tensors[tensor].shape))
        )
    )


def are_apart(spans: Sequence[Span | None]) -> bool:
    """Whether no two spans have an integer in common; one that is not known might."""
    known = sorted(found for found in spans if found is not None)
    return len(known) == len(spans) and all(a[1] <= b[0] for a, b in pairwise(known))


def span(subscript: Expr, ranges: Ranges) -> Span | None:
    """Where the values of a subscript lie, if its variables have known ranges."""
    value = affine(subscript)
    if value is None:
        return None
    low = high = value.constant
    for name, factor in value.terms:
        if name not in ranges:
            return None
        first, end = bounds(ranges[name])
        if not first.is_constant or not end.is_constant:
            return None
        reached = sorted((factor * first.constant, factor * (end.constant - 1)))
        low, high = low + reached[0], high + reached[1]
    return low, high + 1
