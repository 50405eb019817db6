"""What the best choice of regions would be: the planner's against an integer linear program.

The planner grows regions as large as they get and prunes them.  The program chooses among many
more regions, all priced by the cost model: the planner's, all that is legal, and every run of
consecutive nodes of either.  It covers each node exactly once, by a region or by one of ONNX
Runtime's kernels, which may stand for several nodes; no two regions may wait for each other.

``python -m scripts.region_program MODEL [MODEL ...]`` prints for each model what all of these
nodes take as they are, as the planner has them, in the best and in the second best way, in
predicted microseconds, and with ``--regions`` where the choices differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx_ir as ir
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from tcfuse.calibration import calibrated
from tcfuse.commands.progress import print_table
from tcfuse.graph.boundary import components, group_of
from tcfuse.graph.cost import estimate
from tcfuse.graph.fusion import describe, fuse_all
from tcfuse.graph.layout import Surroundings, reorder_us, surroundings
from tcfuse.graph.legality import constant_nodes
from tcfuse.graph.load import load_model
from tcfuse.graph.machine import Machine
from tcfuse.graph.native_kernels import native_kernels
from tcfuse.graph.plan import FusionPlan
from tcfuse.graph.regions import node_graph, topological
from tcfuse.graph.worth import Pruner
from tcfuse.ort.model_feeds import Wishes, named_sizes
from tcfuse.store import Store

LONGEST = 40
"""Nodes of a region of which every run is a candidate; of longer ones, some are."""

HEADER = ("model", "choices", "as it is us", "planner", "program", "second best")
Nodes = frozenset[ir.Node]


@dataclass(frozen=True, slots=True)
class Choices:
    """What may cover the nodes of one graph, with its price in microseconds."""

    regions: Mapping[Nodes, float]
    native: Mapping[Nodes, float]

    @property
    def nodes(self) -> set[ir.Node]:
        """What has to be covered."""
        return {node for covered in self.native for node in covered}

    def clashes(self) -> Iterator[tuple[Nodes, Nodes]]:
        """Disjoint regions each of which waits for the other."""
        makers = {region: _makers(region) for region in self.regions}
        for a, b in combinations(self.regions, 2):
            if makers[a] & b and makers[b] & a and not a & b:
                yield a, b


def _makers(region: Nodes) -> set[ir.Node]:
    """The nodes outside that ``region`` reads from."""
    values = (value for node in region for value in node.inputs if value is not None)
    return {maker for value in values if (maker := value.producer()) is not None} - region


@dataclass(frozen=True, slots=True)
class Prices:
    """How nodes of one graph are priced: as the planner does."""

    opsets: Mapping[str, int]
    around: Surroundings
    machine: Machine
    sizes: Mapping[str, int]

    def region_us(self, region: Nodes) -> float:
        """Microseconds of one kernel for ``region``, with the reorders it causes or saves."""
        cost = estimate(group_of(region, self.opsets), self.sizes, self.machine)
        native, fused = reorder_us(region, self.around, self.machine, self.sizes)
        return cost.fused_us + fused - native

    def native(self, nodes: Sequence[ir.Node]) -> dict[Nodes, float]:
        """ONNX Runtime's kernels for ``nodes``."""
        return {
            frozenset(kernel.nodes): kernel.time_us(self.sizes, self.machine)
            for kernel in native_kernels(nodes)
        }

    def trimmed(self, nodes: Sequence[ir.Node]) -> Iterator[Nodes]:
        """What is left of ``nodes`` without what is better off outside."""
        for part in components(nodes):
            pruner = Pruner(self.opsets, self.around, False, self.machine, self.sizes)
            yield from map(frozenset, pruner.prune([part]))


def choices(prices: Prices, order: Sequence[ir.Node], plans: Iterable[FusionPlan]) -> Choices:
    """The regions of ``plans`` and their parts, and what ONNX Runtime has instead."""
    position = {node: k for k, node in enumerate(order)}
    regions: dict[Nodes, float] = {}
    for group in (group for plan in plans for group in plan.groups):
        nodes = sorted(group.nodes, key=position.__getitem__)
        parts = (region for run in _runs(nodes) for region in prices.trimmed(run))
        for region in (frozenset(nodes), *parts):
            if region not in regions:
                regions[region] = prices.region_us(region)
    members = {node for region in regions for node in region}
    covered = [node for node in order if node in members]
    native = prices.native(covered)
    free = members - {node for nodes in native for node in nodes}
    alone = {frozenset([node]): 0.0 for node in free}
    for node in members - free:
        alone |= prices.native([node])
    return Choices(regions, alone | native)


