"""Tiles of the outermost loops, and code of their own for the full ones.

Source: "The Next 700 Accelerated Layers", section 4.4 (outer tiling before mapping).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcfuse.poly.separation import counts_tiles
from tcfuse.poly.transforms import tile
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree

SEPARATE = "separate"


@dataclass(frozen=True, slots=True, eq=False)
class Tiled:
    """A tree, and for each nest that could not be tiled why."""

    tree: Domain
    notes: tuple[str, ...]


def tile_outermost(tree: Domain, sizes: tuple[int, ...]) -> Tiled:
    """``tree`` with the outermost band of each nest tiled.

    Args:
        tree: A schedule without marks.
        sizes: Iterations per tile of each member; 0 leaves it whole, missing ones are 0.
    """
    if not any(sizes):
        return Tiled(tree, ())
    notes: dict[str, None] = {}

    def nests(node: Tree) -> Tree:
        match node:
            case Sequence(filters):
                return Sequence(tuple(replace(f, child=nests(f.child)) for f in filters))
            case Band() if not node.permutable:
                notes["tile sizes ignored: the outermost loops are not permutable"] = None
                return node
            case Band() if not any(sizes[: node.depth]):
                notes["tile sizes ignored: no outermost loop has one"] = None
                return node
            case Band():
                return tile(node, sizes)
            case _:
                return node

    return Tiled(replace(tree, child=nests(tree.child)), tuple(notes))


def mark_separated(tree: Domain) -> Domain:
    """``tree`` with a ``separate`` mark above each band right below loops that count tiles."""
    return replace(tree, child=_marked(tree.child, tiles=False))


def _marked(tree: Tree, *, tiles: bool) -> Tree:
    match tree:
        case Leaf():
            return tree
        case Sequence(filters):
            parts = (replace(f, child=_marked(f.child, tiles=tiles)) for f in filters)
            return Sequence(tuple(parts))
        case Band() if counts_tiles(tree.schedule):
            return replace(tree, child=_marked(tree.child, tiles=True))
        case Band():
            inner = replace(tree, child=_marked(tree.child, tiles=False))
            return Mark(SEPARATE, inner) if tiles else inner
        case Domain() | Filter() | Mark():
            return replace(tree, child=_marked(tree.child, tiles=tiles))
