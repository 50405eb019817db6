"""The flags that the knobs of a kernel give to a command.

``with_knobs`` adds one flag for each field of ``MappingOptions``, ``--mapping FILE.json`` for
all at once, and ``--help-knobs``; the command gets the result as its argument ``mapping``.  A
command with an argument ``cuda`` gets ``CudaOptions`` there, whose flags begin with
``--cuda-``.  The flags are not in ``--help``, which they would make unreadable.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import OptionError
from tcfuse.knob import Knob, flag_of, knobs_of
from tcfuse.mapping_options import MappingOptions
from tcfuse.store import read_text

FILE = "mapping"
CUDA = "cuda"
HELP = "help_knobs"

Options = TypeVar("Options", MappingOptions, CudaOptions)


def with_knobs(command: Callable[..., int]) -> Callable[..., int]:
    """``command`` with flags in place of its keyword arguments ``mapping`` and ``cuda``.

    A flag that the command has already under a knob's name is left to it.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.name not in (FILE, CUDA)]
    taken = {p.name for p in own}
    knobs = {n: k for n, k in knobs_of(MappingOptions) if n not in taken}
    on_gpus = {}
    if CUDA in signature.parameters:
        on_gpus = {f"{CUDA}_{n}": k for n, k in knobs_of(CudaOptions)}

    @wraps(command)
    def called(**arguments: Any) -> int:
        arguments.pop(HELP)
        texts = {name: arguments.pop(name) for name in knobs}
        cuda = {name: arguments.pop(name) for name in on_gpus}
        chosen = mapping_of(arguments.pop(FILE), texts)
        if on_gpus:
            arguments[CUDA] = _changed(CudaOptions(), on_gpus, cuda)
        return command(**arguments, mapping=chosen)

    every = {**dict(knobs_of(MappingOptions)), **on_gpus}
    flags = {**knobs, **on_gpus}
    added = [_parameter(FILE, _FILE), _parameter(HELP, _help(every))]
    added += [_parameter(name, _flag(name, known)) for name, known in flags.items()]
    whole = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *added)]
    called.__signature__ = signature.replace(parameters=whole)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in whole} | {"return": int}
    return called


def mapping_of(file: Path | None, texts: Mapping[str, Any]) -> MappingOptions:
    """The knobs of a file, where there is one, with those that flags set in their place.

    Args:
        file: JSON of ``MappingOptions``.
        texts: For each knob what its flag says; ``None`` when it was not given.

    Raises:
        InputError: The file cannot be read.
        OptionError: A name or a value is not known.
    """
    start = MappingOptions() if file is None else _read(file)
    return _changed(start, dict(knobs_of(MappingOptions)), texts)


def _changed(start: Options, known: Mapping[str, Knob], texts: Mapping[str, Any]) -> Options:
    """``start`` with the knobs that flags set; a flag is named after its knob, at the end."""
    fields = {name: name for name, _ in knobs_of(type(start))}
    fields |= {f"{CUDA}_{name}": name for name in fields}
    chosen: dict[str, Any] = {}
    for name, text in texts.items():
        if text is None:
            continue
        try:
            value = known[name].parsed(text) if isinstance(text, str) else text
            chosen[fields[name]] = value
        except (KeyError, ValueError):
            flag = flag_of(name, known[name])
            raise OptionError(f"{flag} {text}: it may be {known[name].legal}") from None
    return replace(start, **chosen)


def _read(file: Path) -> MappingOptions:
    text = read_text(file)
    try:
        return MappingOptions.from_json(text)
    except OptionError as error:
        raise OptionError(f"{file}: {error}") from None


def _parameter(name: str, annotation: object) -> inspect.Parameter:
    default = False if name == HELP else None
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _flag(name: str, known: Knob) -> object:
    kind = bool if isinstance(known.default, bool) else str
    option = typer.Option(
        flag_of(name, known), metavar=known.unit.upper(), help=known.doc, hidden=True
    )
    return Annotated[kind | None, option]


def _help(knobs: Mapping[str, Knob]) -> object:
    """The flag that shows the others."""

    def show(wanted: bool) -> None:
        if not wanted:
            return
        print("Knobs, which change the code of kernels and never their results:\n")
        for name, known in knobs.items():
            print(f"  {flag_of(name, known)}\n      {known.doc} [{known.shown(known.default)}]")
            print(f"      {known.legal}")
        raise typer.Exit

    option = typer.Option(
        "--help-knobs", callback=show, is_eager=True, help="Show the knobs' flags."
    )
    return Annotated[bool, option]


_FILE = Annotated[
    Path | None,
    typer.Option("--mapping", metavar="FILE.json", help="Knobs of every kernel, as JSON."),
]
