"""What changes the produced code: one field is a default, a flag, a JSON key and a cache key.

``MappingOptions`` are the knobs of one kernel (a tuner may try all their choices);
``OptimizeOptions`` are those of one run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from tcfuse.errors import OptionError

T = TypeVar("T")

TARGETS = ("cpu",)
NUMERICS = ("strict", "default", "fast")


def knob(default: T, *, choices: tuple[T, ...], unit: str, doc: str) -> T:
    """Declare a tunable option.

    Args:
        default: Value when nobody chooses.
        choices: What a tuner tries; must contain ``default``.
        unit: What the number counts ("iterations", "operations"), "flag" or "name".
        doc: One line, shown in help texts.
    """
    assert default in choices, f"default {default!r} is not among {choices!r}"
    metadata = {"choices": choices, "unit": unit, "doc": doc}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How one kernel is scheduled and mapped to the machine."""

    fusion: str = knob(
        "preserve",
        choices=("preserve", "max", "min"),
        unit="name",
        doc="join loops while parallel ones are preserved, at most, or never",
    )
    unroll: int = knob(
        4,
        choices=(1, 2, 4),
        unit="accumulators",
        doc="independent vector accumulators of a reduction",
    )
    isl_operations: int = knob(
        20_000_000,
        choices=(2_000_000, 20_000_000, 200_000_000),
        unit="operations",
        doc="isl's budget for one kernel; a simpler schedule is used beyond it",
    )
    numerics: str = knob(
        "default",
        choices=NUMERICS,
        unit="name",
        doc="strict keeps every cast and the order of operations; fast may contract",
    )

    def __post_init__(self) -> None:
        for f in fields(self):
            if (value := getattr(self, f.name)) not in f.metadata["choices"]:
                allowed = ", ".join(map(str, f.metadata["choices"]))
                raise OptionError(f"{f.name} is {value!r}; it may be {allowed}")

    @property
    def reassociate(self) -> bool:
        """Whether the updates of a reduction may run in another order."""
        return self.numerics != "strict"

    def to_json(self) -> str:
        """The knobs as JSON, keys sorted."""
        return json.dumps(asdict(self), sort_keys=True)

    def digest(self) -> str:
        """Eight hex digits that name this configuration in caches and kernel names."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:8]


def search_space() -> dict[str, tuple[Any, ...]]:
    """The tuner's space: each knob and the values it may take."""
    return {f.name: f.metadata["choices"] for f in fields(MappingOptions)}


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """How one model is optimized; the names are those of the flags.

    Attributes:
        target: Machine the kernels are for.
        numerics: ``strict`` keeps every cast and the order of operations, ``default`` is never
            further from the exact answer than the original, ``fast`` may reassociate freely.
        verify: Run every kernel against the original operators.
        gate: Time every kernel and give back what does not pay.
        dim: Number that each size name of the model stands for in measurements.
        input_shapes: Shape of each input in measurements.
        mapping: Knobs of every kernel.
    """

    target: str = "cpu"
    numerics: str = "default"
    verify: bool = True
    gate: bool = True
    dim: Mapping[str, int] = field(default_factory=dict)
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    mapping: MappingOptions = field(default_factory=MappingOptions)

    def __post_init__(self) -> None:
        _among("target", self.target, TARGETS)
        _among("numerics", self.numerics, NUMERICS)
        for name, size in self.dim.items():
            if size < 0:
                raise OptionError(f"size {name} is {size}; a size is not negative")

    @classmethod
    def of(cls, **values: Any) -> OptimizeOptions:
        """The options of those names.

        Raises:
            OptionError: A name or a value is not known.
        """
        known = [f.name for f in fields(cls)]
        for name in values:
            if name not in known:
                raise OptionError(f"no option {name!r}; options are {', '.join(known)}")
        mapping = values.get("mapping", MappingOptions())
        numerics = values.get("numerics", "default")
        _among("numerics", numerics, NUMERICS)
        knobs = asdict(mapping) | {"numerics": numerics}
        return cls(**(values | {"mapping": MappingOptions(**knobs)}))


def _among(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ``OptionError`` unless ``value`` is one of ``choices``."""
    if value not in choices:
        plural = {"target": "targets"}.get(name, f"values of {name}")
        raise OptionError(f"no {name} {value!r}; {plural} are {', '.join(choices)}")


def parse_dims(texts: list[str]) -> dict[str, int]:
    """``["N=8", "S=128"]`` as a mapping.

    Raises:
        OptionError: An item is not ``NAME=NUMBER``.
    """
    sizes: dict[str, int] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not (name and equals and number.isdigit()):
            raise OptionError(f"--dim {text!r} is not NAME=NUMBER, for example --dim N=8")
        sizes[name] = int(number)
    return sizes


def parse_shapes(texts: list[str]) -> dict[str, tuple[int, ...]]:
    """``["x:1,3,224,224"]`` as a mapping; the name may contain colons.

    Raises:
        OptionError: An item is not ``NAME:SIZES``.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, sizes = text.rpartition(":")
        parts = [part.strip() for part in sizes.split(",")] if sizes else []
        if not name or not all(part.isdigit() for part in parts):
            raise OptionError(
                f"--input-shapes {text!r} is not NAME:SIZES, for example x:1,3,224,224"
            )
        shapes[name] = tuple(int(part) for part in parts)
    return shapes
