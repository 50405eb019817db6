"""Which phases turn what they read: transposes through shared memory.

Where everything is written along one parallel loop and something is read along another, no
order of the threads is good for both.  So a block takes a square of the two loops: what is read
along the other one is brought into shared memory row by row, and read from there column by
column.

Source: Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA", 2009.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tcfuse.codegen.cuda.nest import Nest
from tcfuse.codegen.cuda.reaches import Reach, agreeing, reaches
from tcfuse.codegen.cuda.vectors import SCALAR, Vector, alignment_conditions
from tcfuse.codegen.kernel_ast import Instance, Loop
from tcfuse.codegen.tensors import Tensor
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop

SHORT = 8  # iterations below which a square is mostly empty
SMALL_TILE, LARGE_TILE = 32, 64  # elements of a row of a square: 128 bytes of 4 and of 2
MOST_SHARED = 48 << 10  # bytes of shared memory that every block can have


@dataclass(frozen=True, slots=True)
class Staged:
    """A tensor that is read through shared memory.

    Attributes:
        read: Its one access.
        row: The dimension whose subscript follows the loop across.
        column: The dimension whose subscript follows the loop along which memory is contiguous.
    """

    read: Reach
    row: int
    column: int

    @property
    def tensor(self) -> str:
        """The tensor's name."""
        return self.read.tensor

    def strides(self, tile: int) -> tuple[Polynomial, ...]:
        """Cells between neighbours in each dimension; a row has one cell more than it needs."""
        found = [Polynomial()] * len(self.read.subscripts)
        found[self.row] = Polynomial.constant(tile + 1)
        found[self.column] = Polynomial.constant(1)
        return tuple(found)

    def cell(self, tile: int) -> Polynomial:
        """What the subscripts come to, with these strides."""
        total = Polynomial()
        for subscript, stride in zip(self.read.subscripts, self.strides(tile), strict=True):
            if stride.terms:
                assert subscript is not None, "what is staged has subscripts that are known"
                total = total + subscript * stride
        return total


@dataclass(frozen=True, slots=True)
class Squares:
    """The two loops whose iterations a block takes a square of, and what it stages.

    Attributes:
        across: The loop along which everything is written, whose iterations are lanes.
        along: The loop along which the staged tensors are read.
        others: The other loops, outermost first.
    """

    across: Loop
    along: Loop
    others: tuple[Loop, ...]
    staged: tuple[Staged, ...]

    @property
    def sides(self) -> tuple[Polynomial, Polynomial]:
        """Iterations of the two loops."""
        return self.across.high - self.across.low, self.along.high - self.along.low

    @property
    def bytes(self) -> int:
        """Of one element of each staged tensor."""
        return sum(s.read.bytes for s in self.staged)

    @property
    def cell_bytes(self) -> int:
        """Of an element in shared memory, whatever its type."""
        return 8 if any(s.read.bytes > 4 for s in self.staged) else 4

    def shared_bytes(self, tile: int) -> int:
        """Of all squares of a block."""
        return len(self.staged) * tile * (tile + 1) * self.cell_bytes


@dataclass(frozen=True, slots=True)
class Staging:
    """How a phase runs in squares.

    Attributes:
        tile: Iterations of a side of a square.
        vector: Neighbouring iterations of a thread, and when they may be more than one.
        bytes: That a thread reads at once for a square, under the same conditions.
        conditions: Which sizes are worth it, in C.
    """

    squares: Squares
    tile: int
    vector: Vector
    bytes: int
    conditions: tuple[str, ...]


def find_staging(
    nest: Nest, scop: Scop, tensors: Mapping[str, Tensor], vector_bytes: int
) -> Staging | None:
    """How ``nest`` runs in squares; ``None`` where that is no better."""
    if nest.flat is None or not all(isinstance(node, Instance) for node in nest.body):
        return None
    found = list(reaches(nest.body, scop, tensors))
    squares = _squares((*nest.chain, nest.flat), found)
    if squares is None or any(tensors[reach.tensor].lanes for reach in found):
        return None
    if any(side.number is not None and side.number < SHORT for side in squares.sides):
        return None
    turned = {s.tensor for s in squares.staged}
    narrowest = min(r.bytes for r in found if r.is_write or r.tensor in turned)
    tile = LARGE_TILE if narrowest < 4 else SMALL_TILE
    if squares.shared_bytes(tile) > MOST_SHARED:
        tile = SMALL_TILE
    if squares.shared_bytes(tile) > MOST_SHARED:
        return None
    vector, size = _vector(squares, found, vector_bytes)
    worth = tuple(f"{side} >= {SHORT}" for side in squares.sides if side.number is None)
    return Staging(squares, tile, vector, size, worth)


def _squares(loops: Sequence[Loop], found: Sequence[Reach]) -> Squares | None:
    """The two loops with most to stage; ``None`` when nothing is."""
    writes = [reach for reach in found if reach.is_write]
    across = next((o for o in loops if all(w.is_unit(o) for w in writes)), None)
    if across is None or not writes:
        return None
    written = {reach.tensor for reach in writes}
    reads = [reach for reach in agreeing(found) if reach.tensor not in written]
    choices = [
        Squares(across, along, others, staged)
        for along in loops
        if along is not across and (staged := tuple(_strided(reads, across, along)))
        for others in [tuple(o for o in loops if o is not across and o is not along)]
    ]
    return max(choices, key=lambda c: c.bytes, default=None)


def _strided(reads: Sequence[Reach], across: Loop, along: Loop) -> Iterator[Staged]:
    """The reads that are contiguous along one loop while another is walked."""
    for read in reads:
        step = read.offset.stride(across.iterator)
        if step is None or not step.terms or step.number == 1 or not read.is_unit(along):
            continue
        row = _followed(read.subscripts, across, along)
        column = _followed(read.subscripts, along, across)
        if row is not None and column is not None:
            yield Staged(read, row, column)


def _followed(subscripts: Sequence[Polynomial | None], loop: Loop, other: Loop) -> int | None:
    """The one dimension whose subscript is an iterator plus what two loops do not change."""
    mentions = [k for k, s in enumerate(subscripts) if s is None or s.mentions(loop.iterator)]
    if len(mentions) != 1:
        return None
    subscript = subscripts[mentions[0]]
    if subscript is None or subscript.mentions(other.iterator):
        return None
    step = subscript.stride(loop.iterator)
    return mentions[0] if step is not None and step.number == 1 else None


def _vector(squares: Squares, found: Sequence[Reach], most: int) -> tuple[Vector, int]:
    """The lanes of a thread, and the bytes it reads at once for a square."""
    across, along = squares.across, squares.along
    iterators = {loop.iterator for loop in (across, along, *squares.others)}
    staged = {s.tensor for s in squares.staged}
    direct = [r.access for r in found if r.tensor not in staged and r.is_unit(across)]
    widest = max(r.bytes for r in found if r.is_write)
    size = most
    while size > 1:
        lanes = max(1, size // widest)
        needs = [alignment_conditions([(across, direct)], lanes, iterators)]
        for s in squares.staged:
            # Where elements may be outside, the ends of rows are read one by one.
            read, count = replace(s.read.access, inside=True), max(1, size // s.read.bytes)
            needs.append(alignment_conditions([(along, [read])], count, iterators))
        if None not in needs:
            conditions = [c for need in needs for c in need or ()]
            aligned = f"tcf_alignment % {size} == 0"
            return Vector(lanes, tuple(dict.fromkeys((aligned, *conditions)))), size
        size //= 2
    return SCALAR, 1
