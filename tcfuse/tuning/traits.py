"""What a search wants to know of a definition: its loops, their extents, what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tcfuse.errors import TcError, UnsupportedError
from tcfuse.ort.sizes import evaluate_size
from tcfuse.tc.binding import number
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.tuning.candidate import Subject


@dataclass(frozen=True, slots=True)
class Traits:
    """A definition as a search sees it.

    Attributes:
        depth: Loops around the statement that has the most.
        extents: Of those loops whose extent is known, each once, ascending.
        points: Iterations of the largest statement; 0 where an extent is not known.
        has: Which of ``knob.NEEDS`` it has.
    """

    depth: int
    extents: tuple[int, ...]
    points: int
    has: frozenset[str]

    @classmethod
    def of(cls, subject: Subject) -> Traits:
        """The traits of a subject at the sizes it is measured at.

        Raises:
            TcError: Its definition is ill-formed.
        """
        checked = check(parse(subject.definition), affine=False, sizes=subject.interface.sizes)
        sizes = _with_derived(subject)
        every = [_extents(statement, sizes) for statement in checked.statements]
        known = {extent for extents in every for extent in extents if extent is not None}
        points = [prod(e or 0 for e in extents) for extents in every]
        return cls(
            depth=max(map(len, every), default=0),
            extents=tuple(sorted(known)),
            points=max(points, default=0) if all(points) else 0,
            has=_has(checked) | {subject.target},
        )


def _with_derived(subject: Subject) -> dict[str, int]:
    """The sizes, with those that follow from others."""
    sizes = dict(subject.sizes)
    for name, text in subject.interface.derived:
        try:
            sizes.setdefault(name, evaluate_size(text, sizes))
        except UnsupportedError:  # it follows from one that is not given
            continue
    return sizes


def _extents(statement: CheckedStatement, sizes: Mapping[str, int]) -> list[int | None]:
    """How often each loop of a statement runs; ``None`` where sizes are missing."""
    found: list[int | None] = []
    for r in statement.ranges:
        try:
            found.append(number(r.high, sizes) - number(r.low, sizes))
        except TcError:  # a size that is not given
            found.append(None)
    return found


def _has(checked: CheckedDef) -> frozenset[str]:
    reductions = {"reductions"} if any(s.reduction for s in checked.statements) else set()
    return frozenset({""} | reductions | ({"sizes"} if checked.sizes else set()))
