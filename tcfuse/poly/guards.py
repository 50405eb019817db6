"""Under which conditions the nodes of an expression are evaluated: what a ternary protects."""

from __future__ import annotations

from collections.abc import Iterable

from tcfuse.tc.ast import Expr, Select, children

Guard = tuple[
    tuple[int, bool], ...
]  # (id of the condition, the value it must have), outermost first


def guards(roots: Iterable[Expr]) -> dict[int, Guard]:
    """For each node below ``roots``, the conditions under which alone it is evaluated."""
    found: dict[int, Guard] = {}
    stack: list[tuple[Expr, Guard]] = [(root, ()) for root in roots]
    while stack:
        node, guard = stack.pop()
        known = found.get(id(node))
        if known is not None:
            guard = _common(known, guard)
            if guard == known:
                continue
        found[id(node)] = guard
        if isinstance(node, Select):
            key = id(node.condition)
            stack.append((node.condition, guard))
            stack.append((node.then, (*guard, (key, True))))
            stack.append((node.otherwise, (*guard, (key, False))))
        else:
            stack.extend((child, guard) for child in children(node))
    return found


def _common(a: Guard, b: Guard) -> Guard:
    length = 0
    while length < min(len(a), len(b)) and a[length] == b[length]:
        length += 1
    return a[:length]
