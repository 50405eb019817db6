"""The best plan of one graph: parts, candidates, prices and the integer program put together.

Equal parts are solved once.  Where a part is not solved in time, or its regions would wait for
those of another in a circle, the regions of the greedy plan stay, if they keep the constraints.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from tcfuse.errors import OptionError
from tcfuse.graph.candidates import candidates
from tcfuse.graph.constraints import Constraint
from tcfuse.graph.fusion import Field
from tcfuse.graph.labels import labels
from tcfuse.graph.node_costs import NodeCosts
from tcfuse.graph.part import Part, bits, parts, rows, set_of
from tcfuse.graph.prices import Prices, merged_nodes
from tcfuse.graph.program import Choice, Program, Solution, best, load_solver
from tcfuse.graph.quotient import circles

VISITS = 15_000
"""Nodes of candidates that are priced at most; parts that differ share them."""

MOST_CUTS = 24
"""Cut points of a region at most: 300 runs."""

SECONDS = 30.0
"""For all programs of a graph, should they take that long: a plan must not depend on time."""

GAP, TREE = 1e-4, 100
"""How far from the best the regions of a part may be, relative to the price of all of it, and
nodes of the solver's search tree after which they may be any distance."""

Gains = Mapping[str, Mapping[int, float | None]]
"""Microseconds that kernels were measured to save, by the key of a part and the set of nodes;
``None`` where there is no kernel."""


