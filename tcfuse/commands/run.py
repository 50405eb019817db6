"""``tcfuse run``: one definition on arrays from files, at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from tcfuse.commands.array_files import read_arrays, targets_of, write_outputs
from tcfuse.commands.progress import print_lines, print_table, progress
from tcfuse.commands.tc_file import chosen, definitions_of, warn
from tcfuse.layers.compiling import Settings
from tcfuse.layers.layer import Layer
from tcfuse.layers.sample import error_of, run_on
from tcfuse.mapping_options import MappingOptions
from tcfuse.options import parse_sizes
from tcfuse.tc.checked import CheckedDef

BLOCK_SECONDS = 0.02
ROUNDS = 15
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Order:
    """What is run on what."""

    file: Path
    function: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: tuple[str, ...]
    seed: int


def run(
    order: Order,
    mapping: MappingOptions,
    threads: int,
    asked: tuple[bool, bool],
    *,
    quiet: bool,
) -> int:
    """Run, write or print the outputs; the exit status.

    Args:
        order: What and on what.
        mapping: Knobs of the kernel.
        threads: How many to use.
        asked: Whether to time it, and whether to compare it with the definition.
        quiet: Print no more than what was asked for.
    """
    sizes = parse_sizes("--size", order.sizes)
    checked = chosen(definitions_of(order.file, sizes, mapping), order.function)
    files = targets_of(order.outputs, checked.outputs)
    given = read_arrays(order.inputs, checked, order.seed)
    if not quiet:
        warn([checked])
    layer = Layer(checked, Settings(mapping, threads, quiet=True, sizes=sizes))
    with progress(quiet) as show:
        show(f"compiling {layer.__name__}")
        layer.compile()
        show(f"running {layer.__name__}")
        outputs = run_on(layer, given)
        write_outputs(files, outputs)
        lines: list[str] = []
        if asked[0]:
            lines.append(f"{layer.__name__}: {timed(layer, given)}")
        if asked[1]:
            lines += compared(checked, given, outputs)
    if not files and not quiet:
        print_table(("output", "type", "shape", "least", "largest", "mean", ""), rows(outputs))
    print_lines(lines)
    return 0


def timed(layer: Layer, given: Arrays) -> str:
    """The median time of a call, in words."""
    outputs = tuple(run_on(layer, given).values())
    inputs = [given[name] for name in layer.checked.inputs]

    def once() -> None:
        layer(*inputs, out=outputs)

    times = list(_rounds(once))
    low, high = np.percentile(times, [25, 75])
    middle = median(times)
    return f"{middle * 1e6:.1f} us a call, spread {(high - low) / middle:.0%}"


def _rounds(once: Callable[[], None]) -> Iterator[float]:
    """Seconds a call, one for each round."""
    start = time.perf_counter()
    once()
    count = max(1, int(BLOCK_SECONDS / max(time.perf_counter() - start, 1e-6)))
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(count):
            once()
        yield (time.perf_counter() - start) / count


def compared(checked: CheckedDef, given: Arrays, outputs: Arrays) -> list[str]:
    """The largest error of each output against the definition in float64."""
    from tcfuse.tc.evaluate import evaluate

    exact = evaluate(checked, given)
    return [
        f"{name}: largest error {error_of(found, exact[name]):.2e} of the largest value"
        for name, found in outputs.items()
    ]


def rows(outputs: Arrays) -> Iterator[Sequence[str]]:
    """A summary of each output."""
    for name, array in outputs.items():
        shape = " x ".join(map(str, array.shape)) or "scalar"
        numbers = ["-", "-", "-"]
        if array.size:
            wide = array.astype(np.float64)
            numbers = [f"{value:.6g}" for value in (wide.min(), wide.max(), wide.mean())]
        yield (name, str(array.dtype), shape, *numbers, "")
