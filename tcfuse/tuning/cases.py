"""What candidates are run on: inputs in guarded memory, and what the outputs should be.

The process that measures makes them once; the processes it forks find them in place.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from tcfuse.interface import Interface, Port
from tcfuse.ort.accuracy import Comparison, compare, tolerance
from tcfuse.ort.exact import adds_up, exact_outputs, reduction_length
from tcfuse.ort.feeds import Feed, Filling, filled
from tcfuse.ort.sizes import choose_sizes, evaluate_size
from tcfuse.packed import packed, packed_bytes, unpacked
from tcfuse.tc.binding import number
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.tuning.guarded import Guarded
from tcfuse.tuning.messages import Setup
from tcfuse.tuning.roles import roles_of
from tcfuse.types import DType

FEW_POINTS = 2_000_000  # of the case with odd sizes
CACHE_LINE = 64
PIECE = 1 << 18  # elements
COPIED_BYTES = 1 << 28  # inputs above that have one guarded copy, and are not moved


@dataclass(slots=True, eq=False)
class Case:
    """One run of a kernel.

    Attributes:
        feed: Its inputs and sizes.
        dims: Dimensions of all inputs, one after the other.
        ports: Of its outputs.
        shapes: Of its outputs.
        length: Most elements any output element sums over, at most.
        exact: The outputs in float64, in memory shared with forked processes; of integers in
            their type; empty where float64 takes too long.
        original: What the outputs are held against beside that: float64, rounded, or what the
            kernel with default knobs gives.
        affordable: Whether float64 is computed.
        known: ``exact`` holds float64's answer.
        allowed: Difference from ``original`` within which no output is looked at closely.
        inputs: Copies of the inputs as ONNX has them in memory: one with a guarded end, one
            with a guarded beginning.
        plain: Copies for timing.
    """

    feed: Feed
    dims: tuple[int, ...]
    ports: tuple[Port, ...]
    shapes: tuple[tuple[int, ...], ...]
    length: int
    exact: list[np.ndarray]
    original: list[np.ndarray]
    affordable: bool
    known: bool = False
    allowed: list[float] = field(default_factory=list)
    inputs: list[list[Guarded]] = field(default_factory=list)
    plain: list[np.ndarray] = field(default_factory=list)

    def output_bytes(self) -> list[int]:
        """Bytes of each output, as ONNX has it in memory."""
        pairs = zip(self.ports, self.shapes, strict=True)
        return [packed_bytes(port.type.dtype, shape) for port, shape in pairs]

    def judge(self, raw: list[np.ndarray]) -> str:
        """What is wrong with outputs, given as bytes; empty when they are right."""
        if all(map(_near, self.typed(raw), self.original, self.allowed)):
            return ""
        for k, found in enumerate(self.compared(raw, self.original)):
            if found.verdict:
                return f"{self.ports[k].name} of {self.feed.label}: {found.verdict}"
        return ""

    def compared(
        self, raw: list[np.ndarray], original: list[np.ndarray]
    ) -> Iterator[Comparison]:
        """Each output against float64, with other answers beside it."""
        exact = self.exact if self.known else self.original
        for k, ours in enumerate(self.typed(raw)):
            dtype = self.ports[k].type.dtype
            yield compare(ours, original[k], exact[k], dtype, self.length)

    def adopt(self, answers: Sequence[np.ndarray]) -> None:
        """Hold outputs against these."""
        for kept, found in zip(self.original, answers, strict=True):
            kept[...] = found

    def settle(self) -> None:
        """Note how far outputs may be from ``original`` at any rate."""
        self.allowed = []
        for port, kept in zip(self.ports, self.original, strict=True):
            dtype, scale = port.type.dtype, 0.0
            if dtype in (DType.FLOAT32, DType.FLOAT64):
                finite = np.where(np.isfinite(kept), np.abs(kept), 0)
                scale = float(finite.max(initial=0))
            # ``original`` is half a unit in the last place from float64 where that is known.
            self.allowed.append(scale * tolerance(dtype, self.length) / 2 if scale else 0.0)

    def typed(self, raw: list[np.ndarray]) -> list[np.ndarray]:
        """Outputs of their types and shapes, from their bytes."""
        given = zip(raw, self.ports, self.shapes, strict=True)
        return [unpacked(data, port.type.dtype, shape) for data, port, shape in given]

    def rounded(self) -> list[np.ndarray]:
        """Float64's answers in the types of the outputs."""
        with np.errstate(all="ignore"):
            pairs = zip(self.exact, self.ports, strict=True)
            return [exact.astype(port.type.dtype.numpy) for exact, port in pairs]

    def place(self) -> None:
        """Lay out the inputs; the feed's own arrays are not needed any more."""
        flat = [
            np.ascontiguousarray(packed(array)).reshape(-1).view(np.uint8)
            for array in self.feed.arrays
        ]
        both = sum(data.size for data in flat) <= COPIED_BYTES
        sides = (True, False) if both else (True,)
        self.inputs = [self._guarded(flat, at_end=at_end) for at_end in sides]
        self.plain = [staggered(data.size, k) for k, data in enumerate(flat)]
        for array, data in zip(self.plain, flat, strict=True):
            array[:] = data
        self.feed = replace(self.feed, arrays=())

    def moved(self, turn: int) -> list[np.ndarray]:
        """The copies for timing at other places, unless they are too large to be moved."""
        if turn == 0 or sum(array.size for array in self.plain) > COPIED_BYTES:
            return self.plain
        made = [staggered(array.size, k, turn) for k, array in enumerate(self.plain)]
        for array, old in zip(made, self.plain, strict=True):
            array[:] = old
        return made

    def _guarded(self, flat: list[np.ndarray], *, at_end: bool) -> list[Guarded]:
        made = []
        for k, data in enumerate(flat):
            area = Guarded.of(f"input {k}", data.size, at_end=at_end)
            area.data[:] = data
            area.make_readonly()
            made.append(area)
        return made


