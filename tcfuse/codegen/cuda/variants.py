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
WARP = 32  # threads; a team of more is a block, since its threads wait for those of the block
LONE_TEAM = 512  # threads, with 128 registers each
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
        block: Threads of a block.
        conditions: C conditions besides those of the vector.
    """

    team: int
    vector: Vector
    groups: int = 0
    rows: Rows = Rows.REGISTERS
    index: str = "int"
    block: int = USUAL_BLOCK
    conditions: tuple[str, ...] = ()

    @property
    def teams(self) -> int:
        """Teams of a block."""
        return self.block // self.team

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
        elements: Of each tensor in memory.
    """

    private: int
    row_bytes: Polynomial
    memory: bool
    elements: tuple[Polynomial, ...]


def variants(nest: Nest, vector: Vector, needs: Needs, options: CudaOptions) -> list[Variant]:
    """The variants of a phase, the best first; the last has no condition."""
    index, conditions = index_type(needs.elements)
    vectors = [vector] if vector.lanes == 1 else [vector, SCALAR]
    found: list[Variant] = []
    for chosen in vectors:
        for variant in _teams(nest, chosen, needs, options):
            joint = (*conditions, *variant.conditions)
            block = _block(nest, variant, needs, options.block)
            found.append(
                _limited(replace(variant, index=index, block=block, conditions=joint), needs)
            )
            if found[-1].when == "1":
                return found
    last = _unconditional(nest, needs, options, conditions)
    return [*found, replace(last, block=_block(nest, last, needs, options.block))]


def index_type(elements: tuple[Polynomial, ...]) -> tuple[str, tuple[str, ...]]:
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
    lanes = nest.lane_nests
    if not lanes:
        yield _placed(Variant(1, SCALAR), needs)
        return
    extents = list(dict.fromkeys(n.elements(vector.lanes) for n in lanes))
    numbers = [e.number for e in extents if e.number is not None]
    known = max(numbers) if len(numbers) == len(extents) else None
    if any(e.mentions(name) for e in extents for name in nest.iterators):
        # Tiles: how long they are differs within a launch, so that it cannot be a condition.
        team = options.team or (WARP if nest.chain else USUAL_BLOCK)
        yield _placed(Variant(team, vector), needs)
        return
    if not nest.chain:
        sizes = [options.team or lone_team(known, vector.lanes)]
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
        yield _placed(Variant(team, vector, conditions=short), needs)


def team_for(extent: int, lanes: int) -> int:
    """Threads for a row of that many elements: each has up to four vectors, if it can."""
    groups = -(-extent // lanes)
    wanted = groups if groups <= 32 else max(32, groups // 4)
    team = 1
    while team < wanted and team < 1024:
        team *= 2
    return team


def lone_team(extent: int | None, lanes: int) -> int:
    """Threads for rows of that many elements where one team runs all there is.

    A vector each, if that many are enough: nobody else hides the time that memory takes.
    """
    team = WARP
    while team < LONE_TEAM and (extent is None or team * lanes < extent):
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


def _placed(variant: Variant, needs: Needs) -> Variant:
    """The variant with its rows in shared memory."""
    return replace(variant, rows=Rows.SHARED if needs.row_bytes.terms else Rows.REGISTERS)


def _limited(variant: Variant, needs: Needs) -> Variant:
    """The variant where a block can have the shared memory that it takes."""
    shared = shared_bytes(variant, needs)
    if shared.number is not None and shared.number <= SHARED_ALWAYS:
        return variant
    fits = (*variant.conditions, f"{shared} <= tcf_shared_limit")
    return replace(variant, conditions=fits)


def shared_bytes(variant: Variant, needs: Needs) -> Polynomial:
    """Shared memory of a block for the rows of its teams."""
    if variant.rows is not Rows.SHARED:
        return Polynomial()
    return needs.row_bytes * Polynomial.constant(variant.teams)


def _unconditional(
    nest: Nest, needs: Needs, options: CudaOptions, conditions: tuple[str, ...]
) -> Variant:
    """The variant for everything that no other takes."""
    rows = Rows.GLOBAL if needs.row_bytes.terms else Rows.REGISTERS
    team = 1
    if nest.flat is None and nest.lane_loops:
        team = options.team or USUAL_BLOCK
    index = "int64_t" if conditions else index_type(needs.elements)[0]
    return Variant(team, SCALAR, rows=rows, index=index)


def _block(nest: Nest, variant: Variant, needs: Needs, wanted: int) -> int:
    """Threads of a block: few where there are few in all, or rows leave no room for more."""
    if variant.team > WARP:
        return variant.team
    if wanted:
        return max(variant.team, wanted)
    block = 128 if variant.team > 1 else USUAL_BLOCK
    threads = turns_of(nest, variant).number
    while threads is not None and block > 64 and threads * variant.team < FEW_THREADS:
        block //= 2
    row = needs.row_bytes.number
    if variant.rows is Rows.SHARED:
        room = SHARED_ALWAYS // row if row else 1
        while block > 32 and block // variant.team > max(1, room):
            block //= 2
    return max(variant.team, block)


def turns_of(nest: Nest, variant: Variant) -> Polynomial:
    """Turns of the teams of a phase, which are single groups of lanes when it is flat."""
    if nest.flat is None:
        return nest.turns
    extent = (nest.flat.high - nest.flat.low).at_least_zero()
    return nest.turns * divided_up(extent, variant.vector.lanes)


def divided_up(value: Polynomial, divisor: int) -> Polynomial:
    """The quotient, rounded up."""
    if divisor == 1:
        return value
    if value.number is not None:
        return Polynomial.constant(-(-value.number // divisor))
    return Polynomial.factor(f"(({value} + {divisor - 1}) / {divisor})")
