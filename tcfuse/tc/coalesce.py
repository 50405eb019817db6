"""Adjacent dimensions that are always walked together merged into one.

An operator on contiguous tensors becomes one flat loop, which vectorises whatever the sizes of
its dimensions are.

Rewrite:
    Y(i, j, k) = X(i, j, k) + B(i)  ->  Y(i, j) = X(i, j) + B(i), j in 0:J*K
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from tcfuse.tc.ast import Access, Comprehension, Expr, Var
from tcfuse.tc.draft import Draft, full_range, target
from tcfuse.tc.pool import Pool, accesses
from tcfuse.tc.sizes import Sizes
from tcfuse.tc.ties import Ties
from tcfuse.types import Size, TensorType


def coalesce(draft: Draft, pool: Pool, sizes: Sizes) -> Draft:
    """``draft`` with dimensions merged wherever every use allows it."""
    ties = Ties(draft, sizes)
    follower = _followers(draft, ties)
    if not follower:
        return draft
    chains = {
        name: _chains([ties.axes.find(axis) for axis in ties.dims[name]], follower)
        for name in ties.accessed
    }
    tensors = dict(draft.tensors)
    for name, positions in chains.items():
        shape = tensors[name].shape
        merged = tuple(_product([shape[p] for p in chain], sizes) for chain in positions)
        tensors[name] = TensorType(tensors[name].dtype, merged)
    body = tuple(_statement(s, chains, tensors, pool) for s in draft.body)
    return replace(draft, tensors=tensors, body=body)


def _product(factors: list[Size], sizes: Sizes) -> Size:
    return factors[0] if len(factors) == 1 else sizes.product(factors)


def _followers(draft: Draft, ties: Ties) -> dict[int, int]:
    """The axes that merge with the axis that follows them in every tensor."""
    after: dict[int | None, set[int | None]] = defaultdict(set)
    before: dict[int | None, set[int | None]] = defaultdict(set)
    for name in ties.accessed:
        row = [None, *(ties.axes.find(axis) for axis in ties.dims[name]), None]
        for a, b in pairwise(row):
            after[a].add(b)
            before[b].add(a)
    follower = {
        a: b
        for a, (b, *others) in after.items()
        if a is not None and b is not None and a != b and not others and before[b] == {a}
        if ties.axes.is_plain(a) and ties.axes.is_plain(b)
    }
    for statement in draft.body:
        for a in _walked_apart(statement, ties, follower):
            follower.pop(a, None)
    return follower


def _walked_apart(
    statement: Comprehension, ties: Ties, follower: Mapping[int, int]
) -> set[int]:
    """The axes whose subscript and the next are not the same pair in all of ``statement``."""
    apart: set[int] = set()
    right: dict[str, str] = {}
    left: dict[str, str] = {}
    for access in (target(statement), *accesses((statement.value,))):
        row = [ties.axes.find(axis) for axis in ties.dims[access.tensor]]
        for axis, a, b in zip(row, access.subscripts, access.subscripts[1:], strict=False):
            if axis not in follower:
                continue
            if (
                not isinstance(a, Var)
                or not isinstance(b, Var)
                or (
                    right.setdefault(a.name, b.name) != b.name
                    or left.setdefault(b.name, a.name) != a.name
                )
            ):
                apart.add(axis)
    return apart


def _chains(axes: list[int], follower: Mapping[int, int]) -> list[list[int]]:
    """Positions of ``axes`` in runs that merge."""
    chains: list[list[int]] = []
    for position, axis in enumerate(axes):
        if position and follower.get(axes[position - 1]) == axis:
            chains[-1].append(position)
        else:
            chains.append([position])
    return chains


def _statement(
    before: Comprehension,
    chains: Mapping[str, list[list[int]]],
    tensors: Mapping[str, TensorType],
    pool: Pool,
) -> Comprehension:
    """``before`` with one variable, named like the first, for each run of them."""
    extents: dict[str, Size] = {}  # of the variables that stand for a run
    swallowed: set[str] = set()

    def merged(access: Access) -> Access:
        subscripts = []
        for chain, size in zip(
            chains[access.tensor], tensors[access.tensor].shape, strict=True
        ):
            first = access.subscripts[chain[0]]
            subscripts.append(first)
            if len(chain) > 1 and isinstance(first, Var):
                extents[first.name] = size
                inner = (access.subscripts[p] for p in chain[1:])
                swallowed.update(s.name for s in inner if isinstance(s, Var))
        return Access(access.tensor, tuple(subscripts))

    def rule(node: Expr) -> Expr:
        return merged(node) if isinstance(node, Access) else node

    value = pool.rewrite(before.value, rule, {})
    indices = tuple(s.name for s in merged(target(before)).subscripts if isinstance(s, Var))
    ranges = tuple(
        full_range(r.name, extents[r.name]) if r.name in extents else r
        for r in before.ranges
        if r.name not in swallowed
    )
    return replace(before, indices=indices, value=value, ranges=ranges)
