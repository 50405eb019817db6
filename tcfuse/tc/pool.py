"""Expressions as shared graphs: structurally equal subexpressions are one object.

Inlining a chain of operators makes expressions in which a value is used many times over; as
trees they would grow without bound.  A ``Pool`` gives each structure one node (hash-consing):
identity is equality, every map is keyed by ``id`` and every traversal visits a node once.
Nothing here recurses: chains may be thousands of operators deep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from tcfuse.tc.ast import (
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Select,
    Unary,
    Var,
)

Rule: TypeAlias = Callable[[Expr], Expr]

# a table, because traversals spend most of their time here
_OPERANDS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Const: lambda _: (),
    Var: lambda _: (),
    Access: lambda node: node.subscripts,
    Call: lambda node: node.arguments,
    Unary: lambda node: (node.operand,),
    Cast: lambda node: (node.operand,),
    Binary: lambda node: (node.left, node.right),
    Select: lambda node: (node.condition, node.then, node.otherwise),
}


def children(node: Expr) -> tuple[Expr, ...]:
    """The direct operands of ``node``."""
    return _OPERANDS[type(node)](node)


def operands(value: Expr, operator: str) -> list[Expr]:
    """What ``operator`` combines at the root of ``value``: all factors of a product."""
    if isinstance(value, Binary) and value.operator == operator:
        return [*operands(value.left, operator), *operands(value.right, operator)]
    return [value]


class Pool:
    """The nodes of one composition; keeps them alive, so their ``id`` stays theirs."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[Any, ...], Expr] = {}

    def intern(self, node: Expr) -> Expr:
        """The pool's node equal to ``node``, whose operands are pool nodes."""
        return self._nodes.setdefault(_key(node), node)

    def add(self, expr: Expr) -> Expr:
        """The pool's node equal to ``expr``, a tree from anywhere."""
        return self.rewrite(expr, self.intern, {})

    def rewrite(self, expr: Expr, rule: Rule, memo: dict[int, Expr]) -> Expr:
        """``expr`` with ``rule`` applied to each node, operands first.

        Args:
            expr: What to rewrite.
            rule: From a node whose operands are rewritten to its replacement.
            memo: Results by ``id`` of the node rewritten; shared between calls with one rule.
        """
        for node in post_order((expr,), memo):
            operands = tuple(memo[id(child)] for child in children(node))
            memo[id(node)] = self.intern(rule(self.intern(with_children(node, operands))))
        return memo[id(expr)]

    def substitute(self, expr: Expr, replacement: Mapping[str, Expr]) -> Expr:
        """``expr`` with variables replaced, all at once; replacements are pool nodes."""

        def rule(node: Expr) -> Expr:
            return replacement.get(node.name, node) if isinstance(node, Var) else node

        return self.rewrite(expr, rule, {})


def _key(node: Expr) -> tuple[Any, ...]:
    """What makes a node what it is: its kind, its own fields, the identity of its operands."""
    operands = tuple(map(id, children(node)))
    match node:
        case Const(value):
            return Const, type(value), repr(value)
        case Var(name):
            return Var, name
        case Access(name) | Call(name) | Unary(name) | Binary(name):
            return type(node), name, operands
        case Cast(dtype):
            return Cast, dtype, operands
        case Select():
            return Select, operands


def with_children(node: Expr, operands: tuple[Expr, ...]) -> Expr:
    """``node`` with other operands; the same object when they are the same."""
    if all(a is b for a, b in zip(children(node), operands, strict=True)):
        return node
    match node:
        case Access(tensor):
            return Access(tensor, operands, node.span)
        case Call(function):
            return Call(function, operands, node.span)
        case Unary(operator):
            return Unary(operator, operands[0], node.span)
        case Binary(operator):
            return Binary(operator, operands[0], operands[1], node.span)
        case Cast(dtype):
            return Cast(dtype, operands[0], node.span)
        case Select():
            return Select(operands[0], operands[1], operands[2], node.span)
        case Const() | Var():
            return node


def post_order(roots: Iterable[Expr], known: Mapping[int, object] = {}) -> Iterator[Expr]:
    """Every distinct node below ``roots``, operands before users, ``known`` ones left out."""
    seen: set[int] = set()
    stack = [(root, False) for root in roots]
    stack.reverse()
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen and id(node) not in known:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(children(node)))


def accesses(roots: Iterable[Expr]) -> Iterator[Access]:
    """Every distinct access below ``roots``, those inside subscripts included."""
    return (node for node in post_order(roots) if isinstance(node, Access))


def variables(roots: Iterable[Expr]) -> set[str]:
    """Names of the indices and sizes used below ``roots``."""
    return {node.name for node in post_order(roots) if isinstance(node, Var)}
