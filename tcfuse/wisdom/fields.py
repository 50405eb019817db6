"""Fields of JSON that anybody may have written: each has its type and bounds, or is refused.

Every function returns the value, and raises ``InputError`` with a line that nothing in it can
make a terminal act on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tcfuse.errors import InputError

MOST_LINE = 400  # characters of what is shown on a line
MOST_VERSIONS = 16


def object_of(record: object, what: str, names: Iterable[str]) -> dict[str, Any]:
    """``record``, which has those fields and no others."""
    if not isinstance(record, dict):
        raise InputError(f"{what} is no object")
    wanted = list(names)
    for name in wanted:
        if name not in record:
            raise InputError(f"{what} has no {name}")
    for name in record:
        if name not in wanted:
            raise InputError(f"{what} has {shown(name)}, which is not known")
    return record


def number(value: object, what: str, largest: float, *, zero: bool = False) -> float:
    """A number above 0, or from 0 on where ``zero`` may be."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{what} is {shown(value)}, which is no number")
    if not (0 < value <= largest or (zero and value == 0)):  # NaN is neither
        least = "0" if zero else "more than 0"
        raise InputError(f"{what} is {shown(value)}; it may be {least} to {largest:g}")
    return float(value)


def integer(value: object, what: str, largest: int) -> int:
    """A whole number from 0 on."""
    if type(value) is not int or not 0 <= value <= largest:
        raise InputError(f"{what} is {shown(value)}; it may be 0 to {largest}")
    return value


def flag(value: object, what: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputError(f"{what} is {shown(value)}, which is neither true nor false")
    return value


def line(value: object, what: str) -> str:
    """A text that may be shown on a terminal."""
    if not isinstance(value, str) or len(value) > MOST_LINE or not value.isprintable():
        raise InputError(f"{what} is no line of at most {MOST_LINE} characters")
    return value


def among(value: object, what: str, known: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in known:
        raise InputError(f"{what} is {shown(value)}; it may be {', '.join(known)}")
    return str(value)


def versions_of(record: object) -> dict[str, str]:
    """Versions by what they are of."""
    if not isinstance(record, dict) or len(record) > MOST_VERSIONS:
        raise InputError(f"versions is no object of at most {MOST_VERSIONS} texts")
    return {line(name, "a name"): line(text, "a version") for name, text in record.items()}


def shown(value: object) -> str:
    """``value`` in a message: short, and nothing that a terminal acts on."""
    text = ascii(value) if not isinstance(value, dict | list) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
