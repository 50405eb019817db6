"""Reductions accumulate in a temporary of the type they compute in.

``Y(i) +=! X(i, j)`` into a returned tensor would go through memory at every step, and into a
16-bit tensor it would round at every step; so the sum gets a temporary of the compute type and
is copied (and rounded) once: ``Y_sum(i) +=! X(i, j)``, ``Y(i) = Y_sum(i)``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tcfuse.tc.ast import (
    Access,
    AssignKind,
    Cast,
    Comprehension,
    Const,
    Expr,
    Range,
    Var,
)
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.parser import parse_expr
from tcfuse.tc.rebuild import rebuild_statement
from tcfuse.tc.rename import free_name
from tcfuse.types import Size, TensorType


def with_accumulators(checked: CheckedDef) -> CheckedDef:
    """``checked`` with a temporary for each reduction into a returned or a short tensor."""
    returned = set(checked.outputs)
    names: dict[str, str] = {}
    types = dict(checked.tensors)
    for item in checked.statements:
        target = item.comprehension.tensor
        kind = types[target]
        if item.comprehension.assign.is_reduction and (
            target in returned or kind.dtype.is_storage
        ):
            names[target] = names.get(target) or free_name(
                f"{target}_acc", {*types, *names.values()}
            )
    if not names:
        return checked
    last = {item.comprehension.tensor: k for k, item in enumerate(checked.statements)}
    statements: list[CheckedStatement] = []
    for position, item in enumerate(checked.statements):
        statements.append(_renamed(item, names, types))
        target = item.comprehension.tensor
        if target in names and last[target] == position and target in returned:
            statements.append(_copy(item, names[target], types[target].shape))
    for old, new in names.items():
        types[new] = TensorType(types[old].dtype.compute, types[old].shape)
        if old not in returned:
            del types[old]
    return replace(checked, statements=tuple(statements), tensors=types)


def with_registers(checked: CheckedDef, tensors: Collection[str]) -> CheckedDef:
    """``checked`` with a register for each reduction into one of ``tensors``.

    A temporary that is kept whole, because another nest of loops reads it, would go through
    memory at every step of the sum.

    Rewrite:
        T(i) +=! X(i, j)  ->  T_acc(i) +=! X(i, j);  T(i) = T_acc(i)
    """
    types = dict(checked.tensors)
    statements: list[CheckedStatement] = []
    for item in checked.statements:
        written = item.comprehension
        if written.tensor not in tensors:
            statements.append(item)
            continue
        name = free_name(f"{written.tensor}_acc", types)
        types[name] = types[written.tensor]
        statements.append(replace(item, comprehension=replace(written, tensor=name)))
        statements.append(_copy(item, name, types[name].shape))
    return replace(checked, statements=tuple(statements), tensors=types)


def _renamed(
    item: CheckedStatement, names: Mapping[str, str], types: Mapping[str, TensorType]
) -> CheckedStatement:
    def swap(node: Expr) -> Expr:
        if not isinstance(node, Access) or node.tensor not in names:
            return node
        renamed = replace(node, tensor=names[node.tensor])
        dtype = types[node.tensor].dtype
        return Cast(dtype, renamed) if dtype.is_storage else renamed

    written = item.comprehension
    changed = replace(
        rebuild_statement(written, swap), tensor=names.get(written.tensor, written.tensor)
    )
    return replace(item, comprehension=changed)


def _copy(item: CheckedStatement, source: str, shape: tuple[Size, ...]) -> CheckedStatement:
    """``Y(i) = Y_acc(i)`` over the whole of ``Y``, after the last update."""
    written = item.comprehension
    indices = tuple(Var(name) for name in written.indices)
    ranges = tuple(
        Range(name, Const(0), Const(size) if isinstance(size, int) else parse_expr(size))
        for name, size in zip(written.indices, shape, strict=True)
    )
    copy = Comprehension(
        written.tensor, written.indices, AssignKind.SET, Access(source, indices), ranges
    )
    return CheckedStatement(copy, ranges, ())
