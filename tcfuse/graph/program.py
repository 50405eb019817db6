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
from collections.abc import Collection, Iterator, Mapping, Sequence
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
        not_all: Sets of choices, by number, that are not all taken.
    """

    choices: tuple[Choice, ...]
    edges: tuple[tuple[int, int], ...] = ()
    together: tuple[frozenset[int], ...] = ()
    not_all: tuple[frozenset[int], ...] = ()

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
        proved: Whether nothing is cheaper, by more than the gap that was asked for.
    """

    regions: frozenset[int]
    price: float
    proved: bool = True


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


def load_solver() -> None:
    """Import HiGHS, which takes half a second, before time is counted."""
    import scipy.optimize
    import scipy.sparse  # noqa: F401


def solve(
    program: Program,
    forbidden: Sequence[Collection[int]] = (),
    *,
    seconds: float = math.inf,
    gap: float = 0.0,
    tree: int = 0,
) -> Solution | None:
    """The cheapest cover; ``None`` when there is none, or none was found in time.

    Args:
        program: The choices.
        forbidden: Sets of regions, by number, each of which must not be the answer again.
        seconds: How long to look; what was found until then need not be the cheapest.
        gap: How far from the cheapest the answer may be, relative to its price.
        tree: Nodes of the search tree after which it may be any distance; 0 for no limit.
    """
    if not program.choices:
        return None if forbidden or program.together else Solution(frozenset(), 0.0)
    load_solver()
    deadline = time.perf_counter() + seconds
    rows, columns = _rows(program, forbidden)
    limits: dict[str, float] = {"mip_rel_gap": gap} | ({"node_limit": tree} if tree else {})
    for _ in range(MOST_ROUNDS):
        left = deadline - time.perf_counter()
        if left <= 0:
            return None
        if left < math.inf:
            limits["time_limit"] = left
        taken, proved = _minimum(program.choices, columns, rows, limits)
        if taken is None:
            return None
        regions = [k for k in taken if program.choices[k].is_region]
        found = list(circles(program.edges, [program.choices[k].nodes for k in regions]))
        if not found:
            price = math.fsum(program.choices[k].price for k in taken)
            return Solution(frozenset(regions), price, proved)
        for circle in found:
            rows.add(sorted(_cut(program.choices, circle)), -math.inf, len(circle) - 1.0)
    return None


def best(
    program: Program, count: int, *, seconds: float = math.inf, gap: float = 0.0, tree: int = 0
) -> Iterator[Solution]:
    """The cheapest covers, cheapest first, which differ in their regions; at most ``count``.

    Args:
        program: The choices.
        count: How many.
        seconds: How long to look for each.
        gap: As for ``solve``.
        tree: As for ``solve``.
    """
    known: list[frozenset[int]] = []
    while len(known) < count:
        found = solve(program, known, seconds=seconds, gap=gap, tree=tree)
        if found is None:
            return
        yield found
        known.append(found.regions)


def _rows(
    program: Program, forbidden: Sequence[Collection[int]]
) -> tuple[_Rows, list[list[int]]]:
    """Every node once, what belongs together, and no answer that is known; and the columns.

    A column is choices that are taken together.  Nodes that are in the same regions have rows
    that say the same, so one row is left of them, and what each of them costs by itself is one
    column: of hundreds of nodes, a row for each place where a region may end is left.
    """
    rows = _Rows()
    held = frozenset().union(*program.not_all)
    covers: dict[int, list[int]] = {}
    alone: dict[int, int] = {}
    for k, choice in enumerate(program.choices):
        if len(choice.nodes) == 1 and not choice.is_region and k not in held:
            (node,) = choice.nodes
            if node not in alone or choice.price < program.choices[alone[node]].price:
                alone[node] = k
            covers.setdefault(node, [])
            continue
        for node in choice.nodes:
            covers.setdefault(node, []).append(k)
    alike: dict[tuple[bool, tuple[int, ...]], list[int]] = {}
    for node in sorted(covers):
        alike.setdefault((node in alone, tuple(covers[node])), []).append(node)
    columns = [[k] for k in sorted({k for others in covers.values() for k in others})]
    for (is_alone, shared), same in alike.items():
        together = [alone[node] for node in same if is_alone]
        rows.add([*shared, *together[:1]], 1.0, 1.0)
        columns += [together] if together else []
    regions = [k for k, choice in enumerate(program.choices) if choice.is_region]
    for nodes in program.together:
        rows.add([k for k in regions if nodes <= program.choices[k].nodes], 1.0, 1.0)
    for numbers in program.not_all:
        rows.add(sorted(numbers), -math.inf, len(numbers) - 1.0)
    for known in forbidden:  # one region at least goes or comes
        others = [k for k in regions if k not in known]
        rows.add(sorted(known), -math.inf, len(known) - 1.0, minus=others)
    return rows, columns


def _cut(choices: Sequence[Choice], circle: Circle) -> set[int]:
    """Regions of which no solution has one for each pair of the circle.

    Those with several of the pairs are left out: they may be what closes the circle inside.
    """
    found: set[int] = set()
    for k, choice in enumerate(choices):
        if choice.is_region and sum(pair <= choice.nodes for pair in circle) == 1:
            found.add(k)
    return found


def _minimum(
    choices: Sequence[Choice],
    columns: Sequence[Sequence[int]],
    rows: _Rows,
    limits: Mapping[str, float],
) -> tuple[list[int] | None, bool]:
    """The choices of the cheapest cover under ``rows``, and whether HiGHS proved it."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    place = {together[0]: j for j, together in enumerate(columns)}
    where = [place[k] for k in rows.where]
    matrix = csr_array((rows.numbers, (rows.which, where)), (len(rows.low), len(columns)))
    solved = milp(
        [math.fsum(choices[k].price for k in together) for together in columns],
        integrality=np.ones(len(columns)),
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, rows.low, rows.high),
        options=dict(limits),
    )
    if solved.x is None:
        return None, False
    taken = [columns[j] for j, share in enumerate(solved.x) if share > 0.5]
    return sorted(k for together in taken for k in together), bool(solved.success)
