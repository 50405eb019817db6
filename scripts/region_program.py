"""What the best choice of regions is by predictions: the greedy plan against the program's.

``python -m scripts.region_program MODEL [MODEL ...]`` prints for each model what the nodes that
may be in regions take as they are, by the greedy plan, by the best one and by the second best,
in predicted microseconds, and with ``--regions`` where the plans differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tcfuse.commands.progress import print_table
from tcfuse.graph.fusion import describe, greedy, group_of
from tcfuse.graph.load import load_model
from tcfuse.graph.planner import Board, Planner
from tcfuse.options import OptimizeOptions
from tcfuse.planning import fields
from tcfuse.store import Store

HEADER = ("model", "parts", "choices", "as it is us", "greedy", "program", "second best")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The plans of one model.

    Attributes:
        n_parts: Different parts of its graphs.
        n_choices: Candidate regions in them.
        prices: As it is, of the greedy plan, of the best and the second best, in microseconds.
        difference: The regions that only the greedy plan has, and those of the best alone.
    """

    n_parts: int
    n_choices: int
    prices: tuple[float, float, float, float]
    difference: tuple[str, ...]


def outcome(path: Path) -> Outcome:
    """Solve one model, graph by graph."""
    model = load_model(path)
    n_parts = n_choices = 0
    native = planned = best = 0.0
    more: list[float] = []
    difference: list[str] = []
    for field in fields(model, OptimizeOptions(), Store.default()):
        planner = Planner(Board.of(field, [group.nodes for group in greedy(field).groups]))
        covers = planner.covers((), second=True)
        n_parts += len({part.key for part in planner.board.parts})
        n_choices += planner.n_candidates
        best += sum(cover.price for cover in covers)
        more += [cover.second[1] - cover.price for cover in covers if cover.second]
        native += sum(planner.prices(part).rest_us(0) for part in planner.board.parts)
        planned += sum(planner.greedy(part).price for part in planner.board.parts)
        difference += _difference(planner, [cover.regions for cover in covers])
    prices = native, planned, best, best + min(more, default=0.0)
    return Outcome(n_parts, n_choices, prices, tuple(difference))


def _difference(planner: Planner, chosen: Sequence[Sequence[int]]) -> Iterator[str]:
    for part, regions in zip(planner.board.parts, chosen, strict=True):
        for sign, ours, others in (("-", part.greedy, regions), ("+", regions, part.greedy)):
            for region in ours:
                if region not in others:
                    yield f"  {sign} {describe(group_of(part.members(region)))}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--regions", action="store_true", help="show where the plans differ")
    given = parser.parse_args(arguments)
    rows, notes = [], []
    for path in given.models:
        found = outcome(path)
        numbers = (f"{price:.1f}" for price in found.prices)
        rows.append((path.stem, str(found.n_parts), str(found.n_choices), *numbers))
        notes += [path.stem, *found.difference] if given.regions else []
    print_table(HEADER, rows)
    sys.stdout.writelines(f"{note}\n" for note in notes)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
