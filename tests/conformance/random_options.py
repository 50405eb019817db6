"""Random knobs never change a result: pairs of a definition and options, compiled and compared.

``python -m tests.conformance.random_options --pairs 500`` runs many; the tests run a few.  A
pair that fails is printed with its options as JSON, so that ``--only NAME --json '{...}'`` runs
it again.  With ``--emulate`` they are kernels for GPUs, with random ``CudaOptions`` too.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import UnsupportedError
from tcfuse.mapping_options import MappingOptions
from tests.codegen.conftest import runnable
from tests.conformance.option_pairs import Pair, random_pairs, with_cuda_options
from tests.conformance.option_ways import ForEmulator, ForLevel, Kernel, Way
from tests.conformance.subjects import subjects

BATCH = 24  # kernels in one translation unit


def try_out(compiled: Kernel, pair: Pair, rng: random.Random) -> None:
    """Compare a kernel with the evaluator, for inputs of two sizes."""
    fixed = pair.fixed if pair.options.fix_sizes != "never" else {}
    for _ in range(2):
        trial = pair.subject.draw(rng, fixed)
        if trial is not None:
            found, fault = compiled(trial.inputs, trial.sizes, chunks=rng.choice((1, 2, 5)))
            assert fault == 0, "a fault in valid inputs"
            trial.compare(found)


@dataclass(frozen=True)
class Outcome:
    """What became of some pairs: how many were right, and a sentence for each that was not."""

    right: int
    refused: tuple[str, ...]
    wrong: tuple[str, ...]


def run(pairs: Sequence[Pair], way: Way, seed: int) -> Outcome:
    """Compile ``pairs`` together and compare each."""
    accepted, made = [], []
    refused, wrong = [], []
    for pair in pairs:
        try:
            made.append(way.compile(pair, f"k{len(made)}"))
            accepted.append(pair)
        except UnsupportedError as error:
            refused.append(f"{pair}\n  {error}")
        except Exception as error:  # the point is to find them all
            wrong.append(f"{pair}\n  {type(error).__name__}: {error}")
    right = 0
    for pair, compiled in zip(accepted, way.build(accepted, made), strict=True):
        try:
            try_out(compiled, pair, random.Random(seed))
            right += 1
        except Exception as error:  # whatever is wrong, the next pair runs
            wrong.append(f"{pair}\n  {' '.join(str(error).split())[:300]}")
    return Outcome(right, tuple(refused), tuple(wrong))


def main(argv: Sequence[str] | None = None) -> int:
    """Run pairs and print what was not right; 1 when something was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="NAME", help="one definition")
    parser.add_argument("--json", help="options for it")
    parser.add_argument("--cuda", default="{}", help="options of its kernel for GPUs")
    parser.add_argument("--emulate", action="store_true", help="as CUDA in the emulator")
    arguments = parser.parse_args(argv)
    if arguments.json is not None:
        subject = subjects()[arguments.only]
        cuda = CudaOptions(**json.loads(arguments.cuda))
        pairs = [Pair(subject, MappingOptions.from_json(arguments.json), cuda=cuda)]
    else:
        pairs = list(random_pairs(arguments.pairs, arguments.seed))
        if arguments.emulate:
            pairs = with_cuda_options(pairs, arguments.seed)
        pairs = [p for p in pairs if arguments.only in (None, p.subject.name)]
    levels = runnable()
    right, refused, wrong = 0, 0, 0
    started = time.monotonic()
    for start in range(0, len(pairs), BATCH):
        with tempfile.TemporaryDirectory() as folder:
            batch = pairs[start : start + BATCH]
            level = levels[start // BATCH % len(levels)]
            way = ForEmulator() if arguments.emulate else ForLevel(level, Path(folder))
            outcome = run(batch, way, arguments.seed)
        right += outcome.right
        refused += len(outcome.refused)
        wrong += len(outcome.wrong)
        for text in (*outcome.refused, *outcome.wrong):
            sys.stdout.write(f"{text}\n")
        sys.stdout.write(f"{right} right, {refused} refused, {wrong} wrong\n")
        sys.stdout.flush()
    took = time.monotonic() - started
    sys.stdout.write(f"{len(pairs)} pairs, seed {arguments.seed}, {took:.0f} s\n")
    return int(bool(refused or wrong))


if __name__ == "__main__":
    raise SystemExit(main())
