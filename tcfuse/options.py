"""How one run goes: every field is a default, a flag, a keyword and a cache key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import OptionError
from tcfuse.mapping_options import NUMERICS, MappingOptions

TARGETS = ("cpu", "cuda")
AUTO = "auto"
LAYOUTS = (AUTO, "portable", "blocked")
PLANNERS = (AUTO, "greedy", "program")


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """How one model is optimized; the names are those of the flags.

    Attributes:
        target: Machines the kernels are for, with commas between; ``auto`` is ``cpu,cuda``
            where there is a GPU and a compiler for it, else ``cpu`` (``targeting``).
        cuda_arch: GPUs that machine code is made for, with commas between; empty for the common
            ones.  Newer ones compile the PTX of the newest of them when they load it, drivers
            that are too old for the code that of the oldest.
        numerics: ``strict`` keeps every cast and the order of operations, ``default`` is never
            further from the exact answer than the original, ``fast`` may reassociate freely.
        verify: Run every kernel against the original operators.
        emulate: Run every kernel for GPUs in the emulator, which takes minutes.
        gate: Time every kernel and give back what does not pay.
        layout: ``auto`` keeps the tensors between convolutions in ONNX Runtime's blocked layout
            where that is measured to be faster, on machines like this one then, with the
            ``portable`` form beside it; ``blocked`` does it without being measured.
        planner: How regions are chosen: ``greedy`` grows them as large as they get and prunes
            them; ``program`` solves an integer linear program over candidate regions, measures
            what it chose and keeps that where the model is faster.  ``auto`` is ``greedy``, or
            ``program`` where there are constraints.
        leave: Constraint: nodes or operators, by pattern, that stay with ONNX Runtime.
        together: Constraint: nodes, with commas between, that one region has.
        apart: Constraint: patterns, with commas between; no region has a node of each.
        max_nodes: Constraint: nodes that a region has at most; 0 is no limit.
        dim: Number that each size name of the model stands for in measurements.
        input_shapes: Shape of each input in measurements.
        wisdom: A file of wisdom that is asked before the cache's.
        use_wisdom: Take knobs that were tuned for kernels like these.
        mapping: Knobs of every kernel.
        cuda: More knobs of kernels for GPUs.
    """

    target: str = AUTO
    cuda_arch: str = ""
    numerics: str = "default"
    verify: bool = True
    emulate: bool = False
    gate: bool = True
    layout: str = AUTO
    planner: str = AUTO
    leave: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    max_nodes: int = 0
    dim: Mapping[str, int] = field(default_factory=dict)
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    wisdom: str = ""
    use_wisdom: bool = True
    mapping: MappingOptions = field(default_factory=MappingOptions)
    cuda: CudaOptions = field(default_factory=CudaOptions)

    def __post_init__(self) -> None:
        for target in self.targets:
            _among("target", target, (*TARGETS, AUTO, ",".join(TARGETS)))
        if AUTO in self.targets and self.target != AUTO:
            raise OptionError(
                f"target {self.target!r}: {AUTO} chooses targets, name none with it"
            )
        _among("numerics", self.numerics, NUMERICS)
        _among("layout", self.layout, LAYOUTS)
        _among("planner", self.planner, PLANNERS)
        if self.planner == "greedy" and self.is_constrained:
            raise OptionError("constraints are kept by the planner 'program', not by 'greedy'")
        if self.max_nodes < 0:
            raise OptionError(f"a region of at most {self.max_nodes} nodes: use 1 or more")
        for name, size in self.dim.items():
            if size < 0:
                raise OptionError(f"size {name} is {size}; a size is not negative")

    @property
    def is_constrained(self) -> bool:
        """Whether a person asked for something that plans have to keep."""
        return bool(self.leave or self.together or self.apart or self.max_nodes)

    @property
    def solves(self) -> bool:
        """Whether regions are chosen by the integer linear program."""
        return self.planner == "program" or self.is_constrained

    @property
    def measures_plans(self) -> bool:
        """Whether its plans are measured beside the greedy one, which keeps no constraints."""
        can = self.gate and "cpu" in self.targets
        return self.solves and can and not self.is_constrained

    @property
    def targets(self) -> tuple[str, ...]:
        """Each target once, in the order of ``TARGETS``; ``auto`` until it is resolved."""
        names = dict.fromkeys(name.strip() for name in self.target.split(","))
        return tuple(sorted(names, key=lambda n: TARGETS.index(n) if n in TARGETS else -1))

    def of_kernels(self) -> tuple[str, ...]:
        """Everything that determines the source of kernels, as text."""
        knobs = self.mapping.to_json()
        return (knobs, self.target, str(self.cuda)) if "cuda" in self.targets else (knobs,)

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
        numerics = values.get("numerics", mapping.numerics)
        _among("numerics", numerics, NUMERICS)
        for name in ("leave", "together", "apart"):
            given = values.get(name, ())
            values[name] = (given,) if isinstance(given, str) else tuple(given)
        chosen = {"numerics": numerics, "mapping": replace(mapping, numerics=numerics)}
        return cls(**(values | chosen))


def _among(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ``OptionError`` unless ``value`` is one of ``choices``."""
    if value not in choices:
        plural = {"target": "targets"}.get(name, f"values of {name}")
        raise OptionError(f"no {name} {value!r}; {plural} are {', '.join(choices)}")


def parse_sizes(flag: str, texts: Sequence[str]) -> dict[str, int]:
    """``["N=8", "S=128"]`` as a mapping.

    Args:
        flag: What the items were given with.
        texts: The items.

    Raises:
        OptionError: An item is not ``NAME=NUMBER``, or a name has two numbers.
    """
    sizes: dict[str, int] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not (name and equals and number.isdigit()):
            raise OptionError(f"{flag} {text!r} is not NAME=NUMBER, for example {flag} N=8")
        if sizes.setdefault(name, int(number)) != int(number):
            raise OptionError(f"{flag} {text}: {name} is {sizes[name]} already")
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
