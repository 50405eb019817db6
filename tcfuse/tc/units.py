"""Dimensions and loops of size one, which only clutter subscripts, taken out."""

from __future__ import annotations

from dataclasses import replace

from tcfuse.tc.affine import Affine
from tcfuse.tc.ast import Access, AssignKind, Comprehension, Expr
from tcfuse.tc.draft import Draft, bounds, reduction_variables
from tcfuse.tc.pool import Pool, accesses
from tcfuse.types import TensorType


def drop_units(draft: Draft, pool: Pool) -> Draft:
    """``draft`` without dimensions of size one and variables of one value.

    A dimension stays where a subscript reads a tensor: the subscript may be out of range, which
    is for the kernel to find out.
    """
    kept = {name: [size != 1 for size in t.shape] for name, t in draft.tensors.items()}
    for access in accesses(s.value for s in draft.body):
        for position, subscript in enumerate(access.subscripts):
            if any(True for _ in accesses((subscript,))):
                kept[access.tensor][position] = True
    plain = {s.tensor for s in draft.body}  # nothing but plain variables writes
    plain |= {name for view in draft.views for name in (view.source, view.result)}
    for name in plain:
        kept[name] = [size != 1 for size in draft.tensors[name].shape]
    body = tuple(_statement(s, kept, pool) for s in draft.body)
    tensors = {name: _kept_type(type_, kept[name]) for name, type_ in draft.tensors.items()}
    return replace(draft, tensors=tensors, body=body)


def _kept_type(type_: TensorType, kept: list[bool]) -> TensorType:
    shape = (size for size, stays in zip(type_.shape, kept, strict=True) if stays)
    return TensorType(type_.dtype, tuple(shape))


def _statement(before: Comprehension, kept: dict[str, list[bool]], pool: Pool) -> Comprehension:
    flags = kept[before.tensor]
    dropped = {i for i, stays in zip(before.indices, flags, strict=True) if not stays}
    reduced = reduction_variables(before)
    single: dict[str, Expr] = {}
    for domain in before.ranges:
        low, high = bounds(domain)
        if high - low == Affine((), 1) and domain.name in (*dropped, *reduced):
            single[domain.name] = pool.add(low.expr())
    assert dropped <= single.keys(), f"{before.tensor} is written beyond its size of one"

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Access) or all(kept[node.tensor]):
            return node
        flags = kept[node.tensor]
        return Access(
            node.tensor,
            tuple(s for s, stays in zip(node.subscripts, flags, strict=True) if stays),
        )

    value = pool.substitute(before.value, single) if single else before.value
    assign = before.assign
    if assign.resets and single.keys() >= set(reduced):
        assign = AssignKind.SET  # a reduction of one element
    return replace(
        before,
        indices=tuple(i for i in before.indices if i not in dropped),
        assign=assign,
        value=pool.rewrite(value, rule, {}),
        ranges=tuple(r for r in before.ranges if r.name not in single),
    )
