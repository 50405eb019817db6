"""Strides of accesses: how far apart the elements are that neighbouring iterations touch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcfuse.poly.polynomial import Polynomial, address, polynomial, row_major
from tcfuse.poly.scop import Scop, Statement, accesses
from tcfuse.tc.ast import Access, Var


@dataclass(frozen=True, slots=True)
class Touch:
    """An access of a statement; ``offset`` is ``None`` when it depends on data."""

    tensor: str
    offset: Polynomial | None
    is_write: bool


def touches(scop: Scop, statement: Statement) -> Iterator[Touch]:
    """Every access of ``statement`` with its address over the statement's iterators."""
    written = statement.comprehension
    target = Access(written.tensor, tuple(Var(name) for name in written.indices))
    lets = {let.name for let in written.lets}
    for access, is_write in ((target, True), *((a, False) for a in accesses(statement))):
        strides = row_major(scop.checked.tensors[access.tensor].shape)
        subscripts = [polynomial(s, {}) for s in access.subscripts]
        known = tuple(s for s in subscripts if s is not None)
        if len(known) < len(subscripts) or any(s.mentions(n) for s in known for n in lets):
            yield Touch(access.tensor, None, is_write)
        else:
            yield Touch(access.tensor, address(known, strides), is_write)
