"""The command line: argv to exit status; parses, calls a command, prints its error.

Heavy modules are imported by the command that needs them, so that ``--help`` is instant.

Exit status: 0 done, 1 the input is at fault, 2 the command line is, 3 verification failed,
4 ``--require-gain`` and there is none, 130 interrupted.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from tcfuse import debug
from tcfuse.commands import own_layers, tc_texts
from tcfuse.commands.examples import examples
from tcfuse.commands.knobs import with_knobs
from tcfuse.errors import OptionError, TcError, TcfuseError, VerificationError
from tcfuse.options import MappingOptions

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]  # click's UsageError
NO_GAIN = 4

app = typer.Typer(
    name="tcfuse",
    help="Fuse the many small operators of an ONNX model into compiled kernels that plain "
    "onnxruntime runs.  Every command also takes --traceback, which shows where an error came "
    "from.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cache = typer.Typer(help="Show or delete what runs keep for later ones.", no_args_is_help=True)
app.add_typer(cache, name="cache")

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX model.")]
Optimized = Annotated[
    Path, typer.Argument(metavar="OUT.onnx", help="A model that tcfuse optimize wrote.")
]
Dim = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="N=8", help="Size of a name in measurements; repeatable."),
]
InputShapes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="x:1,3,224,224", help="Shape of an input in measurements; repeatable."
    ),
]
Numerics = Annotated[
    str, typer.Option(metavar="strict|default|fast", help="How close to the original to stay.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors.")]
Verbose = Annotated[
    int, typer.Option("-v", "--verbose", count=True, help="Show the log; -vv shows more.")
]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"tcfuse {version('tcfuse')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass


@app.command(
    epilog=examples(
        "tcfuse optimize model.onnx",
        "tcfuse optimize bert.onnx -o fast.onnx --dim batch=8 --dim seq=128",
        "tcfuse optimize net.onnx --input-shapes x:1,3,224,224 --report-json report.json",
        "tcfuse optimize net.onnx --fusion max --tile 32,128",
    )
)
@with_knobs
def optimize(
    model: Model,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUT.onnx", help="Default: MODEL.tcfuse.onnx."),
    ] = None,
    target: Annotated[str, typer.Option(metavar="cpu", help="Machine to compile for.")] = "cpu",
    gate: Annotated[bool, typer.Option(help="Give back what does not pay.")] = True,
    verify: Annotated[bool, typer.Option(help="Run kernels against the original.")] = True,
    dim: Dim = None,
    input_shapes: InputShapes = None,
    numerics: Annotated[
        str | None,
        typer.Option(metavar="strict|default|fast", help="How close to the original to stay."),
    ] = None,
    require_gain: Annotated[
        bool, typer.Option("--require-gain", help="Exit with status 4 unless something won.")
    ] = False,
    report_json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the report there.")
    ] = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
    *,
    mapping: MappingOptions,
) -> int:
    """Write a faster model: OUT.onnx, OUT.so with its kernels, OUT.tcfuse.json about them."""
    from tcfuse.commands.optimize import Order, run

    _log(verbose)
    order = Order(model, output, require_gain, report_json, quiet)
    options = {"target": target, "gate": gate, "verify": verify, "mapping": mapping}
    if numerics is not None:
        options["numerics"] = numerics
    return run(order, options, dim or [], input_shapes or [])


@app.command(epilog=examples("tcfuse explain model.onnx", "tcfuse explain model.onnx -v"))
def explain(model: Model, numerics: Numerics = "default", verbose: Verbose = 0) -> int:
    """Say what each region is, and why each other node was left alone."""
    from tcfuse.commands.explain import run

    _log(verbose)
    return run(model, numerics)


@app.command(epilog=examples("tcfuse verify model.tcfuse.onnx"))
def verify(model: Optimized, verbose: Verbose = 0, quiet: Quiet = False) -> int:
    """Run every kernel of an optimized model against the original operators, here and now."""
    from tcfuse.commands.verify import run

    _log(verbose)
    return run(model, quiet)


@app.command(
    epilog=examples(
        "tcfuse bench model.tcfuse.onnx",
        "tcfuse bench fast.onnx --vs model.onnx --threads 2 --dim batch=8",
    )
)
def bench(
    model: Optimized,
    vs: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Default: the original operators inside OUT.onnx."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of ONNX Runtime.")] = 1,
    rounds: Annotated[int, typer.Option(min=3, help="Paired measurements.")] = 15,
    dim: Dim = None,
    input_shapes: InputShapes = None,
) -> int:
    """Time an optimized model against its original: paired, interleaved, medians."""
    from tcfuse.commands.bench import run

    return run(model, vs, threads, rounds, dim or [], input_shapes or [])


@app.command(
    epilog=examples(
        "tcfuse show --stage proof layers.tc --kernel softmax",
        "tcfuse show --stage source --kernel softmax_3f2a91c0 model.tcfuse.onnx",
    )
)
def show(
    model: Annotated[Path, typer.Argument(metavar="OUT.onnx|FILE.tc", help="Whose kernels.")],
    stage: Annotated[
        str, typer.Option(metavar="tc|tree|mapped|source|proof", help="What to print.")
    ] = "tc",
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="Default: every kernel.")
    ] = None,
) -> int:
    """Print a kernel as text: its formula, schedule tree, mapping or source."""
    from tcfuse.commands.show import run

    return run(model, stage, kernel)


@app.command(epilog=examples("tcfuse ops", "tcfuse ops --new Mish"))
def ops(
    new: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print the stub of a new definition.")
    ] = None,
) -> int:
    """List every ONNX operator that can be fused: name, first opset, kind."""
    from tcfuse.commands.ops import run

    return run(new)


@cache.command("info", epilog=examples("tcfuse cache info"))
def cache_info() -> int:
    """Say where the cache is and how large."""
    from tcfuse.commands.cache import info

    return info()


@cache.command("clear", epilog=examples("tcfuse cache clear"))
def cache_clear() -> int:
    """Delete everything in the cache."""
    from tcfuse.commands.cache import clear

    return clear()


@app.command(epilog=examples("tcfuse doctor"))
def doctor() -> int:
    """Check that everything tcfuse needs is here and works."""
    from tcfuse.commands.doctor import run

    return run()


own_layers.add_to(app)
tc_texts.add_to(app)


def _log(verbose: int) -> None:
    """Print the log on standard error when asked to."""
    level = {0: debug.current().log, 1: "info"}.get(verbose, "debug")
    if level is not None:
        logging.basicConfig(
            level=level.upper(),
            format="%(levelname).1s %(name)s: %(message)s",
            stream=sys.stderr,
        )


def _terminated(signum: int, frame: FrameType | None) -> NoReturn:
    del signum, frame
    raise SystemExit(143)  # unwinds, so temporary files go


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    traceback = "--traceback" in arguments
    arguments = [argument for argument in arguments if argument != "--traceback"]
    if argv is None:
        signal.signal(signal.SIGTERM, _terminated)
    try:
        debug.current()
        if not arguments:
            app(["--help"], standalone_mode=False, prog_name="tcfuse")
            return 2
        status = app(arguments, standalone_mode=False, prog_name="tcfuse")
    except Exception as error:
        if traceback:
            raise
        return _complain(error)
    except KeyboardInterrupt:
        return 130
    return status if isinstance(status, int) else 0


def _complain(error: Exception) -> int:
    """One line on standard error, and the exit status that goes with it."""
    status = 1
    text = str(error)
    if isinstance(error, typer.Abort):
        return 130
    if isinstance(error, BrokenPipeError):  # the reader has seen enough
        sys.stderr.close()
        return 0
    if isinstance(error, USAGE_ERROR):
        status = 2
        message = error.format_message() if hasattr(error, "format_message") else text
        text = f"{message.rstrip('.')}; see tcfuse --help"
    elif isinstance(error, OptionError):
        status = 2
    elif isinstance(error, TcError) and error.span is not None:
        print(error, file=sys.stderr)  # with the place it speaks of
        return status
    elif isinstance(error, VerificationError):
        status = 3
    elif isinstance(error, MemoryError):
        text = "out of memory"
    elif not isinstance(error, TcfuseError):
        text = f"internal error: {type(error).__name__}: {error} (--traceback shows where)"
    print("error:", " ".join(text.split()), file=sys.stderr)
    return status
