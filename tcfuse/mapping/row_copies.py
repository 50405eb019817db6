"""Copies of rows that several loops read, so that memory is read once.

A normalization reads its row for the mean, for the variance and for the result.  The first read
becomes a statement of its own, whose result ``mapping.storage`` keeps in registers or in the
memory of the threads that share the row.

Rewrite:
    S(i) +=! X(i, j)
    Y(i, j) = X(i, j) / S(i)
    ->  X_row(i, j) = X(i, j)
        S(i) +=! X_row(i, j)
        Y(i, j) = X_row(i, j) / S(i)

What is returned and read again is written to such a row first:
    E(i, j) = exp(X(i, j))  ->  E_row(i, j) = exp(X(i, j)); E(i, j) = E_row(i, j)

Source: "The Next 700 Accelerated Layers", section 4.5 (private promotion, of what has reuse).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol, TypeVar

from tcfuse.mapping.storage import Buffer, Memory
from tcfuse.tc.ast import Access, AssignKind, Comprehension, Expr, Range, Var, walk
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.rebuild import rebuild_statement
from tcfuse.tc.rename import free_name

MOST_ROW = 160 << 10  # bytes of shared memory that a block of sm_80 or sm_90 can have


class _Placed(Protocol):
    """A plan, as far as it matters here."""

    @property
    def buffers(self) -> Mapping[str, Buffer]:
        """Where temporaries are."""


P = TypeVar("P", bound=_Placed)


@dataclass(frozen=True, slots=True)
class RowCopies:
    """A definition with copies.

    Attributes:
        checked: The definition.
        sources: The copied input or returned tensor by the name of its copy.
    """

    checked: CheckedDef
    sources: Mapping[str, str]

    def misplaced(self, buffers: Mapping[str, Buffer]) -> set[str]:
        """Those whose copies no block can hold: they would be written and read once more."""
        return {
            source
            for copy, source in self.sources.items()
            if copy not in buffers  # it has no elements
            or buffers[copy].memory is Memory.SHARED
            or (buffers[copy].memory is Memory.ROW and not self._fits(buffers[copy]))
        }

    def _fits(self, row: Buffer) -> bool:
        """Whether threads can share a row, as far as its length is known."""
        kind = self.checked.tensors[row.tensor]
        known = (n for d in row.kept if isinstance(n := kind.shape[d], int))
        return not row.lanes and prod(known) * kind.dtype.bytes <= MOST_ROW


def plan_with_rows(checked: CheckedDef, plan: Callable[[CheckedDef], P]) -> P:
    """The plan for ``checked`` with every copy that the plan keeps as a row.

    Args:
        checked: The definition without copies.
        plan: What decides about loops and storage.
    """
    without: set[str] = set()
    while True:
        copies = with_row_copies(checked, without)
        found = plan(copies.checked)
        misplaced = copies.misplaced(found.buffers)
        if not misplaced:
            return found
        without |= misplaced


def with_row_copies(checked: CheckedDef, without: Collection[str] = ()) -> RowCopies:
    """``checked`` with a copy of each row that several statements read or that is read again.

    Args:
        checked: The definition.
        without: Inputs and returned tensors that are left alone.
    """
    types = dict(checked.tensors)
    statements = list(checked.statements)
    sources: dict[str, str] = {}
    for source in checked.inputs:
        readers = [k for k, item in enumerate(statements) if _reads(item, source)]
        if source in without or not _is_row([statements[k] for k in readers], source):
            continue
        copy = free_name(f"{source}_row", types)
        types[copy] = types[source]
        sources[copy] = source
        for k in readers:
            statements[k] = _reading(statements[k], source, copy)
        first = readers[0]
        statements.insert(first, _copy(statements[first], copy, source))
    for source in (name for name in checked.outputs if name not in without):
        position = _only_writer(statements, source)
        if position is None or not any(_reads(item, source) for item in statements):
            continue
        copy = free_name(f"{source}_row", types)
        types[copy] = types[source]
        sources[copy] = source
        statements = [_reading(item, source, copy) for item in statements]
        writer = statements[position]
        renamed = replace(writer.comprehension, tensor=copy)
        statements[position] = replace(writer, comprehension=renamed)
        statements.insert(position + 1, _stored(writer, copy, source))
    if not sources:
        return RowCopies(checked, {})
    return RowCopies(replace(checked, statements=tuple(statements), tensors=types), sources)


def _only_writer(statements: Sequence[CheckedStatement], tensor: str) -> int | None:
    """The one statement that writes ``tensor``, if it sets each element from others."""
    writers = [k for k, s in enumerate(statements) if s.comprehension.tensor == tensor]
    if len(writers) != 1:
        return None
    item = statements[writers[0]]
    plain = item.comprehension.assign is AssignKind.SET and not item.reduction
    return writers[0] if plain and not _reads(item, tensor) else None


def _stored(writer: CheckedStatement, copy: str, source: str) -> CheckedStatement:
    """``E(i, j) = E_row(i, j)`` over what ``writer`` writes."""
    ranges = {r.name: r for r in writer.ranges}
    indices = writer.comprehension.indices
    own: tuple[Range, ...] = tuple(ranges[name] for name in indices)
    value = Access(copy, tuple(Var(name) for name in indices))
    written = Comprehension(source, indices, AssignKind.SET, value, own)
    return CheckedStatement(written, own, ())


def _reads(item: CheckedStatement, source: str) -> list[Access]:
    """The accesses of ``source`` in a statement."""
    return [
        node
        for value in item.comprehension.values
        for node in walk(value)
        if isinstance(node, Access) and node.tensor == source
    ]


def _is_row(readers: list[CheckedStatement], source: str) -> bool:
    """Whether all read the same elements, and some reduce over what others keep apart."""
    if len(readers) < 2:
        return False
    shapes, reduced = [], []
    for item in readers:
        ranges = {r.name: r for r in item.ranges}
        found = set(_reads(item, source))
        if len(found) != 1:
            return False
        names = [s.name if isinstance(s, Var) else "" for s in found.pop().subscripts]
        if len(set(names)) != len(names) or not set(names) <= ranges.keys():
            return False
        shapes.append([(ranges[n].low, ranges[n].high) for n in names])
        reduced.append([n in item.reduction for n in names])
    alike = all(shape == shapes[0] for shape in shapes)
    apart = [not any(column) for column in zip(*reduced, strict=True)]
    return alike and any(apart) and not all(apart)


def _copy(reader: CheckedStatement, copy: str, source: str) -> CheckedStatement:
    """``X_row(i, j) = X(i, j)`` over what ``reader`` reads of the copy."""
    access = _reads(reader, copy)[0]
    ranges = {r.name: r for r in reader.ranges}
    indices = tuple(s.name for s in access.subscripts if isinstance(s, Var))
    own: tuple[Range, ...] = tuple(ranges[name] for name in indices)
    value = Access(source, tuple(Var(name) for name in indices))
    written = Comprehension(copy, indices, AssignKind.SET, value, own)
    return CheckedStatement(written, own, ())


def _reading(item: CheckedStatement, source: str, copy: str) -> CheckedStatement:
    """``item`` with the copy in place of what is copied."""

    def swap(node: Expr) -> Expr:
        if isinstance(node, Access) and node.tensor == source:
            return replace(node, tensor=copy)
        return node

    return replace(item, comprehension=rebuild_statement(item.comprehension, swap))
