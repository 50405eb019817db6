"""Random graphs of many operators and types in kernels, against ONNX's reference in float64.

``python -m tests.conformance.random_graphs --count 300 --seed 7`` runs 300 of them, as many in
a batch as share a library; ``--only 7/41 --shrink`` looks for the smallest graph that fails the
same way.  What no kernel takes is left to ONNX Runtime, as ``tcfuse optimize`` leaves it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import onnx
from hypothesis import HealthCheck, Phase, find, given, seed, settings

from tcfuse.debug import cache_dir, current
from tcfuse.targets.toolchain import Toolchain
from tests.conformance.compiled import BATCH, Outcome, attempt, batches, report, run_batch, tell
from tests.conformance.graph_cases import Case, prepared, runs_of
from tests.conformance.graph_grammar import Graph, graphs

CHUNK = 20  # graphs that one seed makes


def random_graphs(count: int, number: int, size: int) -> list[Graph]:
    """``count`` graphs of at most ``size`` nodes, the same for the same numbers."""
    drawn: list[Graph] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(graphs(3, size))
    def collect(graph: Graph) -> None:
        drawn.append(graph)

    collect()
    return drawn[:count]


def random_cases(count: int, number: int, size: int) -> Iterator[Case]:
    """``count`` cases, in chunks of seeds of their own."""
    for first in range(0, count, CHUNK):
        chunk = number + first // CHUNK
        for k, graph in enumerate(random_graphs(min(CHUNK, count - first), chunk, size)):
            if graph.nodes:
                model = graph.model()
                yield Case(f"{chunk}/{k}", model, runs_of(graph))


def run_cases(cases: Iterator[Case], *, progress: bool = False) -> Outcome:
    """Every graph through the compiler, in batches."""
    outcome, told = Outcome(), 0
    toolchain = Toolchain.default(cache_dir(), current().cxx)
    for batch in batches(cases, BATCH):
        made = [attempt(case, outcome, partial(prepared, case)) for case in batch]
        run_batch([item for item in made if item is not None], outcome, toolchain)
        if progress:
            told = tell(outcome, told)
    return outcome


def used(cases: Sequence[Case]) -> str:
    """How often each operator occurs."""
    counts = Counter(node.op_type for case in cases for node in case.model.graph.node)
    return " ".join(f"{name} {n}" for name, n in counts.most_common())


def smallest(case: Case, size: int) -> onnx.ModelProto:
    """The smallest graph found that fails as ``case`` does."""
    first = next(iter(run_cases(iter([case])).failed.values()), "")
    kind = first.partition(":")[0] if "Error" in first else ""

    def fails(graph: Graph) -> bool:
        if not graph.nodes:
            return False
        found = run_cases(iter([Case("shrunk", graph.model(), runs_of(graph))])).failed
        return any(text.startswith(kind) for text in found.values())

    quiet = settings(
        max_examples=2000, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return find(graphs(1, size), fails, settings=quiet).model()


def main() -> int:
    """Run random graphs and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--only", help="one graph, as it is told: SEED/NUMBER")
    parser.add_argument("--save", type=Path, help="where to write that graph")
    parser.add_argument("--shrink", action="store_true", help="look for a smaller one")
    parser.add_argument("--refusals", action="store_true", help="list what was refused")
    arguments = parser.parse_args()
    if arguments.only:
        chunk, _, number = arguments.only.partition("/")
        found = list(random_cases(CHUNK, int(chunk), arguments.size))
        cases = [case for case in found if case.name == f"{chunk}/{number}"]
        if arguments.shrink:
            print(onnx.printer.to_text(smallest(cases[0], arguments.size)))  # noqa: T201
        if arguments.save:
            onnx.save(cases[0].model, arguments.save)
    else:
        cases = list(random_cases(arguments.count, arguments.seed, arguments.size))
    outcome = run_cases(iter(cases), progress=True)
    print(used(cases))  # noqa: T201
    return report(outcome, refusals=arguments.refusals)


if __name__ == "__main__":
    sys.exit(main())
