"""Statements in their final form: shared values named once, literals as short as they go.

A value that is used several times becomes a let, evaluated once per instance.  What reads a
tensor under a ternary may do so because the ternary keeps it inside the tensor, so it is not
moved out unless every subscript is known to be in range everywhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tcfuse.tc.ast import (
    Access,
    Binary,
    Call,
    Cast,
    Comprehension,
    Const,
    Expr,
    Let,
    Select,
    Var,
)
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.guards import unguarded, unproved
from tcfuse.tc.pool import accesses, children, post_order, with_children
from tcfuse.tc.simplify import Simplifier
from tcfuse.tc.typing import Type, Weak, is_bool, match, resolve
from tcfuse.tc.work import is_index_expression
from tcfuse.types import DType

_EXACT = 1 << 24  # integers up to here are exact in every float type but the 16-bit ones
_DEEPEST = 40  # operators between a let and the next: readers and compilers have limits


def name_shared(
    statement: Comprehension, types: ExprTypes, simplifier: Simplifier, *, declared: bool
) -> Comprehension:
    """``statement`` with lets for what it uses several times, as trees outside the pool.

    Args:
        statement: With a value from the pool.
        types: Types of the tensors.
        simplifier: Knows the statement's ranges.
        declared: Whether its tensor is, so that a literal takes its type from there.
    """
    order = list(post_order((statement.value,)))
    named = _named(order, statement.value, simplifier, types)
    printed: dict[int, Expr] = {}
    lets: list[Let] = []
    for node in order:
        operands = tuple(
            _short(printed[id(child)], child, node, types) for child in children(node)
        )
        tree = with_children(node, operands)
        if id(node) in named:
            lets.append(Let(f"v{len(lets)}", tree))
            tree = Var(lets[-1].name)
        printed[id(node)] = tree
    value = printed[id(statement.value)]
    if isinstance(value, Cast) and isinstance(value.operand, Const):
        weak = resolve(types[value.operand])
        known = types.tensors[statement.tensor].dtype if declared else weak
        value = value.operand if known is value.dtype else value
    return replace(statement, value=value, lets=tuple(lets))


def _named(order: list[Expr], root: Expr, simplifier: Simplifier, types: ExprTypes) -> set[int]:
    """The nodes, by ``id``, that become lets."""
    movable = _movable(order, root, simplifier, types)
    uses = Counter(id(child) for node in order for child in children(node))
    depth: dict[int, int] = {}
    named = set()
    for node in order:
        depth[id(node)] = 1 + max((depth[id(child)] for child in children(node)), default=0)
        if node is root or id(node) not in movable or _is_trivial(node):
            continue
        if uses[id(node)] > 1 or depth[id(node)] > _DEEPEST:
            named.add(id(node))
            depth[id(node)] = 0
    return named


def _is_trivial(node: Expr) -> bool:
    """Whether a name for ``node`` would only hide what it is."""
    match node:
        case Const() | Var() | Cast(_, Const()):
            return True
        case Access(_, subscripts):
            return next(accesses(subscripts), None) is None
        case _:
            return is_index_expression(node)


def _movable(
    order: list[Expr], root: Expr, simplifier: Simplifier, types: ExprTypes
) -> set[int]:
    """Nodes that may be evaluated in every instance of the statement."""
    always = {id(node) for node in unguarded(root)}
    inside: set[int] = set()
    for node in order:
        operands_inside = all(id(child) in inside for child in children(node))
        if operands_inside and (
            not isinstance(node, Access) or unproved(node, simplifier, types) == []
        ):
            inside.add(id(node))
    return always | inside


def _short(printed: Expr, operand: Expr, user: Expr, types: ExprTypes) -> Expr:
    """A literal operand without its cast where it takes that type from its neighbours."""
    match operand:
        case Cast(dtype, Const(value) as constant) if isinstance(printed, Cast):
            neighbours = [types[n] for n in _matched(user) if n is not operand]
            plain = bool(neighbours) and all(_gives(n, dtype, value) for n in neighbours)
            return constant if plain else printed
        case _:
            return printed


def _gives(neighbour: Type, dtype: DType, value: float | bool) -> bool:
    """Whether a literal beside ``neighbour`` does what one of type ``dtype`` does."""
    if not isinstance(neighbour, DType) or is_bool(neighbour) or isinstance(value, bool):
        return False
    if neighbour.is_storage and dtype is not neighbour:
        return False
    weak = Weak.FLOAT if isinstance(value, float) else Weak.INT
    exact = weak is Weak.FLOAT or not neighbour.is_float or abs(value) <= _EXACT
    return exact and match(neighbour, weak) is match(neighbour, dtype)


def _matched(user: Expr) -> tuple[Expr, ...]:
    """The operands of ``user`` that are brought to one type."""
    match user:
        case Binary(_, left, right):
            return left, right
        case Select(_, then, otherwise):
            return then, otherwise
        case Call(_, arguments):
            return arguments
        case _:
            return ()
