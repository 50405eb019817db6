"""``tcfuse bench``: an optimized model against its original, paired."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from tcfuse.commands.progress import print_table, progress
from tcfuse.errors import InputError
from tcfuse.graph.load import load_model
from tcfuse.options import parse_shapes, parse_sizes
from tcfuse.ort.inference import open_session, ort_errors
from tcfuse.ort.manifest import library_path
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses
from tcfuse.ort.timing import Ratio, bind, interleave

LOADS = 3  # sessions the rounds are spread over: where memory lies is worth some percent


def run(
    path: Path,
    vs: Path | None,
    threads: int,
    rounds: int,
    dims: list[str],
    input_shapes: list[str],
) -> int:
    """Print the table; the exit status."""
    for file in filter(None, (path, vs)):
        if not file.is_file():
            raise InputError(f"{file}: no such file")
    wishes = Wishes(parse_sizes("--dim", dims), parse_shapes(input_shapes))
    model = load_model(path)
    original = model if vs is None else load_model(vs)
    wishes.check(original)
    library = library_path(path)
    with progress() as show:
        show("measuring")
        kernels = library if library.is_file() else None
        ratio, shapes = measure((original, model), kernels, wishes, threads, rounds)
    clock = "CPU time" if threads == 1 else "wall time"
    sizes = " ".join(f"{name}:{','.join(map(str, s))}" for name, s in shapes.items())
    print_table(
        ("original us", "optimized us", "speedup", "spread", "how"),
        [
            (
                f"{ratio.before_us:.1f}",
                f"{ratio.after_us:.1f}",
                f"{ratio.value:.3f}",
                f"{ratio.spread:.0%}",
                f"{threads} threads, {clock}, median of {rounds} rounds, {sizes}",
            )
        ],
    )
    return 0


def measure(
    contenders: tuple[ir.Model, ir.Model],
    library: Path | None,
    wishes: Wishes,
    threads: int,
    rounds: int,
) -> tuple[Ratio, dict[str, tuple[int, ...]]]:
    """The speedup, and the input shapes it was measured with.

    Raises:
        InputError: The original does not run on any input we can think of.
    """
    original, model = contenders
    why = "it has an input that is not a tensor"
    for shapes in shape_guesses(original, wishes):
        inputs = model_feeds(original, shapes)
        before: list[float] = []
        after: list[float] = []
        try:
            for load in range(LOADS):
                calls = {
                    "before": bind(open_session(original, threads=threads), inputs),
                    "after": bind(open_session(model, library, threads=threads), inputs),
                }
                times = interleave(calls, (rounds + load) // LOADS, threads)
                before += times["before"]
                after += times["after"]
        except ort_errors() as error:
            why = " ".join(str(error).split())[:150]
            continue
        return Ratio.paired(before, after), shapes
    raise InputError(f"the model does not run on made-up inputs; try --input-shapes: {why}")
