"""Entries of wisdom from JSON that anybody may have written: every field is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import InputError, OptionError
from tcfuse.knob import knobs_of
from tcfuse.mapping_options import NUMERICS, MappingOptions
from tcfuse.options import TARGETS
from tcfuse.wisdom.fields import among, flag, integer, line, number, object_of, versions_of
from tcfuse.wisdom.problem import Entry, Problem

MOST_TEXT = 200_000  # characters of a template
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
    fields = object_of(record, "entry", Entry.__dataclass_fields__)
    return Entry(
        _problem(fields["problem"]),
        _knobs(fields["knobs"]),
        number(fields["speedup"], "speedup", 1e6),
        number(fields["micros"], "micros", 1e15),
        flag(fields["predicted"], "predicted"),
        versions_of(fields["versions"]),
        line(fields["note"], "note"),
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
    fields = object_of(record, "problem", Problem.__dataclass_fields__)
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
        tuple(integer(size, "a size", LARGEST_SIZE) for size in sizes),
        among(fields["target"], "target", TARGETS),
        line(fields["device"], "device"),
        among(fields["numerics"], "numerics", NUMERICS),
        integer(fields["threads"], "threads", MOST_THREADS),
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
