"""Knobs of one kernel: how it is scheduled, mapped to the machine, and compiled.

One field is a default, a flag, a JSON key, a cache key and what a tuner may try.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tcfuse.errors import OptionError
from tcfuse.knob import check_knobs, knob, knobs_of

NUMERICS = ("strict", "default", "fast")
FUSION = ("preserve", "max", "min")
INSTRUCTIONS = ("auto", "compiler", "latency", "source")
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
