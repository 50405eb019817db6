"""Loops around a loop over lanes whose iterations the threads of a team share as well.

A group norm sums over channels, rows and columns; where columns are few, threads would idle in
a loop over them alone.  A loop right around a loop over lanes is marked ``spread`` when nothing
is in between, and what it carries is what lanes may carry: updates of one element.
"""

from __future__ import annotations

from dataclasses import replace

from tcfuse.mapping.lanes import LANES, PARALLEL
from tcfuse.mapping.legality import among, carries_nothing, inside
from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.rows import iterator_of
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import member, without
from tcfuse.poly.tree import Band, Domain, Mark, Sequence, Tree
from tcfuse.poly.volume import extent

SPREAD = "spread"
LONG = 2048  # iterations over lanes that keep a team busy on their own


def spread_loops(
    scop: Scop, dependences: Dependences, tree: Domain, *, reassociate: bool = True
) -> Domain:
    """``tree`` with a ``spread`` mark above each loop that threads share with the lanes."""
    spreader = _Spreader(scop, dependences.ordered if reassociate else dependences.all)
    names = tuple(s.name for s in scop.statements)
    return replace(tree, child=spreader.visit(tree.child, names, ()))


class _Spreader:
    def __init__(self, scop: Scop, ordered: isl.UnionMap) -> None:
        self.scop = scop
        self.ordered = ordered

    def visit(
        self, tree: Tree, names: tuple[str, ...], outer: tuple[isl.MultiUnionPwAff, ...]
    ) -> Tree:
        match tree:
            case Sequence(filters):
                return Sequence(
                    tuple(
                        replace(f, child=self.visit(f.child, f.statements, outer))
                        for f in filters
                    )
                )
            case Mark(name, Band() as band) if name == PARALLEL:
                below = self.visit(band.child, names, (*outer, band.schedule))
                return replace(tree, child=replace(band, child=below))
            case Band():
                below = self.visit(tree.child, names, (*outer, tree.schedule))
                return self._band(replace(tree, child=below), names, outer)
            case _:
                return tree

    def _band(
        self, band: Band, names: tuple[str, ...], outer: tuple[isl.MultiUnionPwAff, ...]
    ) -> Tree:
        """The band, of which the innermost members are spread as far as that goes."""
        lanes = _lanes_below(band.child)
        if lanes is None or not self._is_short(lanes, names):
            return band
        kept: Band | None = band
        while kept is not None and self._may_spread(kept, lanes, names, outer):
            last = kept.depth - 1
            row = Band(member(kept, last), True, (kept.coincident[last],), kept.child)
            kept, spread = without(kept, last), Mark(SPREAD, row)
            if kept is None:
                return spread
            kept = replace(kept, child=spread)
        return kept or band

    def _is_short(self, lanes: Band, names: tuple[str, ...]) -> bool:
        """Whether the loop over lanes alone may leave threads without work."""
        statements = [self.scop.statement(name) for name in names]
        found = [(s, iterator_of(lanes, 0, s)) for s in statements]
        return any(i is not None and extent(s, i) < LONG for s, i in found)

    def _may_spread(
        self,
        band: Band,
        lanes: Band,
        names: tuple[str, ...],
        outer: tuple[isl.MultiUnionPwAff, ...],
    ) -> bool:
        last = band.depth - 1
        for name in names:
            statement = self.scop.statement(name)
            iterator, lane = (
                iterator_of(band, last, statement),
                iterator_of(lanes, 0, statement),
            )
            if iterator is None or lane is None:
                return False
            reduced = {iterator, lane} & set(statement.reduction)
            if statement.is_update and len(reduced) == 1:
                return False  # threads add up all they share to one element, or nothing
        pairs = inside(among(self.ordered, isl.part_of(self.scop.domain, names)), outer)
        others = [member(band, k) for k in range(last)]
        return carries_nothing(inside(pairs, others), member(band, last))


def _lanes_below(tree: Tree) -> Band | None:
    """The loop over lanes right below, or below loops that are spread."""
    match tree:
        case Mark(name, Band() as band) if name == LANES:
            return band
        case Mark(name, Band() as band) if name == SPREAD:
            return _lanes_below(band.child)
        case _:
            return None
