"""Whether every element that is read was written before, if it is not an input's."""

from __future__ import annotations

from collections.abc import Iterator

from tcfuse.errors import UnsupportedError
from tcfuse.poly import isl
from tcfuse.poly.guards import guards
from tcfuse.poly.scop import Scop, Statement, access_map, accesses, target
from tcfuse.tc.ast import Access


def check_defined(scop: Scop) -> None:
    """Refuse reads of elements that no earlier statement wrote.

    A read that a condition guards may be of anything: it is the condition's business.

    Raises:
        UnsupportedError: Some element may be read before it is written.
    """
    given = set(scop.checked.inputs)
    written: dict[str, isl.Set] = {}
    for statement in scop.statements:
        tensor = statement.comprehension.tensor
        own = access_map(scop, statement, target(statement)).range()
        before = dict(written)
        written[tensor] = written[tensor].union(own) if tensor in written else own
        for access in _reads(statement):
            if access.tensor in given:
                continue
            # a statement that reads what it writes may read its own earlier results
            known = before if statement.is_update else written
            read = access_map(scop, statement, access).range()
            read = read.intersect_params(scop.parameters)
            there = known.get(access.tensor)
            if not (read.is_empty() if there is None else read.is_subset(there)):
                raise UnsupportedError(
                    f"an element of {access.tensor} is read before it is written"
                )


def _reads(statement: Statement) -> Iterator[Access]:
    """The accesses that are certain to happen."""
    written = statement.comprehension
    guard_of = guards(written.values)
    if statement.is_update:
        yield target(statement)
    for access in accesses(statement):
        if not guard_of.get(id(access)):
            yield access
