"""How a contraction should run: along which loop its lanes, its register block, what is packed.

``C(m, n) += A(m, k) * B(k, n)`` may have its lanes along ``m`` or ``n``, and rows of a register
block along the other.  What the lanes move through must be contiguous: a tensor that is not, or
whose rows lie far apart, is copied first, a panel of lanes at a time (``mapping.packing``).
The choice is the one with the fewest cycles: of multiply-adds, of loads, of packing, and of
reading from memory what no cache holds, once for each turn of the loops around it.

Source: "The Next 700 Accelerated Layers", section 4.5 (promotion to shared memory, where the
original copies what is not coalesced); Van Zee and van de Geijn, "BLIS", TOMS 41(3), 2015.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, gcd, prod

from tcfuse.mapping.access import touches
from tcfuse.mapping.blocking import ACCUMULATORS, GROUPS, LATENCY, best_rows, block_cycles
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop, Statement
from tcfuse.poly.volume import extent, fixed_extent
from tcfuse.tc.ast import Access, Var

WIDTH = 8  # lanes of a vector; the count itself is chosen with the instruction set
NEAR_BYTES = 16 << 10  # rows that span no more stay in a first-level cache, half of it
LINE_BYTES, WAY_BYTES, WAYS = 64, 4096, 8  # of such a cache
FAR_LOADS = 3.0  # a load of rows that lie farther apart costs that many near ones
FAR_VECTORS = 6.0  # the same of a vector in each row
PACK = 1.5  # cycles of copying one element
COPY = 0.25  # the same where its neighbours in a vector are neighbours in memory
ROOM = 0.5  # of a first-level cache may be full of one tensor
CROWDED = 1.2  # times the cycles where more is
APART = 1.5  # cycles of storing one element of a vector whose elements lie apart
SLIDING = (
    1.2  # rows of a window share elements, which compilers then keep in too many registers
)
CACHED_BYTES = 32 << 20  # of a tensor, which may come from a cache when it is read again
FROM_MEMORY = 0.25  # cycles a byte: 14 GB/s at 3.5 GHz
WORTH = 0.9  # of the time without packing, at most


@dataclass(frozen=True, slots=True)
class Contraction:
    """The way one update runs.

    Attributes:
        statement: Its name in the scop.
        lanes: The iterator that vector lanes follow.
        rows: The iterator that a register block follows.
        packed: The accesses whose tensors are copied first, panel by panel.
        cycles: What all of it takes, in cycles of one core.
    """

    statement: str
    lanes: str
    rows: str
    packed: tuple[Access, ...]
    cycles: float


def contractions(scop: Scop, *, packing: bool = True, rank: int = 0) -> dict[str, Contraction]:
    """The way of each update of ``scop`` that has two operands to share, by its name.

    Args:
        scop: The model, before scheduling.
        packing: Whether tensors may be copied first.
        rank: Which choice is taken, from the one with the fewest cycles on.
    """
    found = {}
    for statement in scop.statements:
        if not statement.is_update or not statement.reduction:
            continue
        choices = [c for c in _choices(scop, statement) if packing or not c.packed]
        plain = min((c for c in choices if not c.packed), key=_cycles, default=None)
        best = min(choices, key=_cycles, default=None)
        if best is not None and plain is not None and best.cycles > WORTH * plain.cycles:
            best = plain
        if best is not None and best.cycles >= WORTH * _along_the_reduction(statement):
            best = None
        if rank and (others := sorted((c for c in choices if c is not best), key=_cycles)):
            best = others[min(rank, len(others)) - 1]
        if best is not None:
            found[statement.name] = best
    return found


def _cycles(choice: Contraction) -> float:
    return choice.cycles


def _choices(scop: Scop, statement: Statement) -> Iterator[Contraction]:
    """Every legal pair of lanes and rows."""
    indices = statement.comprehension.indices
    reads = [(t.access, t.offset) for t in touches(scop, statement) if not t.is_write]
    for lanes in reversed(indices):  # of equals the first is taken: neighbours in memory
        for rows in reversed(indices):
            if rows != lanes:
                packed = _choice(scop, statement, reads, lanes, rows, packs_near=True)
                plain = _choice(scop, statement, reads, lanes, rows, packs_near=False)
                yield from dict.fromkeys(c for c in (packed, plain) if c is not None)


def _choice(
    scop: Scop,
    statement: Statement,
    reads: Sequence[tuple[Access, Polynomial]],
    lanes: str,
    rows: str,
    *,
    packs_near: bool,
) -> Contraction | None:
    """Lanes along one iterator and rows along another; ``None`` if that makes no sense.

    Args:
        scop: The model.
        statement: The update.
        reads: What it reads, and where.
        lanes: The iterator of lanes.
        rows: The iterator of rows.
        packs_near: Whether what lanes find side by side is copied too where rows lie apart.
    """
    size = best_rows(fixed_extent(statement, rows), ACCUMULATORS // GROUPS)
    loads, packing, packed = 0.0, 0.0, list[Access]()
    memory, slower = 0.0, 1.0
    for access, offset in reads:
        memory += _from_memory(scop, statement, access.tensor, offset, (lanes, rows))
        repeated = size if offset.mentions(rows) else 1
        if not offset.mentions(lanes):
            loads += repeated + (FAR_LOADS if _strides_far(statement, offset) else 0.0)
            continue
        stride = offset.stride(lanes)
        near = stride is not None and stride.number == 1
        crowd = _crowding(statement, offset) if near else 1.0
        packs = not near or (crowd > 0 and packs_near)
        if packs and repeated == 1 and _packable(scop, statement, access):
            packed.append(access)
            each = COPY if near else PACK
            packing += each * prod(extent(statement, n) for n in _names(access))
            crowd = 0.0
        elif not near:
            return None
        loads += (FAR_VECTORS if crowd > 1 else 1.0) * repeated * GROUPS
        slower = max(slower, CROWDED if crowd > ROOM else 1.0)
    if not packed and not any(o.mentions(lanes) and not o.mentions(rows) for _, o in reads):
        return None
    cycles = slower * max(size * GROUPS / 2, loads / 2, LATENCY)
    if any(_slides(statement, offset, rows) for _, offset in reads):
        cycles *= SLIDING
    written = prod(extent(statement, i) for i in statement.comprehension.indices)
    stores = (
        written / WIDTH if statement.comprehension.indices[-1] == lanes else written * APART
    )
    points = prod(extent(statement, i) for i in statement.iterators if i not in (lanes, rows))
    groups = ceil(extent(statement, lanes) / WIDTH)
    blocks = block_cycles(extent(statement, rows), size)  # of equals the first must be chosen:
    steps = points * ceil(groups / GROUPS) * blocks  # so no fraction before the last product
    cycles = steps * (cycles / block_cycles(size, size))
    total = cycles + packing + stores + memory
    return Contraction(statement.name, lanes, rows, tuple(packed), total)


def _from_memory(
    scop: Scop, statement: Statement, tensor: str, offset: Polynomial, inner: tuple[str, str]
) -> float:
    """Cycles of reading a tensor that is too large for caches.

    The loops of the block are inside the others, so each turn of one of those that does not
    move through the tensor reads it again.
    """
    kind = scop.checked.tensors[tensor]
    n_bytes = kind.dtype.bytes * prod(n if isinstance(n, int) else 0 for n in kind.shape)
    if n_bytes < CACHED_BYTES:  # or not known
        return 0.0
    around = [i for i in statement.comprehension.indices if i not in inner]
    passes = prod(extent(statement, i) for i in around if not offset.mentions(i))
    return FROM_MEMORY * n_bytes * passes


def _crowding(statement: Statement, offset: Polynomial) -> float:
    """How full what a reduction reads of a tensor makes a first-level cache; 0: side by side.

    Rows that lie a multiple of a large power of two apart share few sets of it.
    """
    if _span(statement, offset) <= NEAR_BYTES:
        return 0.0
    lines, apart = 1, WAY_BYTES
    for name in statement.reduction:
        stride, count = offset.stride(name), fixed_extent(statement, name)
        assert stride is not None, "there is a span"
        assert count is not None, "there is a span"
        n_bytes = 4 * abs(int(stride.number or 0))
        if n_bytes >= LINE_BYTES:
            lines *= count
            apart = gcd(apart, n_bytes)
    if apart < LINE_BYTES:  # vectors lie across two lines
        return max(2 * lines * LINE_BYTES / (WAYS * WAY_BYTES), 1.0)
    return lines * apart / (WAYS * WAY_BYTES)


def _span(statement: Statement, offset: Polynomial) -> int:
    """Bytes between the first and the last element that a reduction reads; 0 when unknown."""
    total = 0
    for name in statement.reduction:
        stride, count = offset.stride(name), fixed_extent(statement, name)
        if stride is None or stride.number is None or count is None:
            return 0
        total += abs(stride.number) * (count - 1)
    return 4 * total


def _slides(statement: Statement, offset: Polynomial, rows: str) -> bool:
    """Whether neighbouring rows read elements that a reduction comes to as well."""
    step = offset.stride(rows)
    return (
        step is not None
        and bool(step.terms)
        and any(offset.stride(name) == step for name in statement.reduction)
    )


def _strides_far(statement: Statement, offset: Polynomial) -> bool:
    """Whether a reduction steps from one row to another that lies far away."""
    strides = [offset.stride(name) for name in statement.reduction]
    unit = any(s is not None and s.number == 1 for s in strides)
    return not unit and _span(statement, offset) > NEAR_BYTES


def _packable(scop: Scop, statement: Statement, access: Access) -> bool:
    """Whether a copy can be indexed by the iterators of the access: an input, each once."""
    names = _names(access)
    plain = len(names) == len(access.subscripts) == len(set(names))
    return (
        plain
        and access.tensor in scop.checked.inputs
        and set(names) <= set(statement.iterators)
    )


def _names(access: Access) -> tuple[str, ...]:
    return tuple(s.name for s in access.subscripts if isinstance(s, Var))


def _along_the_reduction(statement: Statement) -> float:
    """Cycles with lanes along the reduction: two loads an addition, and sums of lanes."""
    outputs = prod(extent(statement, i) for i in statement.comprehension.indices)
    inner = prod(extent(statement, i) for i in statement.reduction)
    return outputs * (inner / WIDTH + 10.0)
