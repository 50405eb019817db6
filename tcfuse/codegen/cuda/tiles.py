"""Tiles of contractions: how large they may be, and which one a size is best served by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil

from tcfuse.codegen.cuda.variants import divided_up
from tcfuse.codegen.storage import C_TYPES
from tcfuse.poly.polynomial import Polynomial
from tcfuse.types import DType

MULTIPROCESSORS = 128  # of the usual device
LEAST_SIDE = 16  # rows, and columns, below which most of any tile would be empty
LEAST_DEPTH = 8
LEAST_WORK = 1 << 16  # multiplications below which a tile's way into shared memory is too long
THREADS = 512  # of one multiprocessor at least, so that a thread has 128 registers at most


class Reads(Enum):
    """How operands are read."""

    ANY = "any"
    VECTORS = "vectors"
    ELEMENTS = "elements"


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile that blocks compute.

    Attributes:
        text: Its C++ type.
        element: The type of what is in shared memory.
        rows, columns: Of the tile.
        warps: In a block.
        rate: Percent of the fastest that its threads multiply and add.
        depth: Steps of the sum between two barriers.
        padding: Elements between two rows of a panel.
        swizzled: Panels of operands along the sum have no padding.
        staged: Bytes of shared memory through which the results go.
        reads: The operands it is for: those read in vectors, those that are not, or any; for
            the addresses of single elements its threads may have no registers.
    """

    text: str
    element: DType
    rows: int
    columns: int
    warps: int
    rate: float
    depth: int
    padding: int
    swizzled: bool
    staged: int
    reads: Reads = Reads.ANY

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    @property
    def blocks(self) -> int:
        """Blocks that a multiprocessor has registers for."""
        return max(1, THREADS // self.threads)

    def shared_bytes(self, along_k: tuple[bool, bool]) -> int:
        """Bytes of shared memory of a block: two panels of each operand, or the results.

        Args:
            along_k: Whether neighbours of an operand lie along the steps of the sum.
        """
        sides = zip((self.rows, self.columns), along_k, strict=True)
        widths = (s if self.swizzled and along else s + self.padding for s, along in sides)
        return max(2 * self.depth * sum(widths) * self.element.bytes, self.staged)


def _by_threads(
    dtype: DType,
    warps: tuple[int, int],
    sums: tuple[int, int],
    depth: int,
    share: int,
    reads: Reads = Reads.ANY,
) -> Tile:
    """``tcf::FmaTile``.

    Args:
        dtype: Of elements and sums.
        warps: Along rows and columns; the lanes of one are 4 by 8.
        sums: Of one thread, along rows and columns.
        depth: Steps of the sum between two barriers.
        share: That of multiply-adds among the instructions of a panel, in percent of them.
        reads: As for ``Tile``.
    """
    numbers = ", ".join(map(str, (*warps, *sums, depth)))
    # A step of the sum reads TM + TN elements a thread, and a multiprocessor delivers a warp's
    # 128 bytes of them in the time in which it issues four instructions.
    delivered = sum(sums) * dtype.bytes / 4
    return Tile(
        f"tcf::FmaTile<{C_TYPES[dtype]}, {numbers}>",
        dtype,
        4 * sums[0] * warps[0],
        8 * sums[1] * warps[1],
        warps[0] * warps[1],
        share * min(1.0, sums[0] * sums[1] / 4 / delivered),
        depth,
        padding=16 // dtype.bytes,
        swizzled=False,
        staged=warps[0] * warps[1] * 8 * 8 * sums[1] * dtype.bytes,
        reads=reads,
    )


def _by_tensor_cores(
    dtype: DType, warps: tuple[int, int], results: tuple[int, int], reads: Reads = Reads.ANY
) -> Tile:
    """``tcf::MmaTile``.

    Args:
        dtype: Of the elements; sums are ``float``.
        warps: Along rows and columns.
        results: Of 16 by 8 elements of one warp, along rows and columns.
        reads: As for ``Tile``.
    """
    numbers = ", ".join(map(str, (*warps, *results)))
    rows, columns = 16 * results[0] * warps[0], 8 * results[1] * warps[1]
    # A warp loads 16 rows or columns of a step for each of its fragments.
    loads = results[0] + results[1] / 2
    return Tile(
        f"tcf::MmaTile<tcf::{CORES[dtype]}, {numbers}>",
        dtype,
        rows,
        columns,
        warps[0] * warps[1],
        100 * min(1.0, results[0] * results[1] / 3 / loads),
        64 // dtype.bytes,
        padding=8,
        swizzled=True,
        staged=warps[0] * warps[1] * 8 * (8 * results[1] + 8) * 4,
        reads=reads,
    )


CORES = {
    DType.FLOAT16: "HalfCores",
    DType.BFLOAT16: "BfloatCores",
    DType.FLOAT32: "Tf32Cores",
}
THREAD_TILES = {
    DType.FLOAT32: (
        _by_threads(DType.FLOAT32, (4, 2), (8, 8), 8, 79, Reads.VECTORS),
        _by_threads(DType.FLOAT32, (2, 2), (8, 4), 8, 70),
        _by_threads(DType.FLOAT32, (2, 1), (4, 4), 16, 63, Reads.VECTORS),
        _by_threads(DType.FLOAT32, (2, 1), (4, 4), 8, 47, Reads.ELEMENTS),
    ),
    DType.FLOAT64: (
        _by_threads(DType.FLOAT64, (4, 2), (4, 4), 8, 50),
        _by_threads(DType.FLOAT64, (2, 1), (4, 4), 8, 50),
    ),
}
TENSOR_TILES = {
    dtype: (
        _by_tensor_cores(dtype, (4, 2), (2, 8), Reads.VECTORS),
        _by_tensor_cores(dtype, (2, 2), (2, 4), Reads.VECTORS),
        _by_tensor_cores(dtype, (4, 2), (1, 4), Reads.ELEMENTS),
    )
    for dtype in CORES
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
    unfit = Reads.ELEMENTS if vectors else Reads.VECTORS
    usable = [tile for tile in tiles if tile.reads is not unfit]
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