def _near(ours: np.ndarray, original: np.ndarray, allowed: float) -> bool:
    """Whether nothing is further away than that; a piece that fits the caches at a time."""
    if ours.dtype.kind not in "fiub":
        return False
    flat, other = ours.reshape(-1), original.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, PIECE):
            piece = slice(start, start + PIECE)
            if allowed == 0.0:
                if not np.array_equal(flat[piece], other[piece]):
                    return False
            elif not np.abs(flat[piece] - other[piece]).max() <= allowed:  # a NaN is not
                return False
    return True


def staggered(n_bytes: int, k: int, turn: int = 0) -> np.ndarray:
    """Memory on a cache line, at another place of its page than that of its neighbours.

    Args:
        n_bytes: How much.
        k: Its place among the neighbours.
        turn: In each turn all lie elsewhere, also for each other and for the stack.
    """
    whole = np.empty(n_bytes + 2 * mmap.PAGESIZE, np.uint8)
    line = ((5 + 6 * turn) * k + 17 * turn) % (mmap.PAGESIZE // CACHE_LINE)
    offset = -whole.ctypes.data % mmap.PAGESIZE + CACHE_LINE * line
    return whole[offset : offset + n_bytes]


def shared(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros in memory that forked processes share."""
    n_bytes = prod(shape) * dtype.itemsize
    data = np.frombuffer(mmap.mmap(-1, max(n_bytes, 1)), np.uint8)[:n_bytes]
    return data.view(dtype).reshape(shape)


def all_sizes(interface: Interface, given: Mapping[str, int]) -> dict[str, int]:
    """The value of every size name, where the free ones are given."""
    derived = dict(interface.derived)
    values: dict[str, int] = {}
    for name in interface.sizes:
        values[name] = evaluate_size(derived[name], values) if name in derived else given[name]
    return values


def points(checked: CheckedDef, sizes: Mapping[str, int]) -> int:
    """Instances of all statements together."""
    return sum(
        prod(max(number(r.high, sizes) - number(r.low, sizes), 0) for r in item.ranges)
        for item in checked.statements
    )


def make_cases(setup: Setup, *, zeros: bool = False) -> tuple[CheckedDef, list[Case]]:
    """The case that is timed, then one with odd sizes, where sizes are free.

    Args:
        setup: The subject.
        zeros: Integer inputs are zero.
    """
    checked = check(parse(setup.definition), sizes=setup.interface.sizes)
    sizes = [all_sizes(setup.interface, setup.sizes)]
    within = [checked.tensors[name].shape for name in checked.temporaries]
    few = [
        chosen
        for chosen in choose_sizes(setup.interface, within, 1)
        if chosen.free
        and all(chosen.values[name] > 1 for name in chosen.free)
        and points(checked, chosen.values) <= FEW_POINTS
    ]
    if few:
        sizes.append(dict(max(few, key=lambda chosen: chosen.n_elements).values))
    return checked, [_case(setup, checked, values, zeros=zeros) for values in sizes]


def feed_at(
    interface: Interface, checked: CheckedDef, values: Mapping[str, int], *, zeros: bool = False
) -> Feed:
    """Inputs for a definition at those sizes; integers are inside what they index.

    Args:
        interface: Its signature.
        checked: The definition.
        values: Of every size name.
        zeros: Integers are zero.
    """
    roles = roles_of(checked, interface)
    arrays = []
    for position, port in enumerate(interface.inputs):
        shape = tuple(evaluate_size(s, values) for s in port.type.shape)
        fill = "zeros" if zeros and not port.type.dtype.is_float else "normal"
        filling = Filling(fill, adds_up(checked))
        arrays.append(filled(port, shape, filling, roles.get(position), values))
    label = ", ".join(f"{name}={value}" for name, value in values.items())
    return Feed(label or "the only sizes", "normal", tuple(arrays), values)


def _case(setup: Setup, checked: CheckedDef, values: Mapping[str, int], *, zeros: bool) -> Case:
    interface = setup.interface
    feed = feed_at(interface, checked, values, zeros=zeros)
    shapes = tuple(
        tuple(max(evaluate_size(s, values), 0) for s in port.type.shape)
        for port in interface.outputs
    )
    types = [port.type.dtype for port in interface.outputs]
    affordable = points(checked, values) <= setup.most_points
    return Case(
        feed,
        tuple(d for array in feed.arrays for d in array.shape),
        interface.outputs,
        shapes,
        reduction_length(checked, feed),
        [
            shared(shape, np.dtype(np.float64) if t.is_float else t.numpy)
            for shape, t in zip(shapes, types, strict=True)
            if affordable
        ],
        [shared(shape, t.numpy) for shape, t in zip(shapes, types, strict=True)],
        affordable,
    )


def answer(checked: CheckedDef, interface: Interface, case: Case) -> None:
    """Fill in float64's answers."""
    answers = exact_outputs(checked, interface, case.feed)
    for kept, found in zip(case.exact, answers, strict=True):
        kept[...] = found.reshape(kept.shape)
