"""Random knobs never change a result: pairs of a definition and options, compiled and compared.

``python -m tests.conformance.random_options --pairs 500`` runs many; the tests run a few.  A
pair that fails is printed with its options as JSON, so that ``--only NAME --json '{...}'`` runs
it again.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tcfuse.errors import UnsupportedError
from tcfuse.knob import knobs_of
from tcfuse.options import MappingOptions
from tcfuse.targets.compilers import Level
from tcfuse.targets.cpu import Kernel, compile_kernel
from tests.codegen.conftest import runnable
from tests.conformance.option_seeds import SEEDS
from tests.conformance.subjects import SIZES, Subject, random_subjects, subjects
from tests.targets.kernels import Compiled, build

BATCH = 24  # kernels in one translation unit
TILES = (0, 1, 2, 3, 5, 7, 8, 16, 32, 33, 64)


@dataclass(frozen=True)
class Pair:
    """A definition with the options and the fixed sizes it is compiled with."""

    subject: Subject
    options: MappingOptions
    fixed: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        fixed = f" with {dict(self.fixed)}" if self.fixed else ""
        return f"{self.subject.name}{fixed}: {self.options.to_json()}"


def random_options(rng: random.Random) -> MappingOptions:
    """Each knob at its default, at one of its choices, or at some other legal value."""
    values: dict[str, object] = {}
    for name, known in knobs_of(MappingOptions):
        if rng.random() < 0.4:
            values[name] = rng.choice(known.choices)
    if rng.random() < 0.6:
        values["tile"] = tuple(rng.choice(TILES) for _ in range(rng.randint(1, 4)))
    if rng.random() < 0.3:
        values["unroll"] = rng.randint(1, 40)
    values["isl_operations"] = rng.choice([20_000_000] * 8 + [1, 1_000, 100_000])
    return MappingOptions(**values)  # type: ignore[arg-type]  # each has its knob's type


def random_pairs(count: int, seed: int) -> Iterator[Pair]:
    """The seeds, then definitions with random options; a quarter of these are random too."""
    rng = random.Random(seed)
    known = subjects()
    yield from (Pair(known[s.name], s.options) for s in SEEDS[:count])
    rest = max(count - len(SEEDS), 0)
    chosen = [*known.values()]
    rng.shuffle(chosen)
    drawn = random_subjects(rest // 4, seed)
    for number in range(rest):
        subject = drawn[number // 4] if number % 4 == 3 and number // 4 < len(drawn) else None
        subject = subject or chosen[number % len(chosen)]
        fixed = {s: rng.choice(SIZES) for s in subject.free if rng.random() < 0.3}
        yield Pair(subject, random_options(rng), fixed)


def kernel_of(pair: Pair, hint: str) -> Kernel:
    """The kernel of a pair."""
    subject = pair.subject
    return compile_kernel(subject.checked, subject.interface, hint, pair.options, pair.fixed)


def try_out(compiled: Compiled, pair: Pair, rng: random.Random) -> None:
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


def run(pairs: Sequence[Pair], level: Level, folder: Path, seed: int) -> Outcome:
    """Compile ``pairs`` together and compare each."""
    kernels: list[tuple[Pair, Kernel]] = []
    refused, wrong = [], []
    for pair in pairs:
        try:
            kernels.append((pair, kernel_of(pair, f"k{len(kernels)}")))
        except UnsupportedError as error:
            refused.append(f"{pair}\n  {error}")
        except Exception as error:  # the point is to find them all
            wrong.append(f"{pair}\n  {type(error).__name__}: {error}")
    (row,) = build(
        [p.subject.checked for p, _ in kernels], [k for _, k in kernels], [level], folder
    )
    for (pair, _), compiled in zip(kernels, row, strict=True):
        try:
            try_out(compiled, pair, random.Random(seed))
        except AssertionError as error:
            wrong.append(f"{pair}\n  {' '.join(str(error).split())[:300]}")
    return Outcome(len(kernels) - len(wrong), tuple(refused), tuple(wrong))


def main(argv: Sequence[str] | None = None) -> int:
    """Run pairs and print what was not right; 1 when something was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="NAME", help="one definition")
    parser.add_argument("--json", help="options for it")
    arguments = parser.parse_args(argv)
    if arguments.json is not None:
        subject = subjects()[arguments.only]
        pairs = [Pair(subject, MappingOptions.from_json(arguments.json))]
    else:
        pairs = list(random_pairs(arguments.pairs, arguments.seed))
        pairs = [p for p in pairs if arguments.only in (None, p.subject.name)]
    levels = runnable()
    right, refused, wrong = 0, 0, 0
    started = time.monotonic()
    for start in range(0, len(pairs), BATCH):
        with tempfile.TemporaryDirectory() as folder:
            batch = pairs[start : start + BATCH]
            level = levels[start // BATCH % len(levels)]
            outcome = run(batch, level, Path(folder), arguments.seed)
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
