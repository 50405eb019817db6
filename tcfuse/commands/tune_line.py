"""The command line of ``tcfuse tune``."""

from __future__ import annotations

import logging
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tcfuse import debug
from tcfuse.commands.examples import examples
from tcfuse.commands.knobs import with_knobs
from tcfuse.commands.models import Dim, InputShapes, Layout, Numerics, Quiet, Verbose
from tcfuse.cuda_options import CudaOptions
from tcfuse.mapping_options import MappingOptions

Subject = Annotated[
    Path, typer.Argument(metavar="MODEL|FILE.tc", help="Whose kernels are tuned.")
]
TimeBudget = Annotated[str, typer.Option(metavar="90s|5m|1h", help="For all kernels together.")]
Population = Annotated[int | None, typer.Option(min=2, help="Candidates of a generation.")]
Generations = Annotated[int | None, typer.Option(min=1, help="At most so many of each kernel.")]
Seed = Annotated[int, typer.Option(min=0, help="Of random numbers.")]
Sampler = Annotated[
    str, typer.Option(metavar="genetic|random|optuna", help="How candidates are chosen.")
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="REGION", help="A kernel: its name, a beginning, or a number; repeatable."
    ),
]
WisdomFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE.json", help="Also keep what is found there."),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE.html|.svg|.json", help="Write how it went there."),
]
Again = Annotated[bool, typer.Option("--again", help="Tune also what was tuned before.")]
Workers = Annotated[int, typer.Option(min=1, help="Candidates measured at once.")]
Scheduler = Annotated[
    str,
    typer.Option(metavar="ADDRESS", help="Measure on the workers of dask.distributed."),
]
Threads = Annotated[int, typer.Option(min=1, help="Threads of a kernel's call.")]
Target = Annotated[
    str, typer.Option(metavar="cpu|cuda|cpu,cuda", help="Whose kernels are tuned.")
]
Size = Annotated[
    list[str] | None,
    typer.Option(metavar="N=8", help="A size of FILE.tc; repeatable."),
]
Gate = Annotated[
    bool, typer.Option(help="Optimize the model first, to see which form of it is kept.")
]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    epilog = examples(
        "tcfuse tune model.onnx",
        "tcfuse tune model.onnx --time-budget 1h --workers 2 --report tuned.html",
        "tcfuse tune bert.onnx --dim batch=8 --dim seq=128 --wisdom bert.json",
        "tcfuse tune model.onnx --only div_add_softmax --sampler random --seed 1",
        "tcfuse tune layers.tc --size N=1024 --time-budget 30s",
    )
    app.command(epilog=epilog)(with_knobs(tune))


def tune(
    model: Subject,
    time_budget: TimeBudget = "5m",
    population: Population = None,
    generations: Generations = None,
    seed: Seed = 0,
    sampler: Sampler = "genetic",
    only: Only = None,
    wisdom: WisdomFile = None,
    report: Report = None,
    again: Again = False,
    workers: Workers = 1,
    scheduler: Scheduler = "",
    threads: Threads = 1,
    target: Target = "cpu",
    size: Size = None,
    dim: Dim = None,
    input_shapes: InputShapes = None,
    layout: Layout = "auto",
    numerics: Numerics = "default",
    gate: Gate = True,
    verbose: Verbose = 0,
    quiet: Quiet = False,
    *,
    mapping: MappingOptions,
    cuda: CudaOptions,
) -> int:
    """Look for faster kernels by measuring; later runs of tcfuse optimize use them."""
    from tcfuse.commands.tune import Sizes, Wanted, run
    from tcfuse.tuning.campaign import Search

    level = {0: debug.current().log, 1: "info"}.get(verbose, "debug")
    if level is not None:
        form = "%(levelname).1s %(name)s: %(message)s"
        logging.basicConfig(level=level.upper(), format=form, stream=sys.stderr)
    chosen = {"population": population, "generations": generations}
    numbers = {name: value for name, value in chosen.items() if value is not None}
    search = Search(sampler, seed=seed, forced=_forced(mapping, cuda), **numbers)
    options = {"target": target, "layout": layout, "numerics": numerics, "gate": gate}
    wanted = Wanted(model, time_budget, tuple(only or ()), wisdom, report, again, quiet)
    sizes = Sizes(tuple(size or ()), tuple(dim or ()), tuple(input_shapes or ()))
    return run(wanted, search, sizes, options, (threads, workers, scheduler))


def _forced(mapping: MappingOptions, cuda: CudaOptions) -> dict[str, Any]:
    """The knobs that flags set, which are not searched; those of GPUs begin with ``cuda_``."""
    found = _differing(mapping, MappingOptions())
    found.pop("numerics", None)
    gpu = _differing(cuda, CudaOptions())
    return found | {f"cuda_{name}": value for name, value in gpu.items()}


def _differing(options: Any, usual: Any) -> dict[str, Any]:
    default = asdict(usual)
    return {name: v for name, v in asdict(options).items() if v != default[name]}
