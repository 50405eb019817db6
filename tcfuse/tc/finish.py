"""A normalized draft in its final form: names, lets, types of temporaries, interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from tcfuse.errors import UnsupportedError
from tcfuse.graph.constants import constant_tensor
from tcfuse.interface import Interface, Port
from tcfuse.tc.ast import Access, Cast, Const, Def
from tcfuse.tc.build import Built, ComposeError
from tcfuse.tc.draft import Draft
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.guards import unguarded, unproved
from tcfuse.tc.inline import remove_dead
from tcfuse.tc.lets import name_shared
from tcfuse.tc.literals import literal
from tcfuse.tc.pool import Pool, variables
from tcfuse.tc.rename import (
    canonical_indices,
    rename_sizes,
    rename_tensors,
    rename_text,
    rename_type,
)
from tcfuse.tc.simplify import Simplifier
from tcfuse.tc.size_values import with_visible_sizes
from tcfuse.tc.sizes import Sizes
from tcfuse.tc.typing import resolve
from tcfuse.types import TensorType, size_names


def finish(
    draft: Draft, built: Built, name: str
) -> tuple[Def, Interface, tuple[ir.Value, ...]]:
    """The definition called ``name``, its interface, and its inputs in order.

    Raises:
        ComposeError: A size is not known from these inputs.
    """
    pool, group = built.pool, built.group
    draft = _with_unread(_simplified(draft, pool), built)
    try:
        draft = with_visible_sizes(draft, pool, built.sizes)
    except UnsupportedError as error:
        raise ComposeError(str(error), group.nodes[0]) from error
    inputs = tuple(v for v in group.inputs if built.names[v] in draft.inputs)
    port_types = [built.tensors[built.names[v]] for v in (*inputs, *group.outputs)]
    sizes = _final_sizes(draft, port_types, built.sizes)
    draft = _renamed(draft, sizes, pool)
    types = [rename_type(t, sizes) for t in port_types]
    ports = tuple(map(Port, (*draft.inputs, *draft.outputs), types))
    taken = ports[: len(inputs)]
    _require_bound(sizes, taken, built)
    interface = Interface(
        taken,
        ports[len(inputs) :],
        tuple(sizes.values()),
        tuple(_derived(built.sizes, sizes)),
        (*_checks(built.sizes, sizes), *_access_checks(draft, pool)),
        tuple(_facts(built.sizes, sizes)),
    )
    return _with_lets(draft, pool).definition(name), interface, inputs


def _simplified(draft: Draft, pool: Pool) -> Draft:
    """``draft`` with every value simplified and every temporary of the type its values have."""
    types = ExprTypes(draft.tensors)
    body = []
    for s in draft.body:
        simplifier = Simplifier(pool, types, s.ranges)
        value = pool.rewrite(s.value, simplifier, {})
        if s.tensor not in draft.outputs:
            dtype = draft.tensors[s.tensor].dtype
            if isinstance(value, Const):
                value = pool.add(literal(dtype, value.value))
            elif resolve(types[value]) is not dtype and not s.assign.is_reduction:
                value = pool.add(Cast(dtype, value))
        body.append(canonical_indices(replace(s, value=value), pool))
    return remove_dead(replace(draft, body=tuple(body)))


def _with_unread(draft: Draft, built: Built) -> Draft:
    """``draft`` with the inputs that no value depends on but the original operators read.

    Constants stay out: the original operators have copies.
    """
    types: dict[str, TensorType] = {}
    for value in built.group.inputs:
        name = built.names[value]
        if name in draft.inputs or constant_tensor(value) is None:
            types[name] = draft.tensors.get(name, built.tensors[name])
    return replace(draft, inputs=tuple(types), tensors={**draft.tensors, **types})


def _renamed(draft: Draft, sizes: Mapping[str, str], pool: Pool) -> Draft:
    """``draft`` with the final names of tensors and sizes."""
    names = {old: f"x{k}" for k, old in enumerate(draft.inputs)}
    names |= {old: f"o{k}" for k, old in enumerate(draft.outputs)}
    others = dict.fromkeys(s.tensor for s in draft.body if s.tensor not in names)
    names |= {old: f"t{k}" for k, old in enumerate(others)}
    return Draft(
        tuple(names[x] for x in draft.inputs),
        tuple(names[y] for y in draft.outputs),
        {names[old]: rename_type(type_, sizes) for old, type_ in draft.tensors.items()},
        rename_sizes(rename_tensors(draft.body, names, pool), sizes, pool),
    )


def _with_lets(draft: Draft, pool: Pool) -> Draft:
    types = ExprTypes(draft.tensors)
    body = tuple(
        name_shared(
            s, types, Simplifier(pool, types, s.ranges), declared=s.tensor in draft.outputs
        )
        for s in draft.body
    )
    return replace(draft, body=body)


def _final_sizes(draft: Draft, ports: Iterable[TensorType], sizes: Sizes) -> dict[str, str]:
    """Final names of the sizes that are needed, in the order in which they can be computed."""
    types = (*ports, *draft.tensors.values())
    names = set(size_names(size for type_ in types for size in type_.shape))
    for s in draft.body:
        bounds = [bound for r in s.ranges for bound in (r.low, r.high)]
        names |= variables([s.value, *bounds]) - {r.name for r in s.ranges}
    return {old: f"n{k}" for k, old in enumerate(sizes.used(names))}


def _require_bound(names: Mapping[str, str], ports: Sequence[Port], built: Built) -> None:
    bound = {size for port in ports for size in port.type.shape}
    for old, new in names.items():
        if old not in built.sizes.derived and new not in bound:
            message = "a size is the dimension of an input that is not read"
            raise ComposeError(message, built.group.nodes[0])


def _derived(sizes: Sizes, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in sizes.derived.items():
        if name in names:
            yield names[name], rename_text(text, names)


def _checks(sizes: Sizes, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Relations between bound names that the shapes of the model imply."""
    for condition, sentence in sizes.checks:
        if set(size_names([condition])) <= names.keys():
            yield rename_text(condition, names), rename_text(sentence, names)


def _facts(sizes: Sizes, names: Mapping[str, str]) -> Iterator[str]:
    """What holds of the names in every call."""
    for fact in sizes.facts():
        if set(size_names([fact])) <= names.keys():
            yield rename_text(fact, names)


def _access_checks(draft: Draft, pool: Pool) -> tuple[tuple[str, str], ...]:
    """What must hold of the sizes for every element that is read to exist."""
    types = ExprTypes(draft.tensors)
    checks: dict[str, str] = {}
    for statement in draft.body:
        simplifier = Simplifier(pool, types, statement.ranges)
        for node in unguarded(statement.value):
            if isinstance(node, Access):
                for condition in unproved(node, simplifier, types) or ():
                    checks[f"{condition.size()} >= 0"] = f"{condition.size()} is negative"
    return tuple(checks.items())
