"""Names that mean something in the texts kernels are made of: C++, isl, and our own.

A person may call a size ``int`` or an index ``mod``.  Sizes become variables of the C++ text
and parameters of isl's; indices and lets only go through isl.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tcfuse.tc.ast import Comprehension, Expr, Range, Var
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.rebuild import rebuild
from tcfuse.tc.rename import rename_text, rename_type

_ISL = """
    and or not exists exist mod floor ceil min max rat implies infty infinity NaN nan true
    false domain range child schedule filter
"""
_CPP = """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl concept
    const constexpr continue decltype default delete do double dynamic_cast else enum explicit
    export extern false final float for friend goto if import inline int int8_t int16_t int32_t
    int64_t linux long module mutable namespace new noexcept not nullptr operator or override
    private protected ptrdiff_t public register requires restrict return short signed size_t
    sizeof static static_assert static_cast struct switch template this thread_local throw true
    try typedef typeid typename typeof uint8_t uint16_t uint32_t uint64_t union unix unsigned
    using virtual void volatile wchar_t while xor
"""
_KERNEL = "tensors sizes shared local begin end fault tcf"
ISL = frozenset(_ISL.split())
RESERVED = ISL | frozenset(_CPP.split()) | frozenset(_KERNEL.split())
_PLAIN = re.compile(r"[A-Z]\w*|[nd]\d+|[a-z]+(_[a-z]+)*")
_OURS = re.compile(r"T_.*|TCF.*|tcf_.*|L\d+|S\d.*|U?INT.*|NULL|NAN|INFINITY|\w+_MAX|\w+__\w*")


def with_safe_names(checked: CheckedDef) -> CheckedDef:
    """``checked`` with other names for the sizes, indices and lets that would be misread."""
    taken = {*checked.tensors, *checked.sizes}
    for item in checked.statements:
        taken.update(r.name for r in item.ranges)
        taken.update(let.name for let in item.comprehension.lets)
    names = {name: _free(name, taken) for name in sorted(taken) if _is_misread(name, checked)}
    return _renamed(checked, names) if names else checked


def _is_misread(name: str, checked: CheckedDef) -> bool:
    if name in checked.sizes:
        plain = _PLAIN.fullmatch(name) and not _OURS.fullmatch(name)
        return not plain or name in RESERVED
    if name in checked.tensors:  # these get a prefix everywhere
        return False
    return name in ISL or re.fullmatch(r"o\d+_", name) is not None


def _free(name: str, taken: set[str]) -> str:
    """A name that looks like ``name``."""
    found = f"{'_'.join(re.findall('[A-Za-z]+', name)) or 'x'}_of".lower()
    while found in taken or found in RESERVED:
        found += "_x"
    taken.add(found)
    return found


def _renamed(checked: CheckedDef, names: Mapping[str, str]) -> CheckedDef:
    def rule(node: Expr) -> Expr:
        return (
            Var(names.get(node.name, node.name), node.span) if isinstance(node, Var) else node
        )

    def swap(expr: Expr) -> Expr:
        return rebuild(expr, rule)

    definition = checked.definition
    params, returns = (
        tuple(replace(p, type=p.type and rename_type(p.type, names)) for p in group)
        for group in (definition.params, definition.returns)
    )

    def ranges(group: tuple[Range, ...]) -> tuple[Range, ...]:
        return tuple(
            replace(r, name=names.get(r.name, r.name), low=swap(r.low), high=swap(r.high))
            for r in group
        )

    def statement(written: Comprehension) -> Comprehension:
        return replace(
            written,
            indices=tuple(names.get(i, i) for i in written.indices),
            value=swap(written.value),
            ranges=ranges(written.ranges),
            lets=tuple(
                replace(x, name=names.get(x.name, x.name), value=swap(x.value))
                for x in written.lets
            ),
            exists=tuple(map(swap, written.exists)),
        )

    body = tuple(map(statement, definition.body))
    return replace(
        checked,
        definition=replace(definition, params=params, returns=returns, body=body),
        statements=tuple(
            CheckedStatement(
                statement(item.comprehension),
                ranges(item.ranges),
                tuple(names.get(v, v) for v in item.reduction),
            )
            for item in checked.statements
        ),
        tensors={n: rename_type(t, names) for n, t in checked.tensors.items()},
        sizes=tuple(rename_text(s, names) for s in checked.sizes),
        origins={n: tuple(map(swap, low)) for n, low in checked.origins.items()},
        preconditions=tuple(map(swap, checked.preconditions)),
    )
