"""New names for tensors, indices and sizes, so that equal regions have equal text."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from tcfuse.opdef import INDICES
from tcfuse.tc.ast import Access, Comprehension, Expr, Range, Var
from tcfuse.tc.pool import Pool
from tcfuse.types import Size, TensorType


def free_name(wanted: str, *taken: Container[str]) -> str:
    """``wanted``, or that with as many underscores as make it none of ``taken``."""
    while any(wanted in names for names in taken):
        wanted += "_"
    return wanted


def index_name(position: int) -> str:
    """The name of a statement's variable at ``position``: ``i``, ``j``, ..."""
    return INDICES[position] if position < len(INDICES) else f"i{position}"


def rename_tensors(
    body: Iterable[Comprehension], names: Mapping[str, str], pool: Pool
) -> list[Comprehension]:
    """``body`` with tensors renamed; names that are not in ``names`` stay."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, Access):
            return Access(names.get(node.tensor, node.tensor), node.subscripts)
        return node

    memo: dict[int, Expr] = {}
    return [
        replace(
            s, tensor=names.get(s.tensor, s.tensor), value=pool.rewrite(s.value, rule, memo)
        )
        for s in body
    ]


def rename_variables(
    statement: Comprehension, names: Mapping[str, str], pool: Pool
) -> Comprehension:
    """``statement`` with its variables renamed, all at once."""
    if all(old == new for old, new in names.items()):
        return statement
    variables = {old: pool.add(Var(new)) for old, new in names.items()}
    return replace(
        statement,
        indices=tuple(names.get(i, i) for i in statement.indices),
        value=pool.substitute(statement.value, variables),
        ranges=tuple(Range(names.get(r.name, r.name), r.low, r.high) for r in statement.ranges),
    )


def canonical_indices(statement: Comprehension, pool: Pool) -> Comprehension:
    """``statement`` with the variables ``i``, ``j``, ... in the order of its ranges."""
    names = {r.name: index_name(k) for k, r in enumerate(statement.ranges)}
    return rename_variables(statement, names, pool)


def rename_sizes(
    body: Iterable[Comprehension], names: Mapping[str, str], pool: Pool
) -> tuple[Comprehension, ...]:
    """``body`` with size names replaced, all at once."""
    if all(old == new for old, new in names.items()):
        return tuple(body)
    variables = {old: pool.add(Var(new)) for old, new in names.items()}
    return tuple(
        replace(
            s,
            value=pool.substitute(s.value, variables),
            ranges=tuple(
                Range(
                    r.name,
                    pool.substitute(pool.add(r.low), variables),
                    pool.substitute(pool.add(r.high), variables),
                )
                for r in s.ranges
            ),
        )
        for s in body
    )


def rename_text(text: str, names: Mapping[str, str]) -> str:
    """A size or C expression with names replaced, all at once."""
    return re.sub(r"[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), text)


def rename_type(type_: TensorType, names: Mapping[str, str]) -> TensorType:
    """``type_`` with size names replaced."""
    shape: Sequence[Size] = [
        rename_text(size, names) if isinstance(size, str) else size for size in type_.shape
    ]
    return TensorType(type_.dtype, tuple(shape))
