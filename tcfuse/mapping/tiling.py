"""Transposes: the lanes loop goes outside the loop along which memory is contiguous.

When lanes walk along one dimension and a tensor is contiguous along another, squares of lanes
and iterations can be loaded whole and turned in registers (``codegen``).  The contiguous loop
is run in tiles, so that the cache lines the lanes write stay in the first-level cache until
they are full.

Rewrite:
    band [i, j] / lanes [k]  ->  band [i, floor(j / 64)] / lanes [k] / band [j]
"""

from __future__ import annotations

from dataclasses import replace

from tcfuse.mapping.lanes import LANES
from tcfuse.mapping.squares import contiguous_member, is_flat
from tcfuse.poly.rows import iterator_of
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import joined, member, tile_member
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree

TILE = 64  # iterations: that many cache lines of 64 bytes are an eighth of a small L1


def tile_transposes(scop: Scop, tree: Domain) -> Domain:
    """``tree`` with the lanes loops of transposes tiled."""
    names = tuple(s.name for s in scop.statements)
    return replace(tree, child=_tiled(scop, tree.child, names))


def _tiled(scop: Scop, tree: Tree, statements: tuple[str, ...]) -> Tree:
    match tree:
        case Sequence(filters):
            return Sequence(
                tuple(replace(f, child=_tiled(scop, f.child, f.statements)) for f in filters)
            )
        case Band(child=Mark(name, Band() as lane)) if name == LANES and is_flat(lane.child):
            return _blocked(scop, tree, lane, statements)
        case Domain() | Filter() | Mark() | Band():
            return replace(tree, child=_tiled(scop, tree.child, statements))
        case Leaf():
            return tree


def _blocked(scop: Scop, band: Band, lane: Band, statements: tuple[str, ...]) -> Band:
    """``band`` over ``lane`` with the contiguous loop inside, where there is one."""

    def iterator(position: int, name: str) -> str | None:
        statement = scop.statement(name)
        if position == band.depth:
            return iterator_of(lane, 0, statement)
        return iterator_of(band, position, statement)

    inner = contiguous_member(scop, band, band.depth, statements, iterator)
    if inner is None or not band.permutable or not lane.coincident[0]:
        return band
    along = Band(member(band, inner), True, (band.coincident[inner],), lane.child)
    rows = [member(band, k) for k in range(band.depth) if k != inner]
    flags = [band.coincident[k] for k in range(band.depth) if k != inner]
    tiled = tile_member(along, 0, TILE)
    loops = joined([*rows, member(tiled, 0)])
    lanes = Mark(LANES, replace(lane, child=along))
    return Band(loops, True, (*flags, along.coincident[0]), lanes)
