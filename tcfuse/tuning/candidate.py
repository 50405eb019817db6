"""What is tuned, what is tried, and what came of it: the types the tuner's parts share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tcfuse.cuda_options import CudaOptions
from tcfuse.interface import Interface
from tcfuse.mapping_options import MappingOptions


@dataclass(frozen=True, slots=True)
class Subject:
    """One kernel that is tuned; it may be sent to another process or machine.

    Attributes:
        name: What people are shown; the kernel's name is made of it.
        definition: The text of its definition.
        interface: Its signature.
        sizes: Value of each named size in measurements.
        target: ``cpu`` or ``cuda``.
        threads: How many may work on a call.
        numerics: Of the run; the same in every candidate.
    """

    name: str
    definition: str
    interface: Interface
    sizes: Mapping[str, int] = field(default_factory=dict)
    target: str = "cpu"
    threads: int = 1
    numerics: str = "default"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Knobs to try; ``cuda`` is for kernels for GPUs and ``None`` otherwise."""

    mapping: MappingOptions = field(default_factory=MappingOptions)
    cuda: CudaOptions | None = None

    def to_record(self) -> dict[str, Any]:
        """The candidate as JSON has it."""
        knobs = {"mapping": asdict(self.mapping), "cuda": self.cuda and asdict(self.cuda)}
        record: dict[str, Any] = json.loads(json.dumps(knobs))
        return record

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Candidate:
        """The candidate that ``to_record`` describes.

        Raises:
            OptionError: It names a knob or a value that is not known.
        """
        cuda = record.get("cuda")
        return cls(
            MappingOptions.of(record["mapping"]), None if cuda is None else CudaOptions(**cuda)
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one candidate.

    Attributes:
        status: ``ok``; ``slow``: so far behind that it was stopped early; ``refused``: there is
            no such kernel; ``wrong``, ``crashed``, ``timeout`` or ``memory``: how it failed.
            ``made``: a worker has its text, and nothing more yet.
        micros: Microseconds of a call, the median; ``None`` where nothing was timed.
        speedup: How many times faster than the subject's kernel with default knobs, which
            ran interleaved with it; what a search maximises.
        spread: Interquartile range of the paired ratios, relative to their median.
        error: Standard error of ``speedup``, relative to it.
        detail: A line about a failure.
        predicted: The numbers come of a model, not of a clock.
        source: A digest of the kernel's text: equal texts need not be timed twice.
        seconds: What it took to find out.
        building: Of these, what making its library took.
    """

    status: str
    micros: float | None = None
    speedup: float | None = None
    spread: float | None = None
    error: float | None = None
    detail: str = ""
    predicted: bool = False
    source: str = ""
    seconds: float = 0.0
    building: float = 0.0

    @property
    def fitness(self) -> float:
        """The speedup; 0 for what cannot be used."""
        return self.speedup or 0.0 if self.status in ("ok", "slow") else 0.0
