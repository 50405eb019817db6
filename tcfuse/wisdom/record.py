"""Entries of wisdom from JSON that anybody may have written: every field is looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import InputError, OptionError
from tcfuse.knob import knobs_of
from tcfuse.options import NUMERICS, TARGETS, MappingOptions
from tcfuse.wisdom.problem import Entry, Problem

MOST_TEXT = 200_000  # characters of a template
MOST_LINE = 400  # characters of what is shown on a line
MOST_SIZES = 512
LARGEST_SIZE = 1 << 48
MOST_THREADS = 4096

_KNOBS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "mapping": MappingOptions.of,
    "cuda": lambda values: cuda_options(values),
}


def entry_of(record: object) -> Entry:
    """The entry that ``Entry.to_record`` wrote.

    Raises:
        InputError: It is none: a field is missing, is not known or has a value that it may
            not have.
    """
    fields = _object(record, "entry", Entry.__dataclass_fields__)
    return Entry(
        _problem(fields["problem"]),
        _knobs(fields["knobs"]),
        _number(fields["speedup"], "speedup", 1e6),
        _number(fields["micros"], "micros", 1e15),
        _flag(fields["predicted"], "predicted"),
        _versions(fields["versions"]),
        _line(fields["note"], "note"),
    )


def cuda_options(values: Mapping[str, Any]) -> CudaOptions:
    """The knobs of a kernel for GPUs that ``values`` sets.

    Raises:
        OptionError: A name or a value is not known.
    """
    known = [name for name, _ in knobs_of(CudaOptions)]
    for name in values:
        if name not in known:
            raise OptionError(f"no knob {name!r} of cuda; knobs are {', '.join(known)}")
    return CudaOptions(**values)


def _problem(record: object) -> Problem:
    fields = _object(record, "problem", Problem.__dataclass_fields__)
    sizes = fields["sizes"]
    if not isinstance(sizes, list) or len(sizes) > MOST_SIZES:
        raise InputError(f"sizes is no list of at most {MOST_SIZES} numbers")
    template = fields["template"]
    if not isinstance(template, str) or not 0 < len(template) <= MOST_TEXT:
        raise InputError(f"template is no text of at most {MOST_TEXT} characters")
    if not template.replace("\n", "").isprintable():
        raise InputError("template has characters that are none of a text")
    return Problem(
        template,
        tuple(_integer(size, "a size", LARGEST_SIZE) for size in sizes),
        _among(fields["target"], "target", TARGETS),
        _line(fields["device"], "device"),
        _among(fields["numerics"], "numerics", NUMERICS),
        _integer(fields["threads"], "threads", MOST_THREADS),
    )


def _knobs(record: object) -> dict[str, dict[str, object]]:
    if not isinstance(record, dict) or not record.keys() <= _KNOBS.keys():
        raise InputError(f"knobs is no object of {', '.join(_KNOBS)}")
    for kind, values in record.items():
        if not isinstance(values, dict):
            raise InputError(f"knobs of {kind} is no object")
        if "numerics" in values:
            raise InputError("numerics is the run's, and no knob of an entry")
        try:
            _KNOBS[kind](values)
        except (OptionError, TypeError, OverflowError) as error:
            raise InputError(str(error)) from None
    return record


def _versions(record: object) -> dict[str, str]:
    if not isinstance(record, dict) or len(record) > len(TARGETS) * 8:
        raise InputError("versions is no object of a few texts")
    return {_line(name, "a name"): _line(text, "a version") for name, text in record.items()}


def _object(record: object, what: str, names: Mapping[str, object]) -> dict[str, Any]:
    """``record``, which has those fields and no others."""
    if not isinstance(record, dict):
        raise InputError(f"{what} is no object")
    for name in names:
        if name not in record:
            raise InputError(f"{what} has no {name}")
    for name in record:
        if name not in names:
            raise InputError(f"{what} has {_shown(name)}, which is not known")
    return record


def _number(value: object, what: str, largest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{what} is {_shown(value)}, which is no number")
    if not 0 < value <= largest:  # which NaN is not either
        raise InputError(f"{what} is {_shown(value)}; it may be more than 0 to {largest:g}")
    return float(value)


def _integer(value: object, what: str, largest: int) -> int:
    if type(value) is not int or not 0 <= value <= largest:
        raise InputError(f"{what} is {_shown(value)}; it may be 0 to {largest}")
    return value


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{what} is {_shown(value)}, which is neither true nor false")
    return value


def _line(value: object, what: str) -> str:
    """A text that may be shown on a terminal."""
    if not isinstance(value, str) or len(value) > MOST_LINE or not value.isprintable():
        raise InputError(f"{what} is no line of at most {MOST_LINE} characters")
    return value


def _among(value: object, what: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InputError(f"{what} is {_shown(value)}; it may be {', '.join(known)}")
    return str(value)


def _shown(value: object) -> str:
    """``value`` in a message: short, and nothing that a terminal acts on."""
    text = ascii(value) if not isinstance(value, dict | list) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
