"""Where a long reduction is cut into parts that run side by side.

A machine that runs many threads is idle while few results are computed, unless the reduced
range is cut.  How many parts are wanted depends on who reads neighbouring addresses: where a
reduced variable does, a team of threads computes one result, and some hundreds of teams fill
the machine; where a result's index does, each thread computes results of its own, and it takes
tens of thousands of threads.  Parts are runs of neighbouring values, so that memory is read in
the order it had, and of fixed length, so that sizes may be symbolic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tcfuse.poly.polynomial import Polynomial, address, polynomial, row_major
from tcfuse.tc.ast import Access, Range, Var, walk
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.linear import Linear, linear_of, nonnegative

ALIGNED = 64  # elements after which vectors and cache lines of every type begin again
CHUNK = 256  # values in a row that one thread adds when nobody knows how many there are


@dataclass(frozen=True, slots=True)
class _Way:
    """How a kind of reduction fills a machine of 132 multiprocessors.

    Attributes:
        results: How many, or parts of them, run side by side when the machine is full.
        least: Elements that make a part worth its partial result.
        long: Elements that take longer than the launch that splitting adds.
    """

    results: int
    least: int
    long: int

    def wanted(self, results: int) -> int:
        """Parts of each result that the machine has room for."""
        return max(1, self.results // results)


TEAM = _Way(results=264, least=4096, long=1 << 16)  # a block each: two a multiprocessor
THREAD = _Way(results=1 << 17, least=32, long=256)  # 1024 threads each, of four results
TILES = _Way(results=1 << 18, least=512, long=2048)  # 64 x 64 results a block: half of them


@dataclass(frozen=True, slots=True)
class Cut:
    """A reduced variable and how many neighbouring values of it one part has.

    Attributes:
        chunk: 1 makes every value a part of its own.
    """

    name: str
    chunk: int


def extent(r: Range) -> Linear | None:
    """The number of values in a range; ``None`` when it may be negative or is not affine."""
    low, high = linear_of(r.low, {}), linear_of(r.high, {})
    if low is None or high is None:
        return None
    form = high - low
    return form if form.is_affine and nonnegative(form) else None


def adds_neighbours(checked: CheckedDef, item: CheckedStatement) -> bool:
    """Whether a team adds neighbouring elements, in place of threads with results each."""
    return _way(checked, item) is TEAM


def find_cuts(checked: CheckedDef, item: CheckedStatement, parts: int = 0) -> tuple[Cut, ...]:
    """Where the reduction ``item`` is cut; nowhere when that is not worth it.

    Args:
        checked: The definition it belongs to.
        item: A reduction.
        parts: Parts that are wanted of a range whose length is known; 0 chooses.
    """
    extents = {r.name: extent(r) for r in item.ranges}
    if any(form is None for form in extents.values()):
        return ()
    known = {name: form.constant for name, form in extents.items() if form and not form.terms}
    indices = item.comprehension.indices
    if not set(indices) <= known.keys():
        return ()
    results = prod(known[i] for i in indices)
    depth = prod(known.get(r, 1) for r in item.reduction)
    if not results or not depth:
        return ()
    way = _way(checked, item)
    order = _outermost_first(item)
    if not set(order) <= known.keys():
        # With several results it is not known whether splitting pays for leaving their loop.
        if way is TILES or (results > 1 and depth < CHUNK):
            return ()
        wanted = way.wanted(results)
        return _cut_unknown(order, known, wanted, max(way.least, CHUNK)) if wanted > 1 else ()
    if depth < (2 * parts if parts else way.long):
        return ()
    wanted = parts or min(way.wanted(results), depth // way.least)
    cuts = tuple(_cut_known(order, known, wanted))
    if way is TILES and any(known[cut.name] % cut.chunk for cut in cuts):
        return ()  # what is left would have to be added outside of the tiles
    return cuts


def _way(checked: CheckedDef, item: CheckedStatement) -> _Way:
    if _is_contraction(item):
        return TILES
    return THREAD if _touches(checked, item, item.comprehension.indices) else TEAM


def _cut_known(order: list[str], known: dict[str, int], parts: int) -> Iterator[Cut]:
    """At least ``parts`` parts where every length is known, whole outer variables first."""
    for name in order:
        if parts < 2:
            return
        length = known[name]
        if length <= parts:
            parts //= max(length, 1)
            if length > 1:
                yield Cut(name, 1)
            continue
        yield Cut(name, _chunk(length, parts, ALIGNED if name == order[-1] else 1))
        return


def _chunk(length: int, parts: int, aligned: int) -> int:
    """The length of at most ``parts`` parts, with nothing left if there is such a one."""
    for step in dict.fromkeys((aligned, max(aligned // 4, 1), max(aligned // 16, 1))):
        for chunk in _lengths(length, parts, step):
            if length % chunk == 0:
                return chunk
    step = aligned if length >= parts * aligned else 1
    return min(_lengths(length, parts, step), key=lambda c: (length % c, c))


def _lengths(length: int, parts: int, step: int) -> range:
    """The multiples of ``step`` that make between half of ``parts`` and ``parts`` parts."""
    shortest = -(-length // (parts * step)) * step
    return range(shortest, min(2 * shortest, length - 1) + 1, step)


def _cut_unknown(
    order: list[str], known: dict[str, int], parts: int, least: int
) -> tuple[Cut, ...]:
    """Parts of about ``least`` elements, cut at the outermost variable of unknown length."""
    cuts: list[Cut] = []
    for position, name in enumerate(order):
        inner = order[position + 1 :]
        if name in known:
            if known[name] > parts:
                return (*cuts, *_cut_known([name], known, parts))
            if known[name] > 1:
                cuts.append(Cut(name, 1))
            parts = -(-parts // known[name])
            if parts < 2:
                return tuple(cuts)
            continue
        if not set(inner) <= known.keys():
            cuts.append(Cut(name, 1))  # each value has a long part of its own
            return tuple(cuts)
        chunk = max(1, least // prod(known[n] for n in inner))
        return (*cuts, Cut(name, chunk))
    return tuple(cuts)


def _outermost_first(item: CheckedStatement) -> list[str]:
    """The reduced variables, those that step farthest through memory first."""
    place: dict[str, int] = {}
    for access in _accesses(item):
        for position, subscript in enumerate(access.subscripts):
            for node in walk(subscript):
                if isinstance(node, Var):
                    behind = len(access.subscripts) - position
                    place[node.name] = max(place.get(node.name, 0), behind)
    return sorted(item.reduction, key=lambda name: -place.get(name, 0))


def _touches(checked: CheckedDef, item: CheckedStatement, names: tuple[str, ...]) -> bool:
    """Whether a step of one of ``names`` goes to the next element of the largest operand."""
    offsets = [o for a in _accesses(item) if (o := _offset(checked, a)) is not None]
    most = max((_mentioned(item, o) for o in offsets), default=0)
    return any(
        (stride := offset.stride(name)) is not None and stride.number == 1
        for offset in offsets
        if _mentioned(item, offset) == most
        for name in names
    )


def _is_contraction(item: CheckedStatement) -> bool:
    """Whether every operand is read again for other results: no access has every variable."""
    repeated = {r.name for r in item.ranges if _runs_once(r)}
    names = {r.name for r in item.ranges} - repeated
    found = [
        {n.name for s in access.subscripts for n in walk(s) if isinstance(n, Var)}
        for access in _accesses(item)
    ]
    return bool(found) and not any(names <= used for used in found)


def _runs_once(r: Range) -> bool:
    form = extent(r)
    return form is not None and not form.terms and form.constant == 1


def _mentioned(item: CheckedStatement, offset: Polynomial) -> int:
    return sum(offset.mentions(r.name) for r in item.ranges)


def _offset(checked: CheckedDef, access: Access) -> Polynomial | None:
    subscripts = [polynomial(s, {}) for s in access.subscripts]
    known = tuple(s for s in subscripts if s is not None)
    if len(known) < len(subscripts):
        return None
    return address(known, row_major(checked.tensors[access.tensor].shape))


def _accesses(item: CheckedStatement) -> Iterator[Access]:
    for value in item.comprehension.values:
        yield from (node for node in walk(value) if isinstance(node, Access))