def _runs(nodes: Sequence[ir.Node]) -> Iterator[Sequence[ir.Node]]:
    """Runs of nodes that follow each other in topological order, so each is convex."""
    step = -(-len(nodes) // LONGEST)
    for first in range(0, len(nodes), step):
        for last in range(len(nodes), first, -step):
            yield nodes[first:last]


def best(found: Choices, regions: Iterable[Nodes] | None = None) -> tuple[set[Nodes], float]:
    """The cheapest cover: its regions, and its price.

    Args:
        found: The choices.
        regions: Those it has to have, by default any; nothing else is then a region.
    """
    return _solved(found, None if regions is None else set(regions), [])


def second_best(found: Choices, first: set[Nodes]) -> tuple[set[Nodes], float]:
    """The cheapest cover that has other regions than ``first``."""
    return _solved(found, None, [first])


def _solved(
    found: Choices, regions: set[Nodes] | None, forbidden: Sequence[set[Nodes]]
) -> tuple[set[Nodes], float]:
    options = [*found.regions, *found.native]
    prices = [*found.regions.values(), *found.native.values()]
    if not options:
        return set(), 0.0
    n_regions = len(found.regions)
    place = {region: k for k, region in enumerate(found.regions)}
    rows: list[dict[int, float]] = []
    low: list[float] = []
    high: list[float] = []
    for node in found.nodes:
        rows.append({k: 1.0 for k, option in enumerate(options) if node in option})
        low.append(1.0)
        high.append(1.0)
    for a, b in found.clashes():
        rows.append({place[a]: 1.0, place[b]: 1.0})
        low.append(0.0)
        high.append(1.0)
    for chosen in forbidden:  # one region at least goes or comes
        rows.append({k: 1.0 if r in chosen else -1.0 for r, k in place.items()})
        low.append(-np.inf)
        high.append(len(chosen) - 1.0)
    at_least, at_most = np.zeros(len(options)), np.ones(len(options))
    if regions is not None:
        at_most[:n_regions] = at_least[:n_regions] = [region in regions for region in place]
    entries = [(i, k, x) for i, row in enumerate(rows) for k, x in row.items()]
    which, where, numbers = zip(*entries, strict=True)
    matrix = csr_array((numbers, (which, where)), shape=(len(rows), len(options)))
    solved = milp(
        prices,
        integrality=np.ones(len(options)),
        bounds=Bounds(at_least, at_most),
        constraints=LinearConstraint(matrix, low, high),
    )
    assert solved.x is not None, "every node may stay as it is"
    return {r for r, k in place.items() if solved.x[k] > 0.5}, float(solved.fun)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The choices for one model, and the prices of four covers in microseconds."""

    n_choices: int
    planned: set[Nodes]
    best: set[Nodes]
    prices: tuple[float, ...]

    def difference(self) -> Iterator[str]:
        """The regions that only one of the two choices has."""
        for sign, regions in (("-", self.planned - self.best), ("+", self.best - self.planned)):
            yield from sorted(f"  {sign} {describe(group_of(region))}" for region in regions)


def outcome(path: Path) -> Outcome:
    """Solve one model, graph by graph."""
    model = load_model(path)
    machine, sizes = calibrated(Store.default()), named_sizes(model, Wishes())
    plans = fuse_all(model, machine=machine, sizes=sizes)
    everything = fuse_all(model, conservative=False, machine=machine, sizes=sizes)
    n_choices, totals = 0, np.zeros(4)
    planned: set[Nodes] = set()
    chosen: set[Nodes] = set()
    for mine, legal in zip(plans, everything, strict=True):
        order = topological(node_graph(mine.graph))
        around = surroundings(order, constant_nodes(order))
        prices = Prices(model.opset_imports, around, machine, sizes)
        found = choices(prices, order, (mine, legal))
        greedy = {frozenset(group.nodes) for group in mine.groups}
        regions, price = best(found)
        covers = (best(found, ())[1], best(found, greedy)[1], price)
        totals += (*covers, second_best(found, regions)[1])
        n_choices += len(found.regions) + len(found.native)
        planned |= greedy
        chosen |= regions
    return Outcome(n_choices, planned, chosen, tuple(map(float, totals)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--regions", action="store_true", help="show where the choices differ")
    given = parser.parse_args(arguments)
    rows, notes = [], []
    for path in given.models:
        found = outcome(path)
        numbers = (f"{price:.1f}" for price in found.prices)
        rows.append((path.stem, str(found.n_choices), *numbers))
        notes += [path.stem, *found.difference()] if given.regions else []
    print_table(HEADER, rows)
    sys.stdout.writelines(f"{note}\n" for note in notes)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