@dataclass(frozen=True, slots=True)
class Cover:
    """Regions of one part.

    Attributes:
        regions: Sets of nodes.
        price: Of the whole part, in microseconds.
        second: The next best regions and their price, where they were asked for.
        proved: Whether nothing is better.
    """

    regions: tuple[int, ...]
    price: float
    second: tuple[tuple[int, ...], float] | None = None
    proved: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """One graph in parts, ready to be planned.

    Attributes:
        field: What regions can be made of.
        parts: Where they are chosen.
        merged: What ONNX Runtime merges into products and convolutions.
        costs: Of single nodes.
        cuts: Cut points that there is time for.
    """

    field: Field
    parts: Sequence[Part]
    merged: Mapping[ir.Node, ir.Node]
    costs: NodeCosts
    cuts: int

    @classmethod
    def of(
        cls,
        field: Field,
        greedy: Iterable[Sequence[ir.Node]],
        wishes: Sequence[Constraint] = (),
    ) -> Board:
        """The parts of one graph.

        Args:
            field: What regions can be made of.
            greedy: The regions of the greedy plan.
            wishes: Nodes that have to be together are in one part.
        """
        grown = field.grown(field.members | field.waiting)
        known = labels(field.order, field.pruner.around.blocked)
        joined = [w.required for w in wishes if w.required and w.required <= set(field.order)]
        found = parts(field.order, grown, greedy, known.around, joined)
        sizes = {part.key: len(part.nodes) for part in found}
        cuts = math.isqrt(6 * VISITS // max(sum(sizes.values()), 1))
        merged = merged_nodes(field.order, field.pruner)
        costs = NodeCosts(field.pruner, known)
        return cls(field, found, merged, costs, min(cuts, MOST_CUTS))


@dataclass(slots=True, eq=False)
class Planner:
    """Chooses the regions of one graph.

    Attributes:
        board: The graph in parts.
        wishes: Every constraint that a plan may be asked for with; candidates are for all.
        gains: What was measured.
        doubt: What the time of a region that was not measured is multiplied by: below one,
            regions are tried that may be no better than they seem.
    """

    board: Board
    wishes: Sequence[Constraint] = ()
    gains: Gains = field(default_factory=dict)
    doubt: float = 1.0
    _pools: dict[tuple[object, ...], list[int]] = field(default_factory=dict)
    _covers: dict[tuple[object, ...], Cover] = field(default_factory=dict)
    _prices: dict[str, Prices] = field(default_factory=dict)

    def covers(
        self, wishes: Sequence[Constraint], *, second: bool = False, seconds: float = SECONDS
    ) -> list[Cover]:
        """The best regions of each part under some of the constraints.

        Raises:
            OptionError: No plan keeps them.
        """
        load_solver()
        deadline = time.perf_counter() + seconds
        found: list[Cover] = []
        for part in self.board.parts:
            asked = _asked(part, wishes)
            key = (part.key, asked, second)
            if key not in self._covers:
                left = deadline - time.perf_counter()
                granted = [wish for wish in wishes if _touches(part, wish)]
                self._covers[key] = self._cover(part, granted, 1 + second, left)
            found.append(self._covers[key])
        return self._without_circles(found, wishes)

    @property
    def n_candidates(self) -> int:
        """Candidate regions of the parts that were solved, each part once."""
        return sum(map(len, self._pools.values()))

    def prices(self, part: Part) -> Prices:
        """Prices of the choices of a part; equal parts share them."""
        if part.key not in self._prices:
            board = self.board
            pruner = board.field.fresh_pruner()
            self._prices[part.key] = Prices(part, pruner, board.merged, board.costs, self.doubt)
        return self._prices[part.key]

    def region_prices(
        self, part: Part, prices: Prices, regions: Sequence[int]
    ) -> dict[int, float]:
        """Prices of regions: measured if they were, else predicted."""
        measured = self.gains.get(part.key, {})
        gains = {r: gain for r in regions if (gain := measured.get(r)) is not None}
        guessed = [region for region in regions if region not in gains]
        found = dict(zip(guessed, prices.regions_us(guessed), strict=True))
        return found | {r: prices.measured_us(r, gain) for r, gain in gains.items()}

    def greedy(self, part: Part) -> Cover:
        """The regions of the greedy plan, and their price."""
        prices = self.prices(part)
        known = self.gains.get(part.key, {})
        kept = tuple(r for r in part.greedy if known.get(r, 0.0) is not None)
        return Cover(kept, self._total(part, prices, kept), proved=False)

    def _total(self, part: Part, prices: Prices, regions: Iterable[int]) -> float:
        regions = list(regions)
        total = sum(self.region_prices(part, prices, regions).values())
        return total + prices.rest_us(sum(regions))

    def _pool(self, part: Part, prices: Prices) -> list[int]:
        """The candidates of a part, whichever constraints are kept."""
        key = (part.key, _asked(part, self.wishes))
        if key not in self._pools:
            touching = [wish for wish in self.wishes if _touches(part, wish)]
            measured = self.gains.get(part.key, {})
            found = dict.fromkeys(candidates(prices, self.board.cuts, touching))
            found |= dict.fromkeys(r for r, gain in measured.items() if gain is not None)
            refused = {region for region, gain in measured.items() if gain is None}
            self._pools[key] = [region for region in found if region not in refused]
        return self._pools[key]

    def _cover(
        self, part: Part, wishes: Sequence[Constraint], count: int, seconds: float
    ) -> Cover:
        """The best regions of one part under constraints."""
        prices = self.prices(part)
        pool = [
            region
            for region in self._pool(part, prices)
            if all(wish.allows(part.members(region)) for wish in wishes)
        ]
        together = [_numbers(part, wish.required) for wish in wishes if wish.required]
        program, regions = self._program(part, prices, pool, together)
        found: list[Solution] = []
        if seconds > 0:
            found = list(best(program, count, seconds=seconds, gap=GAP, tree=TREE))
        if not found:
            kept = [r for r in part.greedy if r in pool]
            if together and not all(any(t & ~r == 0 for r in kept) for t in together):
                asked = ", ".join(wish.text for wish in wishes)
                raise OptionError(f"no plan was found for {asked}")
            return Cover(tuple(kept), self._total(part, prices, kept), proved=False)
        first, *others = (
            (tuple(sorted(regions[k] for k in answer.regions)), answer.price)
            for answer in found
        )
        return Cover(*first, others[0] if others else None, all(a.proved for a in found))

    def _program(
        self, part: Part, prices: Prices, pool: Sequence[int], together: Sequence[int]
    ) -> tuple[Program, dict[int, int]]:
        """The integer program of a part, and the regions of its choices."""
        choices: list[Choice] = []
        limits: list[frozenset[int]] = []
        alone: list[float] = [0.0] * len(part.nodes)
        whole = prices.native
        for sets, price in whole:
            covered = 0
            for nodes in sets:
                covered |= nodes
                choices.append(Choice(frozenset(bits(covered)), price, False))
            first = len(choices)
            for k in bits(covered):
                alone[k] = prices.alone[k] if covered.bit_count() > 1 else price
                if covered.bit_count() > 1 and sets[0] != 1 << k:
                    choices.append(Choice(frozenset([k]), alone[k], False))
            if sets[0].bit_count() > 1:
                head = [frozenset([k]) for k in bits(sets[0])]
                limits.append(
                    frozenset(j for j in range(first, len(choices)) if choices[j].nodes in head)
                )
        native = sum(price for _, price in whole)
        numbered: dict[int, int] = {}
        known = self.region_prices(part, prices, pool)
        apart = rows(pool, len(part.nodes)) @ np.array(alone)
        for region, rest, each in zip(pool, prices.rests_us(pool), apart.tolist(), strict=True):
            price = known[region]
            if not together and price >= max(native - rest, each):
                continue  # ONNX Runtime is faster whatever is chosen around it
            numbered[len(choices)] = region
            choices.append(Choice(frozenset(bits(region)), price))
        sets_together = tuple(frozenset(bits(some)) for some in together)
        return Program(tuple(choices), part.edges, sets_together, tuple(limits)), numbered

    def _without_circles(
        self, covers: Sequence[Cover], wishes: Sequence[Constraint]
    ) -> list[Cover]:
        """``covers``; nothing in parts whose regions wait for each other in a circle.

        Only regions of the greedy plan that lie in several maximal ones can make that happen.
        """
        place = {node: k for k, node in enumerate(self.board.field.order)}
        regions = [
            [place[node] for node in part.members(region)]
            for part, cover in zip(self.board.parts, covers, strict=True)
            for region in cover.regions
        ]
        edges = ((place[a], place[b]) for a, b in self.board.field.dag.edges)
        waiting = {
            node for circle in circles(edges, regions) for pair in circle for node in pair
        }
        if not waiting:
            return list(covers)
        order = self.board.field.order
        stuck = {order[k] for k in waiting}
        found = []
        for part, cover in zip(self.board.parts, covers, strict=True):
            if stuck.isdisjoint(part.nodes):
                found.append(cover)
                continue
            if any(wish.required and _touches(part, wish) for wish in wishes):
                raise OptionError("what has to be together would wait for itself")
            native = self.prices(part).rest_us(0)
            found.append(Cover((), native, proved=False))
        return found


def _touches(part: Part, wish: Constraint) -> bool:
    """Whether a constraint is about a node of a part."""
    return bool(wish.most) or not wish.nodes.isdisjoint(part.nodes)


def _asked(part: Part, wishes: Sequence[Constraint]) -> tuple[object, ...]:
    """What constraints ask of a part; equal for equal parts of which the same is asked."""
    return tuple(
        (wish.kind, wish.most, *(_numbers(part, group) for group in wish.groups))
        for wish in wishes
        if _touches(part, wish)
    )


def _numbers(part: Part, nodes: Iterable[ir.Node]) -> int:
    """Those of ``nodes`` that are in a part, as a set of numbers."""
    wanted = set(nodes)
    return set_of(k for k, node in enumerate(part.nodes) if node in wanted)
