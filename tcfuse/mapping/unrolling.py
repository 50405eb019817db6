"""Which loops are unrolled: the innermost ones, while few enough statement instances result.

Source: "The Next 700 Accelerated Layers", section 4.6 (unrolling bounded by instances).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcfuse.poly import isl
from tcfuse.poly.extents import most_iterations
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import joined, member, unroll
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A subtree and how many instances are written for it; ``None``: it keeps a loop."""

    tree: Tree
    instances: int | None


def mark_unrolled(scop: Scop, tree: Domain, most: int) -> Domain:
    """``tree`` with an ``unroll`` mark above each band that is unrolled.

    Args:
        scop: Whose statements the tree orders.
        tree: A mapped tree; loops that are marked stay loops.
        most: Statement instances that may be written below one point.
    """
    names = tuple(s.name for s in scop.statements)
    return (
        tree
        if most == 1
        else replace(tree, child=_part(scop, tree.child, names, (), most).tree)
    )


def _part(
    scop: Scop,
    tree: Tree,
    statements: tuple[str, ...],
    outer: tuple[isl.MultiUnionPwAff, ...],
    most: int,
) -> _Part:
    match tree:
        case Leaf():
            return _Part(tree, len(statements))
        case Sequence(filters):
            parts = [_part(scop, f.child, f.statements, outer, most) for f in filters]
            rebuilt = tuple(
                replace(f, child=p.tree) for f, p in zip(filters, parts, strict=True)
            )
            counts = [p.instances for p in parts]
            known = [c for c in counts if c is not None]
            return _Part(Sequence(rebuilt), sum(known) if len(known) == len(counts) else None)
        case Band():
            below = _part(scop, tree.child, statements, (*outer, tree.schedule), most)
            return _unrolled(
                scop, replace(tree, child=below.tree), statements, outer, below, most
            )
        case Mark(_, Band() as band):
            inner = _part(scop, band.child, statements, (*outer, band.schedule), most)
            return _Part(replace(tree, child=replace(band, child=inner.tree)), None)
        case Mark(_, child):
            return _Part(
                replace(tree, child=_part(scop, child, statements, outer, most).tree), None
            )
        case Domain() | Filter():
            raise AssertionError(f"{type(tree).__name__} inside a schedule")


def _unrolled(
    scop: Scop,
    band: Band,
    statements: tuple[str, ...],
    outer: tuple[isl.MultiUnionPwAff, ...],
    below: _Part,
    most: int,
) -> _Part:
    """``band`` with its last members unrolled, as many as ``most`` allows."""
    count = below.instances
    if count is None:
        return _Part(band, None)
    domain = isl.part_of(scop.domain, statements)
    kept = band.depth
    while kept:
        around = [*outer, *(member(band, k) for k in range(kept - 1))]
        times = most_iterations(domain, around, member(band, kept - 1))
        if times is None or count * times > most:
            break
        count, kept = count * times, kept - 1
    if kept == band.depth:
        return _Part(band, None)
    rows = [member(band, k) for k in range(band.depth)]
    flags = band.coincident
    last = Band(joined(rows[kept:]), band.permutable, flags[kept:], band.child)
    if not kept:
        return _Part(unroll(last), count)
    first = Band(joined(rows[:kept]), band.permutable, flags[:kept], unroll(last))
    return _Part(first, None)
