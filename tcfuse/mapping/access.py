"""Strides of accesses: how far apart the elements are that neighbouring iterations touch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tcfuse.poly.polynomial import Polynomial, address, polynomial, row_major
from tcfuse.poly.scop import Scop, Statement, accesses
from tcfuse.tc.ast import Access, Expr, Var, walk


@dataclass(frozen=True, slots=True)
class Touch:
    """An access of a statement.

    Attributes:
        offset: Its address over the statement's iterators; what depends on data is an opaque
            factor that mentions the iterators it depends on.
    """

    access: Access
    offset: Polynomial
    is_write: bool

    @property
    def tensor(self) -> str:
        """The tensor's name."""
        return self.access.tensor


def touches(scop: Scop, statement: Statement) -> Iterator[Touch]:
    """Every access of ``statement`` with its address."""
    written = statement.comprehension
    target = Access(written.tensor, tuple(Var(name) for name in written.indices))
    lets = {let.name: let.value for let in written.lets}
    for access, is_write in ((target, True), *((a, False) for a in accesses(statement))):
        strides = row_major(scop.checked.tensors[access.tensor].shape)
        subscripts = tuple(_subscript(s, lets) for s in access.subscripts)
        yield Touch(access, address(subscripts, strides), is_write)


def _subscript(expr: Expr, lets: Mapping[str, Expr]) -> Polynomial:
    """A subscript; one that depends on data as an opaque factor."""
    names: set[str] = set()
    stack, seen = [expr], set()
    while stack:
        for node in walk(stack.pop()):
            if isinstance(node, Var) and node.name not in seen:
                seen.add(node.name)
                if node.name in lets:
                    stack.append(lets[node.name])
                else:
                    names.add(node.name)
    known = None if seen & lets.keys() else polynomial(expr, {})
    return (
        known if known is not None else Polynomial.factor(f"data({', '.join(sorted(names))})")
    )
