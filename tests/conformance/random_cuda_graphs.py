"""Random graphs as CUDA in the emulator: right, without a race, inside every buffer.

``python -m tests.conformance.random_cuda_graphs --count 40 --seed 3`` tries those of 40 graphs
whose nodes are all in one kernel.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from functools import partial

import numpy as np

from tcfuse.cuda_options import CudaOptions
from tcfuse.emulator import Program, emulate
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.cuda import compile_kernel
from tcfuse.tc.compose import compose
from tcfuse.tc.sema import check
from tests.conformance.compiled import Outcome, attempt, group_of_everything, report
from tests.conformance.graph_cases import Case, difference
from tests.conformance.random_graphs import random_cases


def answer(case: Case) -> str:
    """``equal``, or what is wrong.

    Raises:
        UnsupportedError: Not all of the graph is in one kernel.
    """
    model, group = group_of_everything(case.model)
    composed = compose(group, model.opset_imports)
    checked = check(composed.definition, sizes=composed.interface.sizes)
    named = composed.interface, composed.definition.name
    source = compile_kernel(checked, *named, MappingOptions(), CudaOptions()).source
    symbols = [launch.symbol for launch in source.launches]
    program = Program.build([source.text], symbols, trace=True)
    for k, run in enumerate(case.runs):
        inputs = [
            run.given[str(value.name)]
            if value.const_value is None
            else np.asarray(value.const_value.numpy())
            for value in composed.inputs
        ]
        emulated = emulate(source, inputs, program=program)
        if emulated.reports:
            return f"run {k}: {emulated.reports[0]}"
        for got, value in zip(emulated.outputs, composed.outputs, strict=True):
            name = str(value.name)
            if wrong := difference(got, run.wanted[name], run.tolerances[name]):
                return f"{name} in run {k}: {wrong}"
    return "equal"


def run_cases(cases: Iterable[Case], *, progress: bool = False) -> Outcome:
    """Every graph through the compiler and the emulator."""
    outcome = Outcome()
    for case in cases:
        text = attempt(case, outcome, partial(answer, case))
        if text == "equal":
            outcome.equal.append(case.name)
        elif text is not None:
            outcome.failed[case.name] = " ".join(text.split())[:600]
        if progress and text:
            print(f"{case.name}: {text}", file=sys.stderr, flush=True)  # noqa: T201
    return outcome


def main() -> int:
    """Run random graphs and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=6)
    parser.add_argument("--refusals", action="store_true", help="list what was refused")
    arguments = parser.parse_args()
    cases = random_cases(arguments.count, arguments.seed, arguments.size)
    return report(run_cases(cases, progress=True), refusals=arguments.refusals)


if __name__ == "__main__":
    sys.exit(main())
