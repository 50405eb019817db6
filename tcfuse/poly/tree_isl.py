"""Schedule trees at the border to isl: the scheduler's result in, AST generation's input out.

The text form is isl's own YAML, so a dumped tree can be read by every tool that speaks isl.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence as Seq
from typing import assert_never

from tcfuse.poly import isl
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree


def from_isl(node: isl.ScheduleNode) -> Tree:
    """The tree below an isl schedule node; a set becomes a sequence in statement order."""
    kind = isl.kind_of(node)
    if kind == "leaf":
        return Leaf()
    if kind == "domain":
        return Domain(node.domain_get_domain(), from_isl(node.child(0)))
    if kind == "band":
        schedule = node.band_get_partial_schedule()
        members = schedule.dim(isl.dim_type.out)
        coincident = tuple(bool(node.band_member_get_coincident(k)) for k in range(members))
        permutable = bool(node.band_get_permutable())
        return Band(schedule, permutable, coincident, from_isl(node.child(0)))
    if kind == "mark":
        return Mark(node.mark_get_id().get_name(), from_isl(node.child(0)))
    if kind in ("sequence", "set"):
        filters = [_filter(node.child(k)) for k in range(node.n_children())]
        if kind == "set":
            filters.sort(key=lambda f: min(_number(s) for s in f.statements))
        return Sequence(tuple(filters))
    raise AssertionError(f"unexpected schedule node {kind}")


def _filter(node: isl.ScheduleNode) -> Filter:
    names = [s.get_tuple_name() for s in isl.sets_of(node.filter_get_filter())]
    return Filter(tuple(sorted(names, key=_number)), from_isl(node.child(0)))


def _number(statement: str) -> tuple[int, bool]:
    """Textual position: ``S3_init`` comes right before ``S3``."""
    head, _, init = statement.partition("_")
    return int(head[1:]), not init


def statement_order(names: Seq[str]) -> tuple[str, ...]:
    """``names`` in textual order."""
    return tuple(sorted(names, key=_number))


def to_yaml(tree: Tree) -> str:
    """The tree in isl's YAML, one node a line."""
    return "\n".join(_lines(tree)) + "\n"


def _lines(tree: Tree) -> list[str]:
    match tree:
        case Leaf():
            return ["leaf"]
        case Domain(instances, child):
            lines = [f'domain: "{instances}"']
        case Band(schedule, permutable, coincident, child):
            flags = ", ".join(str(int(c)) for c in coincident)
            lines = [f'schedule: "{schedule}"', f"permutable: {int(permutable)}"]
            lines.append(f"coincident: [ {flags} ]")
        case Filter(statements, child):
            lines = [f'filter: "{{ {"; ".join(f"{s}[]" for s in statements)} }}"']
        case Mark(name, child):
            lines = [f'mark: "{name}"']
        case Sequence(filters):
            lines = ["sequence:"]
            for f in filters:
                first, *rest = _lines(f)
                lines += [f"- {first}", *(f"  {line}" for line in rest)]
            return lines
        case _:
            assert_never(tree)
    if not isinstance(child, Leaf):
        lines.append("child:")
        lines += textwrap.indent("\n".join(_lines(child)), "  ").split("\n")
    return lines


def to_isl(tree: Domain) -> isl.Schedule:
    """The tree as an isl schedule."""
    text = to_yaml(tree)
    for piece in isl.sets_of(tree.instances):
        name = piece.get_tuple_name()
        indices = ", ".join(f"i{k}" for k in range(piece.dim(isl.dim_type.set)))
        text = text.replace(f"{name}[]", f"{name}[{indices}]")
    return isl.Schedule.read_from_str(tree.instances.get_ctx(), text)
