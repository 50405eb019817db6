"""Set partitioning: every node in one kernel, at the least price, as an integer program.

A *choice* is a set of nodes and a price: a region, which is one kernel and waits for all of its
inputs, or what ONNX Runtime launches for the nodes, which waits for nothing that is not needed.
Each node is in exactly one of the choices taken, and the regions taken must not wait for each
other in a circle: contracted to one node each, they leave the graph acyclic.

Circles are ruled out lazily, since few of the exponentially many ever matter.  The program is
solved, a circle in its answer becomes a *cut*, and it is solved again.  The cut holds for more
than the regions at hand: if a circle enters each region at ``u`` and leaves it at ``v``, any
regions that have these pairs of nodes are in a circle.

The next best answer is found with a *no-good cut*, which forbids the one that is known.

Source: Balas and Padberg, "Set Partitioning: A Survey", SIAM Review 18 (1976); no-good cuts
after Balas and Jeroslow, "Canonical Cuts on the Unit Hypercube" (1972).
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tcfuse.graph.quotient import Circle, circles

MOST_ROUNDS = 200
"""Solutions with circles after which the search is given up."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Nodes that are run together, and what that costs.

    Attributes:
        nodes: Their numbers.
        price: Microseconds.
        is_region: Whether they are one kernel of ours.
    """

    nodes: frozenset[int]
    price: float
    is_region: bool = True


@dataclass(frozen=True, slots=True)
class Program:
    """What may cover the nodes of a graph.

    Attributes:
        choices: Each node in one of them is in exactly one of those taken.
        edges: Pairs of nodes of which the second reads the first; nodes without a choice are
            run by ONNX Runtime, and paths lead through them.
        together: Sets of nodes each of which has to be inside one region.
    """

    choices: tuple[Choice, ...]
    edges: tuple[tuple[int, int], ...] = ()
    together: tuple[frozenset[int], ...] = ()

    @property
    def nodes(self) -> list[int]:
        """What has to be covered, in order."""
        return sorted({node for choice in self.choices for node in choice.nodes})


@dataclass(frozen=True, slots=True)
class Solution:
    """A cover of all nodes.

    Attributes:
        regions: Numbers of the choices taken that are regions.
        price: Of all choices taken, in microseconds.
    """

    regions: frozenset[int]
    price: float


@dataclass(slots=True)
class _Rows:
    """Linear constraints: ``low <= sum of coefficients * taken <= high``, a row each."""

    which: list[int] = field(default_factory=list)
    where: list[int] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(
        self, columns: Collection[int], low: float, high: float, minus: Collection[int] = ()
    ) -> None:
        """One more: the sum of ``columns``, less that of ``minus``."""
        row = len(self.low)
        self.which += [row] * (len(columns) + len(minus))
        self.where += [*columns, *minus]
        self.numbers += [1.0] * len(columns) + [-1.0] * len(minus)
        self.low.append(low)
        self.high.append(high)


def solve(
    program: Program, forbidden: Sequence[Collection[int]] = (), seconds: float = math.inf
) -> Solution | None:
    """The cheapest cover; ``None`` when there is none, or none was proved the best in time.

    Args:
        program: The choices.
        forbidden: Sets of regions, by number, each of which must not be the answer again.
        seconds: How long to look.
    """
    if not program.choices:
        return None if forbidden or program.together else Solution(frozenset(), 0.0)
    deadline = time.perf_counter() + seconds
    rows = _rows(program, forbidden)
    for _ in range(MOST_ROUNDS):
        left = deadline - time.perf_counter()
        taken = _minimum(program.choices, rows, left) if left > 0 else None
        if taken is None:
            return None
        regions = [k for k in taken if program.choices[k].is_region]
        found = list(circles(program.edges, [program.choices[k].nodes for k in regions]))
        if not found:
            price = math.fsum(program.choices[k].price for k in taken)
            return Solution(frozenset(regions), price)
        for circle in found:
            rows.add(sorted(_cut(program.choices, circle)), -math.inf, len(circle) - 1.0)
    return None


def best(program: Program, count: int, seconds: float = math.inf) -> Iterator[Solution]:
    """The cheapest covers, cheapest first, which differ in their regions; at most ``count``."""
    known: list[frozenset[int]] = []
    while len(known) < count and (found := solve(program, known, seconds)) is not None:
        yield found
        known.append(found.regions)


def _rows(program: Program, forbidden: Sequence[Collection[int]]) -> _Rows:
    """Every node once, what belongs together, and no answer that is known."""
    rows = _Rows()
    covers: dict[int, list[int]] = {}
    for k, choice in enumerate(program.choices):
        for node in choice.nodes:
            covers.setdefault(node, []).append(k)
    for node in sorted(covers):
        rows.add(covers[node], 1.0, 1.0)
    regions = [k for k, choice in enumerate(program.choices) if choice.is_region]
    for nodes in program.together:
        rows.add([k for k in regions if nodes <= program.choices[k].nodes], 1.0, 1.0)
    for known in forbidden:  # one region at least goes or comes
        others = [k for k in regions if k not in known]
        rows.add(sorted(known), -math.inf, len(known) - 1.0, minus=others)
    return rows


def _cut(choices: Sequence[Choice], circle: Circle) -> set[int]:
    """Regions of which no solution has one for each pair of the circle.

    Those with several of the pairs are left out: they may be what closes the circle inside.
    """
    found: set[int] = set()
    for k, choice in enumerate(choices):
        if choice.is_region and sum(pair <= choice.nodes for pair in circle) == 1:
            found.add(k)
    return found


def _minimum(choices: Sequence[Choice], rows: _Rows, seconds: float) -> list[int] | None:
    """The choices of the cheapest cover under ``rows``, by HiGHS."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # half a second to import
    from scipy.sparse import csr_array

    matrix = csr_array((rows.numbers, (rows.which, rows.where)), (len(rows.low), len(choices)))
    solved = milp(
        [choice.price for choice in choices],
        integrality=np.ones(len(choices)),
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, rows.low, rows.high),
        options={"mip_rel_gap": 0.0} | ({"time_limit": seconds} if seconds < math.inf else {}),
    )
    if not solved.success:
        return None
    return [k for k, share in enumerate(solved.x) if share > 0.5]
