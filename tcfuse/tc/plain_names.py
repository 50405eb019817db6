"""Names of sizes and indices that isl's texts and C++ can hold.

A person may call a size ``mod``, ``new`` or ``L1``: a word of isl, of C++, or a name that
generated code has for its own.  Such a name gets an underscore; no other name changes.  Tensors
need none of this, as their names stand behind a prefix everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from tcfuse.interface import Interface, Port
from tcfuse.tc.ast import Comprehension, Def, Expr, Param, Var, post_order
from tcfuse.tc.rebuild import rebuild_statement
from tcfuse.tc.rename import free_name, rename_text, rename_type

_ISL = """
    and ceil ceild exists false floor floord implies infinity infty max min mod nan not or rat
    true
"""
_CPP = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t
    char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval
    constexpr constinit continue decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new
    noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert
    static_cast struct switch template this thread_local throw true try typedef typeid typename
    typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
# What generated code calls its own; it numbers the rest (``c0``, ``L1``, ``at12``).
_OWN = (
    "begin end fault first last left linux local rest shared sizes tensors turn unix NAN NULL"
)
ISL_WORDS = frozenset(_ISL.split())  # isl does not mind capitals
WORDS = frozenset((*_CPP.split(), *_OWN.split()))
OWN = re.compile(
    r"L\d+|T_\w*|_\w*|tcf\w*|TCF\w*|\w+_t|\w+_(MAX|MIN)"
    r"|(?![nd]\d+$)[a-z][a-z_]*\d+"  # n0 and d0 are sizes that composition has made
)


def plain_names(definition: Def, interface: Interface) -> tuple[Def, Interface]:
    """Both with the names of sizes and indices that cannot stand replaced."""
    sizes, fixed = set(interface.sizes), set(_fixed_names(definition))
    variables = dict.fromkeys((*interface.sizes, *chain(*map(_variables, definition.body))))
    names: dict[str, str] = {}
    for name in variables:
        if name in fixed or not (_is_own(name) if name in sizes else _is_isl(name)):
            continue
        names[name] = free_name(f"{name}_", variables, fixed)
    if not names:
        return definition, interface
    return _renamed(definition, names), _renamed_interface(interface, names)


def _is_isl(name: str) -> bool:
    return name.lower() in ISL_WORDS


def _is_own(size: str) -> bool:
    return _is_isl(size) or size in WORDS or OWN.fullmatch(size) is not None


def _variables(statement: Comprehension) -> Iterator[str]:
    """Every name of a statement but its tensors: indices, sizes and lets."""
    yield from statement.indices
    for r in statement.ranges:
        yield r.name
    for expr in (*statement.values, *statement.exists):
        yield from (node.name for node in post_order(expr) if isinstance(node, Var))


def _fixed_names(definition: Def) -> Iterator[str]:
    """Tensors and lets."""
    yield from (param.name for param in (*definition.params, *definition.returns))
    for statement in definition.body:
        yield statement.tensor
        yield from (let.name for let in statement.lets)


def _renamed(definition: Def, names: Mapping[str, str]) -> Def:
    def rule(node: Expr) -> Expr:
        return Var(names.get(node.name, node.name)) if isinstance(node, Var) else node

    def statement(s: Comprehension) -> Comprehension:
        rebuilt = rebuild_statement(s, rule)
        return replace(
            rebuilt,
            indices=tuple(names.get(i, i) for i in s.indices),
            ranges=tuple(replace(r, name=names.get(r.name, r.name)) for r in rebuilt.ranges),
        )

    def param(p: Param) -> Param:
        return p if p.type is None else replace(p, type=rename_type(p.type, names))

    return replace(
        definition,
        params=tuple(map(param, definition.params)),
        returns=tuple(map(param, definition.returns)),
        body=tuple(map(statement, definition.body)),
    )


def _renamed_interface(interface: Interface, names: Mapping[str, str]) -> Interface:
    def port(p: Port) -> Port:
        return replace(p, type=rename_type(p.type, names))

    return replace(
        interface,
        inputs=tuple(map(port, interface.inputs)),
        outputs=tuple(map(port, interface.outputs)),
        sizes=tuple(names.get(n, n) for n in interface.sizes),
        derived=tuple((names.get(n, n), rename_text(t, names)) for n, t in interface.derived),
        checks=tuple((rename_text(t, names), sentence) for t, sentence in interface.checks),
        facts=tuple(rename_text(t, names) for t in interface.facts),
    )
