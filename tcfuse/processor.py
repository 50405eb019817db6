"""Which processor measurements belong to."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

FIELDS = ("model name", "cpu family", "model", "stepping", "cache size")
"""Virtual machines often give processors of several generations one name."""


@functools.cache
def processor() -> str:
    """The processor's name, generation and number of cores."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    return describe(text) or platform.processor() or platform.machine()


def describe(cpuinfo: str) -> str:
    """What tells processors apart in the text of ``/proc/cpuinfo``; empty if nothing does."""
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    entries = [(name.strip(), value.strip()) for name, _, value in lines]
    n_cores = sum(name == "model name" for name, _ in entries)
    first = dict(reversed(entries))
    found = [first[field] for field in FIELDS if field in first]
    return ", ".join([*found, f"{n_cores} cores"]) if found else ""
