"""The command line: argv to exit status; parses, calls a command, prints its error.

Heavy modules are imported by the command that needs them, so that ``--help`` is instant.

Exit status: 0 done, 1 the input is at fault, 2 the command line is, 3 verification failed,
4 ``--require-gain`` and there is none, 130 interrupted.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated, NoReturn

import typer

from tcfuse import debug
from tcfuse.commands import models, own_layers, tc_texts, tune_line, wisdom_lines
from tcfuse.commands.examples import examples
from tcfuse.errors import OptionError, TcError, TcfuseError, VerificationError

# Objects between two searches for garbage: hardly any cycle ends before the program does, and
# looking for them would take a fifth of a short run.
COLLECTION = 100_000, 20, 20
USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]  # click's UsageError

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
models.add_to(app)
tune_line.add_to(app)
own_layers.add_to(app)
tc_texts.add_to(app)
wisdom_lines.add_to(app)


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


@app.command(epilog=examples("tcfuse ops", "tcfuse ops --new Mish"))
def ops(
    new: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print the stub of a new definition.")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page of the documentation.")
    ] = False,
) -> int:
    """List every operator that can be fused: opsets, element types, ONNX's cases passed."""
    from tcfuse.commands.ops import run

    return run(new, markdown=markdown)


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


@app.command(epilog=examples("tcfuse calibrate", "tcfuse calibrate --forget"))
def calibrate(
    forgotten: Annotated[
        bool, typer.Option("--forget", help="Plan with the built-in table again.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print nothing but errors.")
    ] = False,
) -> int:
    """Measure this machine in a few seconds; models are then planned with its rates."""
    from tcfuse.commands.calibrate import run

    return run(forgotten=forgotten, quiet=quiet)


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
        gc.set_threshold(*COLLECTION)
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
    finally:
        if argv is None:
            gc.freeze()  # the interpreter ends 0.1 s sooner: it need not look once more
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
