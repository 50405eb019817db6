"""The ways to run a phase: how large teams are, how wide vectors, where rows live.

A kernel serves all sizes, and what is best depends on them; so a phase has several launches,
each with conditions on sizes and addresses, the best first.  The last one always holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from tcfuse.codegen.cuda.nest import Nest
from tcfuse.codegen.cuda.vectors import SCALAR, Vector
from tcfuse.cuda_options import CudaOptions
from tcfuse.poly.polynomial import Polynomial

SMALL = 1 << 30  # elements that 32-bit indices serve, sums of two included
USUAL_BLOCK = 256
FEW_THREADS = 1 << 16  # of a launch whose blocks are small, so that there are more of them
SHARED_ALWAYS = 48 << 10  # bytes of shared memory that every block can have


class Rows(IntEnum):
    """Where the rows of a team are."""

    REGISTERS = 0
    SHARED = 1
    GLOBAL = 2


@dataclass(frozen=True, slots=True)
class Variant:
    """One instance of a phase's template.

    Attributes:
        team: Threads that run one turn together.
        vector: Neighbouring iterations of a thread, and their conditions.
        groups: Vectors of a row that a thread keeps; 0 when any number may come.
        rows: Where rows are.
        index: C type of indices.
        conditions: C conditions besides those of the vector.
    """

    team: int
    vector: Vector
    groups: int = 0
    rows: Rows = Rows.REGISTERS
    index: str = "int"
    conditions: tuple[str, ...] = ()

    @property
    def arguments(self) -> str:
        """The template's arguments."""
        return (
            f"{self.index}, {self.team}, {self.vector.lanes}, {self.groups}, {int(self.rows)}"
        )

    @property
    def when(self) -> str:
        """The condition as one."""
        conditions = dict.fromkeys((*self.conditions, *self.vector.conditions))
        return " && ".join(f"({c})" for c in conditions) or "1"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a phase has to have a place for.

    Attributes:
        private: Rows that registers can hold.
        row_bytes: Of all rows of a team, were they in memory; 0 when it has none.
        memory: Whether some row must be in memory.
        elements: Of the largest tensor.
    """

    private: int
    row_bytes: Polynomial
    memory: bool
    elements: tuple[Polynomial, ...]


def variants(nest: Nest, vector: Vector, needs: Needs, options: CudaOptions) -> list[Variant]:
    """The variants of a phase, the best first; the last has no condition."""
    index, conditions = _index(needs.elements)
    vectors = [vector] if vector.lanes == 1 else [vector, SCALAR]
    found: list[Variant] = []
    for chosen in vectors:
        for variant in _teams(nest, chosen, needs, options):
            joint = (*conditions, *variant.conditions)
            found.append(replace(variant, index=index, conditions=joint))
            if found[-1].when == "1":
                return found
    return [*found, _unconditional(nest, needs, options, conditions)]


def _index(elements: tuple[Polynomial, ...]) -> tuple[str, tuple[str, ...]]:
    """The type of indices, and when it is enough for all of them."""
    if any(e.number is not None and e.number >= SMALL for e in elements):
        return "int64_t", ()
    texts = (f"{e} < {SMALL}" for e in elements if e.number is None)
    return "int", tuple(dict.fromkeys(texts))


def _teams(nest: Nest, vector: Vector, needs: Needs, options: CudaOptions) -> Iterator[Variant]:
    """Teams of the size that rows of certain lengths want."""
    if nest.flat is not None:
        yield Variant(1, vector)
        return
    lanes = nest.lane_loops
    if not lanes:
        yield from _placed(Variant(1, SCALAR), needs)
        return
    extents = list(dict.fromkeys(loop.high - loop.low for loop in lanes))
    numbers = [e.number for e in extents if e.number is not None]
    known = max(numbers) if len(numbers) == len(extents) else None
    if not nest.chain:
        sizes = [options.team or USUAL_BLOCK]
    elif options.team:
        sizes = [options.team]
    elif known is not None:
        sizes = [team_for(known, vector.lanes)]
    else:
        sizes = [32, 256, 1024] if needs.private else [32, 256]
    most = 0 if needs.memory or not needs.private else options.row_groups // needs.private
    kept = [_fitting(s, known, extents, vector, most) for s in sizes if most]
    for fitting in kept:
        if fitting is not None:
            yield fitting
            if not fitting.conditions:
                return
    for team in sizes[-1:] if most else sizes:
        short = () if team == sizes[-1] else _at_most(extents, team * vector.lanes * 8)
        yield from _placed(Variant(team, vector, conditions=short), needs)


def team_for(extent: int, lanes: int) -> int:
    """Threads for a row of that many elements: each has up to four vectors, if it can."""
    groups = -(-extent // lanes)
    wanted = groups if groups <= 32 else max(32, groups // 4)
    team = 1
    while team < wanted and team < 1024:
        team *= 2
    return team


def _fitting(
    team: int, known: int | None, extents: list[Polynomial], vector: Vector, most: int
) -> Variant | None:
    """A team whose threads keep their part of the rows in registers."""
    if known is None:
        room = _at_most(extents, team * vector.lanes * most)
        return Variant(team, vector, most, conditions=room)
    groups = -(-known // (team * vector.lanes))
    return Variant(team, vector, groups) if groups <= most else None


def _at_most(extents: list[Polynomial], most: int) -> tuple[str, ...]:
    return tuple(f"{e} <= {most}" for e in extents if e.number is None or e.number > most)


def _placed(variant: Variant, needs: Needs) -> Iterator[Variant]:
    """The variant with its rows in shared memory, when a block can have that much."""
    if not needs.row_bytes.terms:
        yield variant
        return
    block = block_of(variant, None)
    bytes_of_block = needs.row_bytes * Polynomial.constant(block // variant.team)
    limit = bytes_of_block.number
    if limit is None or limit > SHARED_ALWAYS:
        fits = (*variant.conditions, f"{bytes_of_block} <= tcf_shared_limit")
        yield replace(variant, rows=Rows.SHARED, conditions=fits)
        return
    yield replace(variant, rows=Rows.SHARED)


def _unconditional(
    nest: Nest, needs: Needs, options: CudaOptions, conditions: tuple[str, ...]
) -> Variant:
    """The variant for everything that no other takes."""
    rows = Rows.GLOBAL if needs.row_bytes.terms else Rows.REGISTERS
    team = 1
    if nest.flat is None and nest.lane_loops:
        team = options.team or USUAL_BLOCK
    index = "int64_t" if conditions else _index(needs.elements)[0]
    return Variant(team, SCALAR, rows=rows, index=index)


def block_of(variant: Variant, threads: int | None, wanted: int = 0) -> int:
    """Threads of a block.

    Args:
        variant: Whose teams it holds.
        threads: How many the launch has together, when that is known.
        wanted: What the options say.
    """
    block = wanted or (128 if variant.team > 1 else USUAL_BLOCK)
    while threads is not None and block > 64 and threads < FEW_THREADS and not wanted:
        block //= 2
    return max(variant.team, block)
