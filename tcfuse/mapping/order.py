"""The order of the loops of a band: the ones that step farthest through memory go outside.

isl's scheduler finds which loops a band has, and is free in their order; a permutable band may
be reordered at will.  Loops that run once are dropped: no code would be left of them that a
mapping decision could be about.
"""

from __future__ import annotations

from dataclasses import replace

from tcfuse.mapping.access import touches
from tcfuse.poly import isl
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.rows import iterator_of
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import joined, member, without
from tcfuse.poly.tree import Band, Domain, Filter, Mark, Sequence, Tree
from tcfuse.poly.volume import TYPICAL


def order_members(scop: Scop, tree: Domain) -> Domain:
    """``tree`` without loops that run once, and each permutable band ordered by strides."""
    names = tuple(s.name for s in scop.statements)
    return replace(tree, child=_ordered(scop, tree.child, names))


def _ordered(scop: Scop, tree: Tree, statements: tuple[str, ...]) -> Tree:
    match tree:
        case Sequence(filters):
            return Sequence(
                tuple(replace(f, child=_ordered(scop, f.child, f.statements)) for f in filters)
            )
        case Band():
            child = _ordered(scop, tree.child, statements)
            kept = _repeated(scop, replace(tree, child=child), statements)
            return child if kept is None else _sorted(scop, kept, statements)
        case Domain() | Filter() | Mark():
            return replace(tree, child=_ordered(scop, tree.child, statements))
        case _:
            return tree


def _repeated(scop: Scop, band: Band, statements: tuple[str, ...]) -> Band | None:
    """``band`` without the members that have one value only; ``None`` when none is left."""
    instances = isl.part_of(scop.domain, statements)
    kept: Band | None = band
    for position in reversed(range(band.depth)):
        row = isl.UnionMap.from_multi_union_pw_aff(member(band, position))
        values = isl.sets_of(row.intersect_domain(instances).range())
        if kept is not None and len(values) == 1 and values[0].is_singleton():
            kept = without(kept, position)
    return kept


def _sorted(scop: Scop, band: Band, statements: tuple[str, ...]) -> Band:
    if not band.permutable or band.depth == 1:
        return band
    strides = [_stride(scop, band, k, statements) for k in range(band.depth)]
    order = sorted(range(band.depth), key=lambda k: (not band.coincident[k], -strides[k]))
    if order == list(range(band.depth)):
        return band
    schedule = joined([member(band, k) for k in order])
    return replace(band, schedule=schedule, coincident=tuple(band.coincident[k] for k in order))


def _stride(scop: Scop, band: Band, position: int, statements: tuple[str, ...]) -> float:
    """How far a step of one member moves the accesses of ``statements``, in elements."""
    total = 0.0
    for name in statements:
        statement = scop.statement(name)
        iterator = iterator_of(band, position, statement)
        if iterator is None:
            continue
        for touch in touches(scop, statement):
            stride = touch.offset.stride(iterator)
            total += 1 << 20 if stride is None else _magnitude(stride)
    return total


def _magnitude(stride: Polynomial) -> float:
    """The size of a stride with every size name at its typical value."""
    return float(abs(sum(c * TYPICAL ** len(m) for m, c in stride.terms)))
