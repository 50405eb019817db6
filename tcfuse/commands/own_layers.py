"""The command lines of ``tcfuse build``, ``tcfuse run`` and ``tcfuse compile``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcfuse.commands.examples import examples
from tcfuse.commands.knobs import with_knobs
from tcfuse.commands.profiling import profiled
from tcfuse.cuda_options import CudaOptions
from tcfuse.mapping_options import MappingOptions
from tcfuse.profile import phase

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE.tc",
        help="Tensor Comprehensions; - is standard input.",
        allow_dash=True,
    ),
]
Size = Annotated[
    list[str] | None,
    typer.Option("--size", metavar="N=8", help="Fix a size to a number; repeatable."),
]
Profile = Annotated[
    bool, typer.Option("--profile", help="Also print where the time went, phase by phase.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors.")]
Numerics = Annotated[
    str | None,
    typer.Option(metavar="strict|default|fast", help="How freely to round and reorder."),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    epilog = examples(
        "tcfuse build layers.tc -o layers",
        "tcfuse build layers.tc -f softmax --domain my.domain --prefix My",
    )
    app.command(epilog=epilog)(with_knobs(build))
    epilog = examples(
        "tcfuse run layers.tc -f softmax -i X=x.npy -o Y=y.npy",
        "tcfuse run layers.tc -f softmax -i X=random:128,1000 --time --compare",
    )
    app.command(epilog=epilog)(with_knobs(run))
    epilog = examples(
        "tcfuse compile layers.tc -f softmax --target cuda",
        "tcfuse compile layers.tc -f softmax --size N=64 --size K=1000 --emulate --counters",
    )
    app.command("compile", epilog=epilog)(with_knobs(compile_))


def build(
    file: File,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUT", help="Default: FILE without .tc."),
    ] = None,
    function: Annotated[
        list[str] | None,
        typer.Option("-f", "--function", metavar="NAME", help="Only this one; repeatable."),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(metavar="DOMAIN", help="Of the operators; default: tcfuse.OUT."),
    ] = None,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="What stands before each operator's name.")
    ] = "",
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="Another name for an operator; repeatable."),
    ] = None,
    size: Size = None,
    numerics: Numerics = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave out what cannot be compiled.")
    ] = False,
    verify: Annotated[
        bool, typer.Option(help="Run every kernel beside its definition.")
    ] = True,
    quiet: Quiet = False,
    *,
    mapping: MappingOptions,
) -> int:
    """Write a library of ONNX operators: OUT.so, OUT.md about it, OUT/NAME.onnx for each."""
    from tcfuse.commands.build import Order
    from tcfuse.commands.build import run as run_build

    order = Order(file, output, tuple(function or ()), tuple(size or ()), quiet)
    naming = (domain, prefix, tuple(name or ()))
    switches = (keep_going, verify)
    return run_build(order, naming, with_numerics(mapping, numerics), switches)


def run(
    file: File,
    function: Annotated[
        str | None,
        typer.Option("-f", "--function", metavar="NAME", help="Default: the only one."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "-i",
            "--input",
            metavar="X=x.npy",
            help="A file, an archive (X=all.npz:x), a number, or random:4,8; "
            "all.npz alone gives every input.",
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "-o", "--output", metavar="Y=y.npy", help="Where an output goes; all.npz: all."
        ),
    ] = None,
    size: Size = None,
    numerics: Numerics = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads to use.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of random inputs.")] = 0,
    time: Annotated[bool, typer.Option("--time", help="Print the median time of a call.")] = (
        False
    ),
    compare: Annotated[
        bool, typer.Option("--compare", help="Check against the definition in float64.")
    ] = False,
    quiet: Quiet = False,
    *,
    mapping: MappingOptions,
) -> int:
    """Run one definition on arrays, at once."""
    from tcfuse.commands.run import Order
    from tcfuse.commands.run import run as run_once

    order = Order(
        file, function, tuple(inputs or ()), tuple(outputs or ()), tuple(size or ()), seed
    )
    return run_once(
        order, with_numerics(mapping, numerics), threads, (time, compare), quiet=quiet
    )


def compile_(
    file: File,
    function: Annotated[
        str | None,
        typer.Option("-f", "--function", metavar="NAME", help="Default: the only one."),
    ] = None,
    target: Annotated[
        str, typer.Option(metavar="cpu|cuda", help="Machine to compile for.")
    ] = "cuda",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where the text goes."),
    ] = None,
    size: Size = None,
    numerics: Numerics = None,
    emulate: Annotated[
        bool,
        typer.Option("--emulate", help="Run its CUDA on the CPU, every access checked."),
    ] = False,
    counters: Annotated[
        bool, typer.Option("--counters", help="With --emulate: what every access costs.")
    ] = False,
    profile: Profile = False,
    quiet: Quiet = False,
    *,
    mapping: MappingOptions,
    cuda: CudaOptions,
) -> int:
    """Print the code of one definition's kernel, or run it in the emulator."""
    with profiled(profile):
        with phase("start"):
            from tcfuse.commands.compile import Order
            from tcfuse.commands.compile import run as run_compile
        sizes = tuple(size or ())
        order = Order(file, function, sizes, target, output, emulate, counters, quiet)
        return run_compile(order, with_numerics(mapping, numerics), cuda)


def with_numerics(mapping: MappingOptions, numerics: str | None) -> MappingOptions:
    """The knobs with a choice of numerics, if there was one."""
    from dataclasses import replace

    return mapping if numerics is None else replace(mapping, numerics=numerics)
