"""Tiles of contractions: how large they may be, and which one a size is best served by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tcfuse.codegen.cuda.variants import divided_up
from tcfuse.codegen.values import C_TYPES
from tcfuse.poly.polynomial import Polynomial
from tcfuse.types import DType

MULTIPROCESSORS = 128  # of the usual device
LEAST_SIDE = 16  # rows, and columns, below which most of any tile would be empty
LEAST_DEPTH = 8
LEAST_WORK = 1 << 16  # multiplications below which a tile's way into shared memory is too long
THREADS = 512  # of one multiprocessor at least, so that a thread has 128 registers at most


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile that blocks compute, ``tcf::FmaTile`` in C++.

    Attributes:
        dtype: The type of elements and sums.
        warps: Along rows and columns.
        sums: Of one thread, along rows and columns.
        depth: Steps of the sum between two barriers.
        share: That of multiply-adds among the instructions of its inner loop, in percent.
        wide: Its threads have no registers for the addresses of operands that are not read in
            vectors.
    """

    dtype: DType
    warps: tuple[int, int]
    sums: tuple[int, int]
    depth: int
    share: int
    wide: bool = False

    @property
    def text(self) -> str:
        """The C++ type."""
        numbers = ", ".join(map(str, (*self.warps, *self.sums, self.depth)))
        return f"tcf::FmaTile<{C_TYPES[self.dtype]}, {numbers}>"

    @property
    def rows(self) -> int:
        """Rows of the tile: the lanes of a warp are four along them."""
        return 4 * self.warps[0] * self.sums[0]

    @property
    def columns(self) -> int:
        """Columns of the tile: the lanes of a warp are eight along them."""
        return 8 * self.warps[1] * self.sums[1]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps[0] * self.warps[1]

    @property
    def rate(self) -> float:
        """Percent of the fastest that its threads multiply and add.

        A step of the sum reads ``TM + TN`` elements a thread, and a multiprocessor delivers a
        warp's 128 bytes of them in the time in which it issues four instructions.
        """
        reads = sum(self.sums) * self.dtype.bytes / 4
        return self.share * min(1.0, self.sums[0] * self.sums[1] / 4 / reads)

    @property
    def blocks(self) -> int:
        """Blocks that a multiprocessor has registers for."""
        return max(1, THREADS // self.threads)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block: two panels of each operand, padded."""
        padding = 2 * 16 // self.dtype.bytes
        panels = 2 * self.depth * (self.rows + self.columns + padding)
        staged = 8 * self.rows // (4 * self.sums[0]) * self.columns
        return max(panels, staged) * self.dtype.bytes


TILES = {
    DType.FLOAT32: (
        Tile(DType.FLOAT32, (4, 2), (8, 8), 8, 86, wide=True),
        Tile(DType.FLOAT32, (2, 2), (8, 4), 8, 78),
        Tile(DType.FLOAT32, (2, 1), (4, 4), 16, 70),
    ),
    DType.FLOAT64: (
        Tile(DType.FLOAT64, (4, 2), (4, 4), 8, 78),
        Tile(DType.FLOAT64, (2, 1), (4, 4), 8, 78),
    ),
}


@dataclass(frozen=True, slots=True)
class Extents:
    """How often the loops of a contraction run."""

    batch: Polynomial
    rows: Polynomial
    columns: Polynomial
    depth: Polynomial

    @property
    def all(self) -> tuple[Polynomial, ...]:
        """The four of them."""
        return self.batch, self.rows, self.columns, self.depth

    def grid(self, tile: Tile) -> Polynomial:
        """Blocks there is work for."""
        rows, columns = divided_up(self.rows, tile.rows), divided_up(self.columns, tile.columns)
        return self.batch * rows * columns


def worth(extents: Extents) -> tuple[str, ...] | None:
    """When tiles pay, as C conditions; ``None``: never."""
    needed = (
        (extents.rows, LEAST_SIDE),
        (extents.columns, LEAST_SIDE),
        (extents.depth, LEAST_DEPTH),
        (extents.batch * extents.rows * extents.columns * extents.depth, LEAST_WORK),
    )
    if any(e.number is not None and e.number < least for e, least in needed):
        return None
    return tuple(f"{e} >= {least}" for e, least in needed if e.number is None)


def choose_tiles(
    tiles: Sequence[Tile], extents: Extents, *, vectors: bool
) -> list[tuple[Tile, tuple[str, ...]]]:
    """The tiles for a contraction with their conditions, the best first; the last has none.

    Args:
        tiles: Those there are, the largest first.
        extents: Of the contraction.
        vectors: Whether both operands are read in vectors.
    """
    usable = [tile for tile in tiles if vectors or not tile.wide]
    usable = [t for t in usable[:-1] if _fills(t, extents)] + usable[-1:]
    if all(e.number is not None for e in (extents.batch, extents.rows, extents.columns)):
        return [(min(usable, key=lambda tile: _time(tile, extents)), ())]
    found: list[tuple[Tile, tuple[str, ...]]] = []
    for tile in usable[:-1]:
        found.append((tile, (f"{extents.grid(tile)} >= {MULTIPROCESSORS}",)))
    return [*found, (usable[-1], ())]


def _fills(tile: Tile, extents: Extents) -> bool:
    """Whether more than half of the tile is used along both sides, as far as is known."""
    sides = ((extents.rows.number, tile.rows), (extents.columns.number, tile.columns))
    return all(number is None or 2 * number > side for number, side in sides)


def _time(tile: Tile, extents: Extents) -> float:
    """The time a contraction takes with a tile, in steps of some length."""
    grid = extents.grid(tile).number
    assert grid is not None
    return ceil(grid / MULTIPROCESSORS) * tile.rows * tile.columns / tile.rate
