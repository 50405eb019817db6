"""``tcfuse bench``: an optimized model against its original, paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx_ir as ir

from tcfuse.commands.progress import print_table, progress
from tcfuse.errors import InputError, OptionError
from tcfuse.graph.load import load_model
from tcfuse.graph.sealing import unseal
from tcfuse.options import parse_shapes, parse_sizes
from tcfuse.ort.inference import open_session, ort_errors
from tcfuse.ort.manifest import library_path
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses
from tcfuse.ort.timing import Ratio, bind, interleave

LOADS = 3  # sessions the rounds are spread over: where memory lies is worth some percent


@dataclass(frozen=True, slots=True)
class Conditions:
    """How two models are timed.

    Attributes:
        threads: Threads of ONNX Runtime.
        rounds: Paired measurements.
        entries: Session configuration entries of both.
        without: Optimizers of ONNX Runtime that the original does without: some replace
            operators by a kernel that is slower.
    """

    threads: int = 1
    rounds: int = 15
    entries: Mapping[str, str] = field(default_factory=dict)
    without: Sequence[str] = ()

    def __str__(self) -> str:
        clock = "CPU time" if self.threads == 1 else "wall time"
        said = [f"{self.threads} threads, {clock}, median of {self.rounds} rounds"]
        said += [f"{key}={value}" for key, value in self.entries.items()]
        said += [f"the original without {name}" for name in self.without]
        return ", ".join(said)


def parse_entries(texts: Sequence[str]) -> dict[str, str]:
    """``["session.set_denormal_as_zero=1"]`` as a mapping.

    Raises:
        OptionError: An item is not ``KEY=VALUE``.
    """
    pairs = [text.partition("=") for text in texts]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise OptionError(f"--config {key}{equals}{value} is not KEY=VALUE")
    return {key: value for key, _, value in pairs}


def run(
    path: Path,
    vs: Path | None,
    conditions: Conditions,
    dims: list[str],
    input_shapes: list[str],
) -> int:
    """Print the table; the exit status."""
    for file in filter(None, (path, vs)):
        if not file.is_file():
            raise InputError(f"{file}: no such file")
    wishes = Wishes(parse_sizes("--dim", dims), parse_shapes(input_shapes))
    model = load_model(path)
    original = unseal(model) if vs is None else load_model(vs)
    wishes.check(original)
    library = library_path(path)
    with progress() as show:
        show("measuring")
        kernels = library if library.is_file() else None
        ratio, shapes = measure((original, model), kernels, wishes, conditions)
    sizes = " ".join(f"{name}:{','.join(map(str, s))}" for name, s in shapes.items())
    print_table(
        ("original us", "optimized us", "speedup", "spread", "how"),
        [
            (
                f"{ratio.before_us:.1f}",
                f"{ratio.after_us:.1f}",
                f"{ratio.value:.3f}",
                f"{ratio.spread:.0%}",
                f"{conditions}, {sizes}",
            )
        ],
    )
    return 0


def measure(
    contenders: tuple[ir.Model, ir.Model],
    library: Path | None,
    wishes: Wishes,
    conditions: Conditions,
) -> tuple[Ratio, dict[str, tuple[int, ...]]]:
    """The speedup, and the input shapes it was measured with.

    Raises:
        InputError: The original does not run on any input we can think of.
    """
    original, model = contenders
    threads, entries = conditions.threads, conditions.entries
    why = "it has an input that is not a tensor"
    for shapes in shape_guesses(original, wishes):
        inputs = model_feeds(original, shapes)
        before: list[float] = []
        after: list[float] = []
        try:
            for load in range(LOADS):
                stock = open_session(
                    original, threads=threads, settings=entries, without=conditions.without
                )
                fused = open_session(model, library, threads=threads, settings=entries)
                calls = {"before": bind(stock, inputs), "after": bind(fused, inputs)}
                times = interleave(calls, (conditions.rounds + load) // LOADS, threads)
                before += times["before"]
                after += times["after"]
        except ort_errors() as error:
            why = " ".join(str(error).split())[:150]
            continue
        return Ratio.paired(before, after), shapes
    raise InputError(f"the model does not run on made-up inputs; try --input-shapes: {why}")
