"""Definitions as text in which names do not matter: what options and results are found by.

Names are numbered in order of first occurrence: tensors ``T0``, sizes ``N0``, and in each
statement anew variables ``i0`` and lets ``x0``.  Definitions that differ in names, spans and
white space only have equal texts, and equal texts mean the same.

Source: the canonical form of the reference implementation, which numbers all names alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from tcfuse.tc.ast import Access, Comprehension, Def, Expr, Let, Param, Range, Var, post_order
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.rebuild import rebuild
from tcfuse.tc.rename import rename_type
from tcfuse.tc.unparse import unparse
from tcfuse.types import size_names


def canonical(
    definition: Def | CheckedDef, *, sizes: Iterable[str] = (), fixed: Collection[str] = ()
) -> str:
    """The text of ``definition`` with its names numbered.

    Args:
        definition: What is printed.
        sizes: Its size names, also those that types and ranges do not show.
        fixed: Those of them that stand for numbers; they are ``F0``, ``F1``, ...
    """
    if isinstance(definition, CheckedDef):
        sizes, definition = definition.sizes, definition.definition
    return _canonical(definition, size_order(definition, sizes), fixed)


def size_order(definition: Def, sizes: Iterable[str] = ()) -> tuple[str, ...]:
    """The size names of ``definition`` in the order in which ``canonical`` numbers them."""
    return tuple(dict.fromkeys((*_sizes(definition), *sizes)))


def _canonical(definition: Def, order: tuple[str, ...], fixed: Collection[str]) -> str:
    sizes = {name: f"{'F' if name in fixed else 'N'}{k}" for k, name in enumerate(order)}
    tensors = _numbered("T", _tensors(definition))

    def renamed(param: Param) -> Param:
        kind = param.type and rename_type(param.type, sizes)
        return Param(tensors[param.name], kind)

    params, returns = map(renamed, definition.params), map(renamed, definition.returns)
    body = (_statement(s, tensors, sizes) for s in definition.body)
    return unparse(Def("f", tuple(params), tuple(returns), tuple(body)))


def _numbered(prefix: str, names: Iterable[str]) -> dict[str, str]:
    """A new name for each of ``names``, in order of first occurrence."""
    return {name: f"{prefix}{k}" for k, name in enumerate(dict.fromkeys(names))}


def _tensors(definition: Def) -> Iterator[str]:
    """The names of tensors, in the order of the text."""
    for param in (*definition.params, *definition.returns):
        yield param.name
    for statement in definition.body:
        yield statement.tensor
        for expr in _expressions(statement):
            yield from (n.tensor for n in post_order(expr) if isinstance(n, Access))


def _sizes(definition: Def) -> Iterator[str]:
    """The names of sizes: those in types, then those in ranges that are no lets."""
    for param in (*definition.params, *definition.returns):
        yield from size_names(param.type.shape if param.type else ())
    for statement in definition.body:
        lets = {let.name for let in statement.lets}
        for bound in (b for r in statement.ranges for b in (r.low, r.high)):
            names = (node.name for node in post_order(bound) if isinstance(node, Var))
            yield from (name for name in names if name not in lets)


def _expressions(statement: Comprehension) -> Iterator[Expr]:
    """Every expression of a statement, in the order of the text."""
    yield statement.value
    for r in statement.ranges:
        yield from (r.low, r.high)
    yield from (let.value for let in statement.lets)
    yield from statement.exists


def _statement(
    statement: Comprehension, tensors: Mapping[str, str], sizes: Mapping[str, str]
) -> Comprehension:
    """``statement`` with its names numbered."""
    lets = _numbered("x", (let.name for let in statement.lets))
    used = (
        n.name for e in _expressions(statement) for n in post_order(e) if isinstance(n, Var)
    )
    ranged = (r.name for r in statement.ranges)
    found = (*statement.indices, *used, *ranged)
    variables = _numbered("i", (v for v in found if v not in lets and v not in sizes))
    # The names of a statement hide those of the definition.
    names = {**sizes, **lets, **variables}

    def rule(node: Expr) -> Expr:
        if isinstance(node, Var):
            return Var(names[node.name])
        return replace(node, tensor=tensors[node.tensor]) if isinstance(node, Access) else node

    def renamed(expr: Expr) -> Expr:
        return rebuild(expr, rule)

    return Comprehension(
        tensors[statement.tensor],
        tuple(variables.get(i, i) for i in statement.indices),
        statement.assign,
        renamed(statement.value),
        tuple(Range(names[r.name], renamed(r.low), renamed(r.high)) for r in statement.ranges),
        tuple(Let(names[let.name], renamed(let.value)) for let in statement.lets),
        tuple(renamed(e) for e in statement.exists),
    )
