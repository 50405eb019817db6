"""Random programs of the whole language: text, sizes and values.

``python -m tests.conformance.random_programs --count 2000`` runs many; the tests run a few.
Each is printed and read back, checked, compiled and run beside the evaluator, for inputs of
several sizes and with indices that are wrong.  What goes wrong is printed with its text.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tcfuse.errors import TcError, ToolchainError, UnsupportedError
from tcfuse.targets.compilers import Level
from tcfuse.tc.ast import Access, Comprehension, Expr, Var, walk
from tcfuse.tc.binding import number, size_value
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.format import format_text
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.tc.unparse import unparse
from tests.codegen.conftest import runnable
from tests.conformance.option_pairs import random_cuda_options, random_options
from tests.conformance.option_ways import AnyLaunch
from tests.conformance.program_grammar import Program, random_program
from tests.targets.emulated import EmulatedKernel, cuda_source, emulated
from tests.targets.kernels import Compiled
from tests.targets.language import (
    Ready,
    RefusedError,
    build_all,
    kernel_inputs,
    ready,
    sizes_of,
)
from tests.targets.programs import random_elements
from tests.targets.test_cpu import assert_equal

Kernel: TypeAlias = Compiled | EmulatedKernel | AnyLaunch
Build: TypeAlias = Callable[[Sequence[Ready], Path], Sequence[Kernel]]
SIZES = ((4, 5), (1, 1), (0, 0), (9, 17), (33, 2), (0, 3), (2, 7), (16, 16))
TRIALS = 4
MOST_POINTS = 20_000
BATCH = 50


@dataclass
class Summary:
    """What became of the programs."""

    programs: int = 0
    runs: int = 0
    equal: int = 0
    rejected: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """One line, then the reasons."""
        count = sum(self.refused.values())
        head = (
            f"programs {self.programs}, runs {self.runs}, equal {self.equal}, calls refused by "
            f"both {self.rejected}, refused {count}, wrong {len(self.wrong)}"
        )
        return "\n".join((head, *(f"  {n:4} {why}" for why, n in self.refused.most_common())))


def random_programs(count: int, seed: int, statements: int = 5) -> list[Program]:
    """Programs, the same for the same number."""
    rng = random.Random(seed)
    return [random_program(rng, statements) for _ in range(count)]


def check_text(text: str) -> None:
    """The text of a program means itself."""
    definition = parse(text)
    assert parse(unparse(definition)) == definition
    assert parse(format_text(text)) == definition


def inputs_of(
    program: Program,
    checked: CheckedDef,
    sizes: Mapping[str, int],
    rng: np.random.Generator,
    *,
    wrong: bool,
) -> dict[str, np.ndarray]:
    """Inputs; with ``wrong`` some position lies outside what it indexes."""
    found = {}
    for name in (*checked.inputs, *checked.inout):
        kind = checked.tensors[name]
        shape = tuple(size_value(s, sizes) for s in kind.shape)
        elements = random_elements(kind.dtype, shape, rng)
        if name in program.gathers:
            size = size_value(program.gathers[name], sizes)
            elements = rng.integers(0, max(size, 1), shape)
            if wrong and elements.size:
                elements.flat[rng.integers(elements.size)] = rng.choice([-1, size, 1 << 30])
        found[name] = np.asarray(elements).astype(kind.dtype.numpy)
    return found


def value(text: str, sizes: Mapping[str, int]) -> int:
    """The end of a range as a number."""
    return int(eval(text.replace("/", "//"), {"min": min, "max": max}, dict(sizes)))


def has_an_empty_domain(checked: CheckedDef, sizes: Mapping[str, int]) -> bool:
    """Whether some statement never runs."""
    ranges = (r for statement in checked.statements for r in statement.ranges)
    return any(number(r.low, sizes) >= number(r.high, sizes) for r in ranges)


def points(checked: CheckedDef, sizes: Mapping[str, int]) -> int:
    """Instances of the largest statement."""
    return max(
        prod(max(number(r.high, sizes) - number(r.low, sizes), 0) for r in s.ranges)
        for s in checked.statements
    )


def try_out(program: Program, made: Ready, kernel: Kernel, summary: Summary, n: int) -> None:
    """Compare a kernel with the evaluator."""
    rng = random.Random(n)
    for trial in range(TRIALS):
        sizes = dict(zip("NM", rng.choice(SIZES), strict=True))
        if points(made.checked, sizes) > MOST_POINTS:
            continue
        wrong = trial == TRIALS - 1 and bool(program.gathers)
        draw = np.random.default_rng((n, trial))
        given = inputs_of(program, made.checked, sizes, draw, wrong=wrong)
        summary.runs += 1
        if compare(program, made, kernel, sizes, given):
            summary.equal += 1
        else:
            summary.rejected += 1


def compare(
    program: Program,
    made: Ready,
    kernel: Kernel,
    sizes: Mapping[str, int],
    given: Mapping[str, np.ndarray],
) -> bool:
    """Whether there was a result to compare; refusals must agree too."""
    checked, expected = made.checked, None
    with suppress(TcError):
        expected = evaluate(checked, given)
    inputs = kernel_inputs(made, given)
    try:
        known = sizes_of(made.form.interface, inputs)
    except RefusedError as error:
        # Of what is never run the kernel may ask more than the evaluator.
        if expected is not None and not has_an_empty_domain(checked, sizes):
            raise AssertionError(f"{error} with {sizes}") from None
        return False
    found, fault = kernel(inputs, known, chunks=2)
    if expected is None and not fault:
        # Wrong indices of what no output depends on go unnoticed.
        with np.errstate(all="ignore"):
            expected = evaluate(needed(made.formed), inputs, known)
    assert (expected is None) == bool(fault), f"fault {fault} with {sizes}"
    if expected is None:
        return False
    for name, dims in program.dims.items():
        shape = tuple(max(value(d.high, sizes) - value(d.low, sizes), 0) for d in dims)
        declared = tuple(max(size_value(s, sizes), 0) for s in checked.tensors[name].shape)
        shapes = (shape, declared, expected[name].shape)
        assert shapes == (found[name].shape,) * 3, (
            f"{name} is {found[name].shape}, not {shapes}"
        )
    assert_equal(checked, found, expected)
    return True


def needed(checked: CheckedDef) -> CheckedDef:
    """A definition without the statements and lets that its outputs do not depend on."""
    wanted, kept = set(checked.outputs), list[Comprehension]()
    for statement in reversed(checked.definition.body):
        if statement.tensor not in wanted:
            continue
        used, lets = _names(statement.value), []
        for let in reversed(statement.lets):
            if let.name in used:
                lets.insert(0, let)
                used |= _names(let.value)
        wanted |= used
        kept.insert(0, replace(statement, lets=tuple(lets)))
    definition = replace(checked.definition, body=tuple(kept))
    return check(definition, sizes=checked.sizes)


def _names(expr: Expr) -> set[str]:
    found = {node.name for node in walk(expr) if isinstance(node, Var)}
    return found | {node.tensor for node in walk(expr) if isinstance(node, Access)}


def run(programs: Sequence[Program], build: Build, folder: Path, summary: Summary) -> None:
    """Compile programs together and compare each.

    Args:
        programs: Some programs.
        build: Makes kernels that can be called of them.
        folder: For what is built.
        summary: Is told what became of them.
    """
    made: list[tuple[int, Program, Ready]] = []
    for program in programs:
        summary.programs += 1
        try:
            check_text(program.text)
            made.append((summary.programs, program, ready(program.text, f"k{len(made)}")))
        except (TcError, UnsupportedError) as error:
            summary.refused[_reason(error)] += 1
        except Exception:
            summary.wrong.append(f"{traceback.format_exc()}\n{program.text}")
    kernels = _built([one for _, _, one in made], build, folder)
    for (n, program, one), kernel in zip(made, kernels, strict=True):
        if isinstance(kernel, ToolchainError | UnsupportedError):
            summary.wrong.append(f"program {n}: {kernel}\n{program.text}")
            continue
        try:
            try_out(program, one, kernel, summary, n)
        except Exception as error:
            place = traceback.format_exc(limit=-2)
            summary.wrong.append(f"program {n}: {error}\n{place}\n{program.text}")


def _built(
    made: Sequence[Ready], build: Build, folder: Path
) -> Sequence[Kernel | ToolchainError | UnsupportedError]:
    """Every kernel; alone when their compiler does not take all of them."""
    folder.mkdir(exist_ok=True)
    try:
        return build(made, folder)
    except (ToolchainError, UnsupportedError) as error:
        if len(made) == 1:
            return [error]
    half = len(made) // 2
    first = _built(made[:half], build, folder / "first")
    return [*first, *_built(made[half:], build, folder / "second")]


def for_level(level: Level) -> Build:
    """Kernels for this machine's processor."""
    return lambda made, folder: list(build_all(made, level, folder))


