"""Packed panels: what the lanes of a contraction read, copied so that it lies together.

Promotion to a faster memory, target neutral: a copy is added to the definition, and after
scheduling it moves into the lanes loop of the statement that reads it (``contraction_nest``).

Rewrite:
    C(m, n) +=! A(m, k) * B(n, k)
    ->  B_packed(k, n) = B(n, k)
        C(m, n) +=! A(m, k) * B_packed(k, n)

Source: "The Next 700 Accelerated Layers", section 4.5 (promotion to shared memory).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tcfuse.mapping.contraction import Contraction
from tcfuse.tc.ast import Access, AssignKind, Comprehension, Expr, Var
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.rebuild import rebuild_statement
from tcfuse.tc.rename import free_name
from tcfuse.types import TensorType


@dataclass(frozen=True, slots=True)
class Nest:
    """What is decided about the nest of one contraction.

    Attributes:
        update: Name of the statement that adds.
        lanes: The iterator that vector lanes follow.
        rows: The iterator that a register block follows.
        copies: Names of the statements that copy what it reads.
    """

    update: str
    lanes: str
    rows: str
    copies: tuple[str, ...] = ()


def with_copies(
    checked: CheckedDef, chosen: Mapping[str, Contraction]
) -> tuple[CheckedDef, tuple[Nest, ...]]:
    """``checked`` with a copy of everything that ``chosen`` packs, in front.

    Args:
        checked: The definition.
        chosen: By the name that the statement has in its scop.
    """
    copies: list[CheckedStatement] = []
    types = dict(checked.tensors)
    statements = list(checked.statements)
    sources: dict[str, list[int]] = {}
    for name, contraction in chosen.items():
        position = int(name.removeprefix("S"))
        item = statements[position]
        for access in contraction.packed:
            copied = free_name(f"{access.tensor}_packed", types)
            copy = _copy(item, access, contraction.lanes, copied)
            types[copied] = _copied_type(checked.tensors[access.tensor], access, copy)
            sources.setdefault(name, []).append(len(copies))
            copies.append(copy)
            item = _reading(item, access, copy.comprehension)
        statements[position] = item
    nests = tuple(
        Nest(
            f"S{int(name.removeprefix('S')) + len(copies)}",
            contraction.lanes,
            contraction.rows,
            tuple(f"S{copy}" for copy in sources.get(name, ())),
        )
        for name, contraction in chosen.items()
    )
    return replace(checked, statements=(*copies, *statements), tensors=types), nests


def _copy(item: CheckedStatement, access: Access, lanes: str, name: str) -> CheckedStatement:
    """``B_packed(k, n) = B(n, k)``, the lanes last."""
    names = [s.name for s in access.subscripts if isinstance(s, Var)]
    indices = (*(n for n in names if n != lanes), lanes)
    by_name = {r.name: r for r in item.ranges}
    ranges = tuple(by_name[n] for n in indices)
    plain = replace(access, span=None)
    written = Comprehension(name, indices, AssignKind.SET, plain, ranges)
    return CheckedStatement(written, ranges, (), is_copy=True)


def _copied_type(kind: TensorType, access: Access, copy: CheckedStatement) -> TensorType:
    """The type of a copy: numbers as they are computed with, dimensions in its order."""
    names = [s.name for s in access.subscripts if isinstance(s, Var)]
    indices = copy.comprehension.indices
    shape = tuple(kind.shape[names.index(n)] for n in indices)
    return TensorType(kind.dtype.compute, shape)


def _reading(item: CheckedStatement, access: Access, copy: Comprehension) -> CheckedStatement:
    """``item`` with the copy in place of the access."""
    copied = Access(copy.tensor, tuple(Var(n) for n in copy.indices))

    def swap(node: Expr) -> Expr:
        return copied if node == access else node

    return replace(item, comprehension=rebuild_statement(item.comprehension, swap))
