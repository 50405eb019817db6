"""Loops that transpose into rows which meet in one set of the cache.

Squares of lanes are turned in registers, and each row of a turned square is a whole cache line
of its own row in memory.  Where these rows lie a multiple of half a page apart, a set of the
cache gets more lines than it holds while the processor still has stores to them under way: a
transpose of 1024 by 1024 takes six times as long as one of 1008 by 992.  So there, squares that
follow each other are written to the same few rows.

Rewrite:
    for i in lanes: for j: Y(j, i) = X(i, j)
    ->  for blocks of i: for blocks of j: for i in lanes of the block: for j of the block: ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from tcfuse.codegen.kernel_ast import Instance, Loop, Node
from tcfuse.codegen.tensors import Tensor
from tcfuse.poly.polynomial import Polynomial, address, polynomial
from tcfuse.poly.scop import Scop, accesses, target
from tcfuse.tc.ast import Access

LANES = 256  # in a block: as many rows that are read fit the second cache
LEAST_LANES = 128  # in a whole loop: shorter rows that are written are not far enough apart
MEETING = 2048  # bytes: rows a multiple of them apart share one or two sets of the first cache


@dataclass(frozen=True, slots=True)
class Transpose:
    """A serial loop in a lanes loop, which the two turn; any order of theirs is right.

    Attributes:
        inner: The serial loop.
        apart: Bytes between the rows that it writes.
    """

    inner: Loop
    apart: Polynomial


def transpose_in(loop: Loop, scop: Scop, tensors: Mapping[str, Tensor]) -> Transpose | None:
    """What a lanes loop transposes, where the rows it writes meet in a set, or may do so."""
    extent = (loop.high - loop.low).number
    if len(loop.body) != 1 or (extent is not None and extent < LEAST_LANES):
        return None
    (inner,) = loop.body
    if not isinstance(inner, Loop) or inner.lanes or inner.block or not _plain(inner.body):
        return None
    statements = [scop.statement(i.statement) for i in inner.body]
    written = {s.comprehension.tensor for s in statements}
    read = {access.tensor for s in statements for access in accesses(s)}
    kept = any(tensors[name].register or tensors[name].lanes for name in written)
    if len(statements) != 1 or kept or written & read or statements[0].is_update:
        return None  # an order of theirs might be wrong
    (statement,), (instance,) = statements, inner.body
    where = dict(zip(statement.iterators, instance.position, strict=True))

    def strides(access: Access) -> tuple[Polynomial | None, Polynomial | None]:
        places = [polynomial(subscript, where) for subscript in access.subscripts]
        known = tuple(place for place in places if place is not None)
        if len(known) < len(places):
            return None, None
        at = address(known, tensors[access.tensor].strides)
        return at.stride(loop.iterator), at.stride(inner.iterator)

    across, apart = strides(target(statement))
    if across is None or across.number != 1 or apart is None:
        return None
    if not any(_turned(*strides(access)) for access in accesses(statement)):
        return None
    n_bytes = tensors[statement.comprehension.tensor].dtype.bytes
    apart = apart * Polynomial.constant(n_bytes)
    if apart.number is not None and apart.number % MEETING:
        return None
    return Transpose(inner, apart)


def _plain(body: tuple[Node, ...]) -> TypeGuard[tuple[Instance, ...]]:
    return all(isinstance(node, Instance) for node in body)


def _turned(across: Polynomial | None, along: Polynomial | None) -> bool:
    """Whether lanes read rows apart, and turns neighbours."""
    apart = across is not None and across.number not in (0, 1)
    return apart and along is not None and along.number == 1
