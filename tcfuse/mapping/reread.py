"""Matrices that every step of a recurrence reads are copied once.

The steps are statements of their own, and each would turn the same squares of the matrix for
its lanes, or ask memory for the same row again.  A copy is a temporary like the recurrence's
state: it lies where the steps that share its loops want it.

Rewrite:
    S1(i, j) = f1(A(i, j)); ...; Sn(i, j) = fn(A(i, j))
    ->  C(i, j) = A(i, j); S1(i, j) = f1(C(i, j)); ...; Sn(i, j) = fn(C(i, j))
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tcfuse.tc.ast import Access, AssignKind, Comprehension, Const, Expr, Range, Var, walk
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.rebuild import rebuild_statement
from tcfuse.tc.rename import free_name
from tcfuse.types import TensorType

STEPS = 8  # statements that read a matrix, from which on a copy costs nothing beside them


def with_rows(checked: CheckedDef) -> CheckedDef:
    """``checked`` with a copy of each matrix that many statements read element by element."""
    readers: Counter[str] = Counter()
    for item in checked.statements:
        readers.update(_read_whole(item, checked))
    types = dict(checked.tensors)
    names: dict[str, str] = {}
    for tensor, count in readers.items():
        if count >= STEPS:
            names[tensor] = free_name(f"{tensor}_row", types)
            types[names[tensor]] = types[tensor]
    if not names:
        return checked
    statements: list[CheckedStatement] = []
    copied: set[str] = set()
    for item in checked.statements:
        mine = {tensor: names[tensor] for tensor in _read_whole(item, checked) & names.keys()}
        for tensor in sorted(mine.keys() - copied):
            statements.append(_copy(mine[tensor], tensor, types[tensor]))
        copied |= mine.keys()
        statements.append(_renamed(item, mine))
    return replace(checked, statements=tuple(statements), tensors=types)


def _read_whole(item: CheckedStatement, checked: CheckedDef) -> set[str]:
    """Matrices of fixed size of which each instance reads one element, and all read all."""
    whole: set[str] = set()
    ranges = {r.name: (r.low, r.high) for r in item.ranges}
    for value in item.comprehension.values:
        for node in walk(value):
            if not isinstance(node, Access) or node.tensor not in checked.inputs:
                continue
            shape = checked.tensors[node.tensor].shape
            names = [s.name if isinstance(s, Var) else "" for s in node.subscripts]
            if (
                len(shape) > 1
                and names == [*ranges]
                and node.tensor not in checked.origins
                and all(ranges.get(n) == _span(s) for n, s in zip(names, shape, strict=True))
            ):
                whole.add(node.tensor)
    return whole


def _span(size: int | str) -> tuple[Expr, Expr] | None:
    return (Const(0), Const(size)) if isinstance(size, int) else None


def _copy(name: str, tensor: str, kind: TensorType) -> CheckedStatement:
    """``C(i, j) = A(i, j)`` over the whole of ``A``."""
    indices = tuple(f"i{k}" for k in range(kind.rank))
    ranges = tuple(
        Range(index, Const(0), Const(size))
        for index, size in zip(indices, kind.shape, strict=True)
        if isinstance(size, int)
    )
    read = Access(tensor, tuple(map(Var, indices)))
    return CheckedStatement(
        Comprehension(name, indices, AssignKind.SET, read, ranges), ranges, ()
    )


def _renamed(item: CheckedStatement, names: dict[str, str]) -> CheckedStatement:
    """``item`` reading the copies where it reads what they are copies of."""
    own = [r.name for r in item.ranges]

    def swap(node: Expr) -> Expr:
        if not isinstance(node, Access) or node.tensor not in names:
            return node
        read = [s.name for s in node.subscripts if isinstance(s, Var)]
        return replace(node, tensor=names[node.tensor]) if read == own else node

    if not names:
        return item
    return replace(item, comprehension=rebuild_statement(item.comprehension, swap))