def for_emulator(made: Sequence[Ready], folder: Path) -> list[Kernel]:
    """Kernels for GPUs, in the emulator."""
    sources = [cuda_source(one, f"k{k}") for k, one in enumerate(made)]
    return list(emulated(sources))


def for_any_options(made: Sequence[Ready], folder: Path) -> list[Kernel]:
    """The same with random options, on devices of all kinds, with any launches that may be."""
    found = []
    for k, one in enumerate(made):
        rng = random.Random(str(one.form.definition))
        options = random_options(rng), random_cuda_options(rng)
        found.append(cuda_source(one, f"k{k}", options))
    return [AnyLaunch(kernel) for kernel in emulated(found)]


def _reason(error: Exception) -> str:
    """The sentence without what differs between programs."""
    text = error.message if isinstance(error, TcError) else str(error)
    code = f"{error.code} " if isinstance(error, TcError) else ""
    text = re.sub(r"'[^']*'|\b[TX]\d+\w*(\(.*\))?|\b[ijkrs]\b|\d+", "_", text)
    return code + text[:110]


def main(argv: Sequence[str] | None = None) -> int:
    """Run random programs, and print what was not right; 1 when something was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--emulate", action="store_true", help="as CUDA in the emulator")
    parser.add_argument("--options", action="store_true", help="emulated, with random options")
    parser.add_argument("--show", action="store_true", help="print the texts that are refused")
    arguments = parser.parse_args(argv)
    programs = random_programs(arguments.count, arguments.seed)
    summary, started = Summary(), time.monotonic()
    levels = runnable()
    for start in range(0, len(programs), BATCH):
        known = len(summary.wrong)
        with tempfile.TemporaryDirectory() as folder:
            level = levels[start // BATCH % len(levels)]
            build = for_emulator if arguments.emulate else for_level(level)
            build = for_any_options if arguments.options else build
            run(programs[start : start + BATCH], build, Path(folder), summary)
        sys.stdout.write("".join(f"{text}\n" for text in summary.wrong[known:]))
        sys.stdout.write(
            f"{str(summary).splitlines()[0]}, {time.monotonic() - started:.0f} s\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"{summary}\n")
    return int(bool(summary.wrong))


if __name__ == "__main__":
    raise SystemExit(main())
