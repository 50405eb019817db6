"""What is known of the same kernel at other sizes: the nearest entries, three at most.

Sizes are compared as logarithms: 64 is as far from 128 as 512 is from 1024.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tcfuse.wisdom.problem import Entry, Problem

PROBES = 3


def distance(one: Problem, other: Problem) -> float:
    """How far apart the sizes of two problems of one family are, in powers of two."""
    pairs = zip(one.sizes, other.sizes, strict=True)
    return math.hypot(*(math.log2(max(a, 1)) - math.log2(max(b, 1)) for a, b in pairs))


def nearest(problem: Problem, family: Iterable[Entry], most: int = PROBES) -> list[Entry]:
    """The entries whose knobs are worth a try for sizes that nobody tuned, nearest first.

    Of each problem that is its best entry; knobs that a nearer one has are left out.

    Args:
        problem: What knobs are wanted for.
        family: Entries of its family.
        most: How many there are at most.
    """
    best: dict[tuple[int, ...], Entry] = {}
    for entry in family:
        known = best.get(entry.problem.sizes)
        if known is None or entry.better_than(known):
            best[entry.problem.sizes] = entry
    ordered = sorted(best.values(), key=lambda e: (distance(problem, e.problem), e.rank))
    found: dict[str, Entry] = {}
    for entry in ordered:
        found.setdefault(entry.knobs_text, entry)
    return list(found.values())[:most]
