"""What an entry of wisdom is about: one kernel at certain sizes on one device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tcfuse.store import key_of

if TYPE_CHECKING:
    from tcfuse.tc.checked import CheckedDef

UNKNOWN = 0
"""The value of a size that nobody said anything about."""

ANY_DEVICE = ""
"""The device of a problem that is posed where there is none: a GPU's kernel without a GPU."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One kernel at certain sizes on one device.

    Attributes:
        template: Canonical text of the definition; every extent in it is a name, so that the
            same layer at other sizes has the same text (``wisdom.template``).
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

    @classmethod
    def of(
        cls,
        checked: CheckedDef,
        sizes: Mapping[str, int],
        target: str,
        device: str,
        numerics: str,
        threads: int = 1,
    ) -> Problem:
        """The problem that a definition poses.

        Args:
            checked: The definition.
            sizes: Value of each named size in measurements; one that is missing is 0.
            target: ``cpu`` or ``cuda``.
            device: What it runs on.
            numerics: Of the run.
            threads: How many work on a call.
        """
        return Layer.of(checked).at(sizes, target, device, numerics, threads)

    @property
    def size_class(self) -> tuple[int, ...]:
        """For each size, the power of two that it is not below: as its number of bits."""
        return tuple(size.bit_length() for size in self.sizes)

    @property
    def family(self) -> str:
        """Names the problems that something can be learned from: other sizes and threads."""
        return key_of(self.template, self.target, self.numerics)

    @property
    def key(self) -> str:
        """Names the problem."""
        return key_of(self.family, self.sizes, self.device, self.threads)

    def to_record(self) -> dict[str, Any]:
        """The problem as JSON has it."""
        return {**asdict(self), "sizes": list(self.sizes)}


@dataclass(frozen=True, slots=True)
class Layer:
    """A definition as wisdom knows it, before anybody says how large its sizes are.

    Attributes:
        template: As a problem has it.
        extents: For each name of the template in order: the number that the definition has
            there, or the definition's own name of a size that may be any.
    """

    template: str
    extents: tuple[int | str, ...]

    @classmethod
    def of(cls, checked: CheckedDef) -> Layer:
        """The layer that a definition is."""
        from tcfuse.wisdom.template import template_of  # a run with a warm cache does without

        return cls(*template_of(checked))

    def at(
        self,
        sizes: Mapping[str, int],
        target: str,
        device: str,
        numerics: str,
        threads: int = 1,
    ) -> Problem:
        """The problem that it poses; the arguments are those of ``Problem.of``."""
        numbers = (e if isinstance(e, int) else sizes.get(e, UNKNOWN) for e in self.extents)
        return Problem(self.template, tuple(numbers), target, device, numerics, threads)

    def to_record(self) -> dict[str, Any]:
        """The layer as JSON has it."""
        return {"template": self.template, "extents": list(self.extents)}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Layer:
        """The layer that ``to_record`` describes."""
        return cls(record["template"], tuple(record["extents"]))


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

    @property
    def knobs_text(self) -> str:
        """The knobs as JSON, keys sorted: equal knobs have equal texts."""
        return json.dumps(self.knobs, sort_keys=True)

    @property
    def key(self) -> str:
        """Names the problem, the versions and the knobs: what there is one entry of."""
        return key_of(self.problem.key, sorted(self.versions.items()), self.knobs_text)

    def better_than(self, other: Entry) -> bool:
        """Whether this one goes first: a total order on entries of one problem.

        What was measured goes before what was predicted, then the faster one; ties are broken
        by what the entries say, so that merging does not depend on any order.
        """
        return self.rank < other.rank

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts the better entry to the front."""
        says = (self.knobs_text, sorted(self.versions.items()), self.note)
        return (self.predicted, -self.speedup, self.micros, *says)

    def to_record(self) -> dict[str, Any]:
        """The entry as JSON has it."""
        return {
            "problem": self.problem.to_record(),
            "knobs": json.loads(self.knobs_text),
            "speedup": self.speedup,
            "micros": self.micros,
            "predicted": self.predicted,
            "versions": dict(sorted(self.versions.items())),
            "note": self.note,
        }
