"""ONNX's node cases as CUDA, compiled by NVRTC: no error, no spill, no narrow access.

``python -m tests.conformance.cuda_built --all`` compiles every case that the compiler takes;
``--symbolic`` gives sizes names first, ``--arch sm_80,sm_90`` says for which GPUs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tcfuse.errors import ToolchainError
from tcfuse.targets.base import CudaSource
from tcfuse.targets.cuda_archs import parse_archs
from tcfuse.targets.nvrtc import compile_cuda
from tcfuse.targets.nvrtc_library import find_nvrtc
from tcfuse.targets.ptx import Ptx
from tcfuse.targets.ptx_version import needed
from tests.conformance.choice import add_choice, chosen
from tests.conformance.compiled import Outcome, attempt, batches, report
from tests.conformance.emulated import Emulated, Ready, prepare
from tests.conformance.node_cases import cases

BATCH = 12  # cases compiled as one text


@dataclass
class Built(Emulated):
    """What became of the cases; ``equal`` are those that compile.

    Attributes:
        kernels: How many different kernels there were.
        launches: How many functions those have together.
        registers: The most that one of them has.
        warned: What the compiler's results deserve a warning for.
        unknown: What of the PTX keeps it from getting a lower version.
    """

    kernels: set[str] = field(default_factory=set)
    launches: int = 0
    registers: int = 0
    warned: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """What was counted, then as for compiled cases."""
        lines = [f"warning: {text}" for text in self.warned]
        lines += [f"not known to any PTX version: {text}" for text in self.unknown]
        lines.append(
            f"{len(self.kernels)} kernels, {self.launches} launches, at most {self.registers} "
            f"registers, {len(self.warned)} warnings"
        )
        return "\n".join((*lines, Outcome.summary(self)))


def joined(sources: Sequence[CudaSource]) -> CudaSource:
    """Several kernels as one text; their names differ."""
    text = "\n".join(source.text for source in sources)
    phases = tuple(phase for source in sources for phase in source.phases)
    return replace(sources[0], text=text, phases=phases)


def build(ready: Sequence[Ready], archs: Sequence[str], outcome: Built) -> None:
    """Compile cases together; where they do not compile together, one by one."""
    sources = {item.source.name: item.source for item in ready}
    new = [source for name, source in sources.items() if name not in outcome.kernels]
    if new:
        try:
            made = compile_cuda(joined(new), archs)
        except ToolchainError as error:
            if len(ready) == 1:
                outcome.failed[ready[0].name] = str(error)[:600]
            else:
                half = len(ready) // 2
                build(ready[:half], archs, outcome)
                build(ready[half:], archs, outcome)
            return
        needs = [of for by_arch in made.resources.values() for of in by_arch.values()]
        outcome.kernels |= {source.name for source in new}
        outcome.launches += len(made.resources)
        outcome.registers = max(outcome.registers, *(of.registers for of in needs))
        outcome.warned += map(str, made.warnings)
        unknown = needed(Ptx.parse(made.images[-1].data.decode())).unknown
        outcome.unknown += [unknown] if unknown else []
    outcome.equal += [item.name for item in ready]


def run_cases(
    chosen: Iterable[Any],
    archs: Sequence[str],
    *,
    symbolic: bool = False,
    progress: bool = False,
) -> Built:
    """Every case through the compiler and NVRTC, in batches."""
    outcome = Built()
    for batch in batches(chosen, BATCH):
        made = (attempt(c, outcome, partial(prepare, c, symbolic=symbolic)) for c in batch)
        if ready := [item for item in made if item is not None]:
            build(ready, archs, outcome)
        if progress:
            print(f"{outcome.inside} cases", file=sys.stderr, flush=True)  # noqa: T201
    return outcome


def main() -> int:
    """Compile cases and print what became of them; the exit status says whether all did."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_choice(parser, every=60)
    parser.add_argument("--symbolic", action="store_true", help="sizes get names")
    parser.add_argument("--arch", default="sm_80", help="GPUs to compile for")
    arguments = parser.parse_args()
    archs = parse_archs(arguments.arch, find_nvrtc().archs)
    outcome = run_cases(
        chosen(arguments, cases()), archs, symbolic=arguments.symbolic, progress=True
    )
    return report(outcome, refusals=False)


if __name__ == "__main__":
    sys.exit(main())
