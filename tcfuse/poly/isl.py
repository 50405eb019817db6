"""The one door to islpy: contexts with an operation limit, and helpers by name.

isl objects belong to a context; each kernel is compiled in its own, so that a limit that is
reached, or an error, concerns that kernel only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import reduce
from typing import cast

import islpy
from islpy import (
    Aff,
    AstBuild,
    AstExpr,
    AstNode,
    Context,
    Map,
    MultiUnionPwAff,
    MultiVal,
    PwAff,
    Schedule,
    ScheduleConstraints,
    ScheduleNode,
    Set,
    Space,
    UnionMap,
    UnionPwAff,
    UnionSet,
    Val,
    ast_loop_type,
    dim_type,
)

__all__ = [
    "Aff",
    "AstBuild",
    "AstExpr",
    "AstNode",
    "Context",
    "Map",
    "MultiUnionPwAff",
    "OperationLimit",
    "PwAff",
    "Schedule",
    "ScheduleConstraints",
    "ScheduleNode",
    "Set",
    "UnionMap",
    "UnionPwAff",
    "UnionSet",
    "Val",
    "dim_type",
    "kind_of",
    "limited",
    "maps_of",
    "multi_val",
    "new_context",
    "operation_of",
    "part_of",
    "pieces_of",
    "separated",
    "sets_of",
    "union_map",
    "union_set",
    "unrolled",
    "without_marks",
]


class OperationLimit(Exception):  # noqa: N818 - a signal to try something simpler, not a fault
    """isl was stopped before it finished; a simpler question may still be answered."""


def new_context() -> Context:
    """A context whose errors are exceptions and whose scheduler makes simple rows."""
    context = Context()
    context.set_schedule_max_coefficient(1)
    # shifting loops against each other by constant sizes makes the ILP explode (minutes for a
    # layer norm of 512 x 768) and gains nothing
    context.set_schedule_max_constant_term(0)
    context.set_schedule_separate_components(1)
    return context


@contextmanager
def limited(context: Context, operations: int) -> Iterator[None]:
    """Stop isl after ``operations`` elementary steps (two million take about 50 ms).

    Inside another limit, the smaller one holds; 0 sets none.

    Raises:
        OperationLimit: The limit was reached inside the block.
    """
    outer = context.get_max_operations()
    context.reset_operations()
    context.set_max_operations(min(filter(None, (outer, operations)), default=0))
    try:
        yield
    except islpy.Error as error:
        if _is_exhausted(context):
            raise OperationLimit(str(error)) from None
        raise
    finally:
        context.set_max_operations(outer)
        context.reset_operations()


def _is_exhausted(context: Context) -> bool:
    """Whether the limit is reached; a parser that was stopped only calls its text wrong."""
    try:
        Set.read_from_str(context, "{ [i] : 0 <= i < 3 }").lexmin()
    except islpy.Error:
        return True
    return False


def separated(schedule: Schedule, mark: str) -> Schedule:
    """``schedule`` with loops below ``mark`` cut where the set of their statements changes."""

    def cut(node: ScheduleNode) -> ScheduleNode:
        if kind_of(node) == "band" and mark in _marks_above(node):
            node = node.band_member_set_ast_loop_type(0, ast_loop_type.separate)
            return node.band_member_set_isolate_ast_loop_type(0, ast_loop_type.separate)
        return node

    return schedule.map_schedule_node_bottom_up(cut)


def unrolled(node: ScheduleNode) -> ScheduleNode:
    """The band ``node`` with every loop replaced by its iterations."""
    for k in range(node.band_get_partial_schedule().dim(dim_type.out)):
        node = node.band_member_set_ast_loop_type(k, ast_loop_type.unroll)
        node = node.band_member_set_isolate_ast_loop_type(k, ast_loop_type.unroll)
    return node


def without_marks(
    schedule: Schedule, rules: Mapping[str, Callable[[ScheduleNode], ScheduleNode]]
) -> Schedule:
    """``schedule`` with each band below a mark of that name as the rule makes it, unmarked."""

    def applied(node: ScheduleNode) -> ScheduleNode:
        if kind_of(node) != "mark":
            return node
        rule = rules.get(node.mark_get_id().get_name().partition("@")[0])
        return node if rule is None else rule(node.child(0)).parent().delete()

    return schedule.map_schedule_node_bottom_up(applied)


def _marks_above(node: ScheduleNode) -> set[str]:
    names = set()
    while node.has_parent() and kind_of(node := node.parent()) == "mark":
        names.add(node.mark_get_id().get_name().partition("@")[0])
    return names


def union_set(context: Context, text: str) -> UnionSet:
    """The union set that ``text`` writes."""
    return UnionSet.read_from_str(context, text)


def union_map(context: Context, text: str) -> UnionMap:
    """The union map that ``text`` writes."""
    return UnionMap.read_from_str(context, text)


def kind_of(part: ScheduleNode | AstNode | AstExpr) -> str:
    """What a part of a tree is: ``band``, ``leaf``; ``for_``, ``user``; ``id``, ``op``; ..."""
    return cast("Enum", part.get_type()).name  # islpy's stubs say int


def operation_of(expr: AstExpr) -> str:
    """The operation of an expression: ``add``, ``fdiv_q``, ``le``, ..."""
    return cast("Enum", expr.op_get_type()).name  # islpy's stubs say int


def maps_of(union: UnionMap) -> list[Map]:
    """The maps of a union, one for each pair of spaces."""
    found: list[Map] = []
    union.foreach_map(found.append)
    return found


def sets_of(union: UnionSet) -> list[Set]:
    """The sets of a union, one for each space."""
    found: list[Set] = []
    union.foreach_set(found.append)
    return found


def multi_val(space: Space, numbers: Sequence[int]) -> MultiVal:
    """One number for each dimension of ``space``."""
    made = MultiVal.zero(space)
    for position, number in enumerate(numbers):
        made = made.set_val(position, Val.int_from_si(space.get_ctx(), number))
    return made


def pieces_of(union: UnionPwAff) -> list[PwAff]:
    """The expressions of a union, one for each space."""
    found: list[PwAff] = []
    union.foreach_pw_aff(found.append)
    return found


def part_of(union: UnionSet, names: Collection[str]) -> UnionSet:
    """The sets of a union whose tuple name is one of ``names``."""
    sets = (UnionSet.from_set(s) for s in sets_of(union) if s.get_tuple_name() in names)
    return reduce(UnionSet.union, sets, union_set(union.get_ctx(), "{ }"))
