"""What an entry of wisdom is about: one kernel at certain sizes on one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One kernel at certain sizes on one device.

    Attributes:
        template: Canonical text of the definition; every extent in it is a name, so that the
            same layer at other sizes has the same text.
        sizes: Value of each of those names, in order.
        target: ``cpu`` or ``cuda``.
        device: ``processor()``, or the GPU's name.
        numerics: ``strict``, ``default`` or ``fast``.
        threads: How many work on a call.
    """

    template: str
    sizes: tuple[int, ...]
    target: str
    device: str
    numerics: str
    threads: int


@dataclass(frozen=True, slots=True)
class Entry:
    """The best known knobs of one problem.

    Attributes:
        knobs: What differs from the defaults, by knob: ``{"mapping": {...}, "cuda": {...}}``.
        speedup: Over the kernel with default knobs.
        micros: Microseconds of a call.
        predicted: The numbers come of a model, not of a clock.
        versions: Of tcfuse and of the compiler that made the kernel.
        note: Where it comes from, for people.
    """

    problem: Problem
    knobs: Mapping[str, Mapping[str, object]]
    speedup: float
    micros: float
    predicted: bool
    versions: Mapping[str, str]
    note: str = ""
