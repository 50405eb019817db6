"""What changes the produced code: one field is a default, a flag, a JSON key and a cache key.

``MappingOptions`` are the knobs of one kernel (a tuner may try all their choices);
``OptimizeOptions`` are those of one run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import OptionError
from tcfuse.knob import check_knobs, knob, knobs_of

TARGETS = ("cpu", "cuda")
AUTO = "auto"
NUMERICS = ("strict", "default", "fast")
LAYOUTS = (AUTO, "portable", "blocked")
FUSION = ("preserve", "max", "min")
INSTRUCTIONS = ("auto", "compiler", "latency", "source")
PLANNERS = (AUTO, "greedy", "program")
DEEP = 64  # more loops than any kernel has
STREAMED_BYTES = 1 << 26  # twice the 32 MiB that the last level of common processors has


def _tiled(options: Any) -> bool:
    """Whether anything is tiled, which what concerns tiles is for."""
    return any(options.tile)


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How one kernel is scheduled and mapped to the machine.

    The loops inside tiles are scheduled anew when ``inner_fusion``, ``inner_skewing`` or
    ``inner_positive`` differs from its outer namesake.
    """

    fusion: str = knob(
        "preserve",
        choices=FUSION,
        unit="name",
        doc="join loops while parallel ones are preserved, at most, or never",
    )
    inner_fusion: str = knob(
        "preserve",
        choices=FUSION,
        unit="name",
        doc="the same for the loops inside a tile",
        matters=_tiled,
    )
    skewing: bool = knob(
        False,
        choices=(False, True),
        unit="flag",
        doc="loops may follow sums of iterators, which makes recurrences tilable",
    )
    inner_skewing: bool = knob(
        False,
        choices=(False, True),
        unit="flag",
        doc="the same for the loops inside a tile",
        matters=_tiled,
    )
    positive: bool = knob(
        True,
        choices=(True, False),
        unit="flag",
        doc="no loop runs against the iterators it follows",
    )
    inner_positive: bool = knob(
        True,
        choices=(True, False),
        unit="flag",
        doc="the same for the loops inside a tile",
        matters=_tiled,
    )
    fix_sizes: str = knob(
        "before",
        choices=("never", "before", "after"),
        unit="name",
        doc="when sizes given as numbers become numbers: before or after scheduling",
        needs="sizes",
    )
    tile: tuple[int, ...] = knob(
        (),
        choices=((), (8,), (32,), (128,), (8, 8), (32, 32), (8, 128), (0, 64), (16, 16, 16)),
        unit="iterations",
        doc="tile of each member of the outermost band; 0 leaves a member whole",
        legal="sizes of 0 to 2^30 with commas between",
        accepts=lambda sizes: all(type(size) is int and 0 <= size <= 2**30 for size in sizes),
        per_loop=True,
    )
    separate_tiles: bool = knob(
        False,
        choices=(False, True),
        unit="flag",
        doc="code of their own for full tiles, whose loops have constant bounds",
        matters=_tiled,
    )
    unroll: int = knob(
        1,
        choices=(1, 2, 4, 8, 16, 64),
        unit="instances",
        doc="at most that many statement instances come of unrolling below a point",
        legal="1 to 1024",
        accepts=lambda count: 1 <= count <= 1024,
    )
    accumulators: int = knob(
        4,
        choices=(1, 2, 4, 8),
        unit="accumulators",
        doc="independent vector accumulators of a reduction",
        needs="reductions",
    )
    block: int = knob(
        0,
        choices=(0, 1, 2, 3, 4, 6, 8, 12),
        unit="rows",
        doc="iterations that share the vectors of a reduction; 0 chooses, 1 does without",
        legal="0 to 64",
        accepts=lambda rows: 0 <= rows <= 64,
        needs="reductions",
    )
    vectors: int = knob(
        0,
        choices=(0, 1, 2, 3, 4),
        unit="vectors",
        doc="vectors side by side along the lanes of a register block; 0 chooses",
        legal="0 to 8",
        accepts=lambda count: 0 <= count <= 8,
        needs="reductions",
    )
    lane_choice: int = knob(
        0,
        choices=(0, 1, 2, 3, 4, 5),
        unit="rank",
        doc="lanes and rows along the loops predicted to be best (0), next best (1), ...",
        legal="0 to 63",
        accepts=lambda rank: 0 <= rank < 64,
    )
    private_depth: int = knob(
        DEEP,
        choices=(0, 1, 2, 3, DEEP),
        unit="loops",
        doc="temporaries are contracted inside at most that many common loops",
        legal="0 or more",
        accepts=lambda depth: depth >= 0,
    )
    shared_depth: int = knob(
        DEEP,
        choices=(0, 1, 2, 3, DEEP),
        unit="loops",
        doc="inputs are copied for reuse inside at most that many loops; 0 copies nothing",
        legal="0 or more",
        accepts=lambda depth: depth >= 0,
    )
    registers: int = knob(
        0,
        choices=(0, 1, 2, 4, 8),
        unit="registers",
        doc="vectors of each value that a step of a loop over lanes has; 0 chooses",
        needs="cpu",
    )
    streaming: int = knob(
        STREAMED_BYTES,
        # Less is wanted in the caches by the next kernel, which nobody sees who times this one.
        choices=(0, 1 << 25, STREAMED_BYTES, 1 << 28),
        unit="bytes",
        doc="outputs that large are stored past the caches; 0: none",
        legal="0 to 2^40",
        accepts=lambda size: 0 <= size <= 1 << 40,
        needs="cpu",
    )
    instructions: str = knob(
        "auto",
        choices=INSTRUCTIONS,
        unit="name",
        doc="their order: the C++ compiler's, for short latencies alone, or that of the source",
        needs="cpu",
    )
    hoisting: bool = knob(
        True,
        choices=(True, False),
        unit="flag",
        doc="the C++ compiler loads constants before loops, and may run out of registers",
        needs="cpu",
    )
    optimization: int = knob(
        3, choices=(2, 3), unit="level", doc="of the C++ compiler", needs="cpu"
    )
    isl_operations: int = knob(
        20_000_000,
        choices=(2_000_000, 20_000_000, 200_000_000),
        unit="operations",
        doc="isl's budget for each question; a simpler schedule is used beyond it",
        legal="1 to 2^40",
        accepts=lambda count: 1 <= count <= 2**40,
        tuned=False,
    )
    numerics: str = knob(
        "default",
        choices=NUMERICS,
        unit="name",
        doc="strict keeps every cast and the order of operations; fast may contract",
        tuned=False,
    )

    def __post_init__(self) -> None:
        check_knobs(self)

    @property
    def reschedules(self) -> bool:
        """Whether the loops inside a tile are scheduled with options of their own."""
        outer = (self.fusion, self.skewing, self.positive)
        return outer != (self.inner_fusion, self.inner_skewing, self.inner_positive)

    @property
    def reassociate(self) -> bool:
        """Whether the updates of a reduction may run in another order."""
        return self.numerics != "strict"

    def to_json(self) -> str:
        """The knobs as JSON, keys sorted."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> MappingOptions:
        """The knobs that ``text`` sets; the others keep their defaults.

        Raises:
            OptionError: The text is not an object, or a name or a value is not known.
        """
        try:
            values = json.loads(text)
        except ValueError as error:
            raise OptionError(f"the knobs are not JSON: {error}") from None
        if not isinstance(values, dict):
            raise OptionError("the knobs are not an object of JSON")
        return cls.of(values)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> MappingOptions:
        """The knobs as JSON has them, where a tuple is a list.

        Raises:
            OptionError: A name or a value is not known.
        """
        known = [name for name, _ in knobs_of(cls)]
        for name in values:
            if name not in known:
                raise OptionError(f"no knob {name!r}; knobs are {', '.join(known)}")
        given: dict[str, Any] = dict(values)
        for name, value in values.items():
            if isinstance(value, list):
                given[name] = tuple(value)
        return cls(**given)

    def digest(self) -> str:
        """Eight hex digits that name this configuration in caches and kernel names."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:8]


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
