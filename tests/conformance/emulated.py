"""ONNX's node cases as CUDA, run by the emulator: right, without a race, inside every buffer.

``python -m tests.conformance.emulated --all`` runs every case that the compiler takes for the
CPU; ``--symbolic`` gives sizes names first, and ``--slice 2/8`` takes every eighth case from
the second on.  With ``--seed 1`` and more, the order of threads, the device, the alignment of
tensors and which of the launches runs whose conditions hold are drawn.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tcfuse.cuda_options import CudaOptions
from tcfuse.emulator import Emulated as Emulation
from tcfuse.emulator import Program, emulate
from tcfuse.errors import ToolchainError
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.base import CudaSource
from tcfuse.targets.cuda import compile_kernel
from tests.conformance.choice import add_choice, chosen
from tests.conformance.compiled import (
    Outcome,
    Whole,
    attempt,
    batches,
    composed_whole,
    report,
    tell,
)
from tests.conformance.node_cases import agree, cases
from tests.targets.circumstances import Circumstances, without_some_launches

BATCH = 40


@dataclass(frozen=True, slots=True)
class Ready:
    """A case with its kernel.

    Attributes:
        runs: The kernel's inputs and what is expected, for each data set.
    """

    name: str
    source: CudaSource
    runs: tuple[tuple[list[np.ndarray], list[np.ndarray]], ...]
    rounds: bool

    def emulated(self, inputs: list[np.ndarray], program: Program, seed: int) -> Emulation:
        """What the kernel does; ``seed`` 0 is what it meets usually."""
        if not seed:
            return emulate(self.source, inputs, program=program)
        rng = random.Random(f"{self.name} {seed}")
        met = asdict(Circumstances.drawn(self.source, rng))
        source = without_some_launches(self.source, rng)
        return emulate(source, inputs, program=program, seed=seed, **met)


@dataclass
class Emulated(Outcome):
    """What became of the cases, and what the emulator counted.

    Attributes:
        findings: Races, accesses out of bounds and the like, by kind.
    """

    findings: Counter[str] = field(default_factory=Counter)

    def summary(self) -> str:
        """As for compiled cases, with the findings."""
        found = ", ".join(f"{n} {kind}" for kind, n in self.findings.items()) or "none"
        return f"findings: {found}\n{Outcome.summary(self)}"


def prepare(case: Any, *, symbolic: bool = False) -> Ready:
    """The case's kernel, and its arrays in the kernel's order.

    Raises:
        UnsupportedError: Something refuses; the sentence says what.
    """
    whole = composed_whole(case, symbolic=symbolic)
    interface, name = whole.composed.interface, whole.composed.definition.name
    options = (MappingOptions(), CudaOptions())
    source = compile_kernel(whole.checked, interface, name, *options).source
    runs = tuple(_arrays(whole, given, wanted) for given, wanted in whole.runs)
    return Ready(case.name, source, runs, whole.rounds)


def _arrays(
    whole: Whole, given: dict[str, np.ndarray], wanted: dict[str, np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    inputs = []
    for value in whole.composed.inputs:
        if value.name in given:
            inputs.append(np.asarray(given[value.name]))
        else:
            assert value.const_value is not None, f"{value.name} has no value"
            inputs.append(value.const_value.numpy())
    return inputs, [wanted[value.name] for value in whole.composed.outputs]


def run_batch(batch: Sequence[Ready], outcome: Emulated, seed: int = 0) -> None:
    """Build cases together and run them; where they do not build together, one by one."""
    if not batch:
        return
    sources = {item.source.name: item.source for item in batch}
    try:
        texts = [source.text for source in sources.values()]
        symbols = [x.symbol for source in sources.values() for x in source.launches]
        program = Program.build(texts, symbols, trace=True)
    except ToolchainError as error:
        if len(batch) == 1:
            outcome.failed[batch[0].name] = f"does not compile: {error}"
            return
        half = len(batch) // 2
        run_batch(batch[:half], outcome, seed)
        run_batch(batch[half:], outcome, seed)
        return
    for item in batch:
        try:
            answer = run_ready(item, program, outcome, seed)
        except Exception as error:  # reported, so that the next case runs
            answer = f"{type(error).__name__}: {error}"
        if answer == "equal":
            outcome.equal.append(item.name)
        else:
            outcome.failed[item.name] = " ".join(answer.split())[:600]


def run_ready(item: Ready, program: Program, outcome: Emulated, seed: int) -> str:
    """``equal``, or what is wrong with one case."""
    for inputs, wanted in item.runs:
        emulated = item.emulated(inputs, program, seed)
        if emulated.reports:
            for told in emulated.reports:
                outcome.findings[told.kind.name.lower()] += 1
            return str(emulated.reports[0])
        if emulated.fault:
            return "an index is out of range"
        for got, want in zip(emulated.outputs, wanted, strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                agree(got, want, rounds=item.rounds, case=item.name)
    return "equal"


def run_cases(
    chosen: Iterable[Any], *, symbolic: bool = False, progress: bool = False, seed: int = 0
) -> Emulated:
    """Every case through the compiler and the emulator, in batches."""
    outcome, told = Emulated(), 0
    for batch in batches(chosen, BATCH):
        ready = []
        for case in batch:
            make = partial(prepare, case, symbolic=symbolic)
            if (item := attempt(case, outcome, make)) is not None:
                ready.append(item)
        run_batch(ready, outcome, seed)
        if progress:
            told = tell(outcome, told)
    return outcome


def main() -> int:
    """Run cases and print what became of them; the exit status says whether all were equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_choice(parser, every=10)
    parser.add_argument("--symbolic", action="store_true", help="sizes get names")
    parser.add_argument("--refusals", action="store_true", help="list what was refused")
    parser.add_argument("--seed", type=int, default=0, help="draws what kernels meet")
    arguments = parser.parse_args()
    outcome = run_cases(
        chosen(arguments, cases()),
        symbolic=arguments.symbolic,
        progress=True,
        seed=arguments.seed,
    )
    return report(outcome, refusals=arguments.refusals)


if __name__ == "__main__":
    sys.exit(main())
