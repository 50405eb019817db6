"""Inputs for one kernel that show whether it is right.

Random values alone say little, so each set of sizes is run with several *fills*; sizes cover
one, remainders of every vector width, and zero.  Integer inputs stay inside the tables they
index and away from zero where something is divided by them: out of range the original operators
are undefined too.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcfuse.ort.roles import Role, integer_roles
from tcfuse.ort.sizes import choose_sizes, evaluate_size
from tcfuse.targets.base import Interface, Port
from tcfuse.types import DType, Size

if TYPE_CHECKING:
    import onnx_ir as ir

FILLS = ("normal", "edge", "wide", "sparse", "zeros")
PERIOD = 1_048_583  # elements; a prime, so that equal ones are not below each other
SPECIALS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e4, -1e4, 88.0, -88.0, 1e-3, 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class Feed:
    """The inputs of one run, in the order of the interface, and the sizes they imply."""

    label: str
    fill: str
    arrays: tuple[np.ndarray, ...]
    sizes: Mapping[str, int]


def feeds(
    interface: Interface,
    function: ir.Function | None = None,
    constants: Mapping[int, np.ndarray] | None = None,
    *,
    sums: bool = False,
    within: Iterable[tuple[Size, ...]] = (),
) -> Iterator[Feed]:
    """Every feed for a kernel.

    Args:
        interface: The kernel's signature.
        function: The original operators; says which integers are indices or divisors.
        constants: Inputs by position that the model knows; they keep their value wherever
            the sizes fit.
        sums: The kernel adds up elements, in an order of its own: values are so small that a
            partial sum does not overflow in one order and not in another.
        within: Shapes of the kernel's temporaries, which cost time and memory too.
    """
    roles = integer_roles(function, interface)
    for chosen in choose_sizes(interface, within, len(FILLS), constants or {}):
        values = chosen.values
        shapes = [
            tuple(evaluate_size(s, values) for s in p.type.shape) for p in interface.inputs
        ]
        given = {
            position: known
            for position, known in (constants or {}).items()
            if known.shape == shapes[position]
        }
        for fill in FILLS[: chosen.n_fills]:
            arrays = [
                given[position]
                if position in given
                else filled(port, shape, Filling(fill, sums), roles.get(position), values)
                for position, (port, shape) in enumerate(
                    zip(interface.inputs, shapes, strict=True)
                )
            ]
            yield Feed(f"{fill} {chosen}".strip(), fill, tuple(arrays), values)


@dataclass(frozen=True, slots=True)
class Filling:
    """How one feed is filled; ``sums`` keeps its values away from the largest number."""

    name: str
    sums: bool


def filled(
    port: Port,
    shape: tuple[int, ...],
    filling: Filling,
    role: Role | None,
    values: Mapping[str, int],
) -> np.ndarray:
    """One input; depends on the port's name, the fill and the sizes only.

    A large one repeats itself: what is in the rows of a table far apart says nothing more.
    """
    if math.prod(shape) > PERIOD:
        return np.resize(filled(port, (PERIOD,), filling, role, values), shape)
    fill = filling.name
    rng = np.random.default_rng([zlib.crc32(f"{port.name}/{fill}".encode()), *shape])
    dtype = port.type.dtype
    if dtype is DType.BOOL:
        return rng.random(shape) < {"zeros": 0.0, "edge": 1.1}.get(fill, 0.6)
    if dtype.is_float:
        return _floats(rng, shape, filling, dtype)
    return _integers(rng, shape, fill, dtype, role, values)


def _floats(
    rng: np.random.Generator, shape: tuple[int, ...], filling: Filling, dtype: DType
) -> np.ndarray:
    """Floating-point values of one fill."""
    fill = filling.name
    info = (DType.FLOAT16 if dtype.is_half else dtype).finfo
    array = rng.standard_normal(shape)
    if fill == "zeros":
        array = np.zeros(shape)
    elif fill == "wide":
        span = 3.0 if dtype.is_storage else 12.0
        array = np.sign(array) * np.exp(rng.uniform(-span, span, shape))
    elif fill in ("edge", "sparse") and array.size:
        tiny, big = float(info.smallest_subnormal), float(info.max)
        big = big**0.75 if filling.sums else big
        specials = np.array(
            [*SPECIALS, tiny, -tiny * 3, big, -big, float(info.smallest_normal)]
        )
        share = 0.3 if fill == "edge" else 0.0
        at = rng.random(shape) < share
        if fill == "sparse":
            at.reshape(-1)[rng.integers(0, at.size)] = True
        array = np.where(at, rng.choice(specials, shape), array)
    with np.errstate(over="ignore"):
        return array.astype(dtype.numpy)


def _integers(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    fill: str,
    dtype: DType,
    role: Role | None,
    values: Mapping[str, int],
) -> np.ndarray:
    """Integers of one fill, inside what ``role`` allows."""
    if role is not None and role.nonzero:
        high = int(evaluate_size(role.high, values))
        array = rng.integers(role.low, high, shape)
        if fill in ("edge", "wide") and dtype.is_signed:
            array = array * rng.choice([-1, 1], shape)
        return array.astype(dtype.numpy)
    if role is not None:
        rows = max(evaluate_size(role.high, values), 1)
        low = -rows if fill != "zeros" and role.low < 0 and dtype.is_signed else 0
        return rng.integers(low, rows, shape).astype(dtype.numpy)
    if fill == "zeros":
        return np.zeros(shape, dtype.numpy)
    least, largest = map(int, dtype.limits)
    array = rng.integers(max(least, -100), min(largest, 100), shape, endpoint=True)
    if fill == "edge":
        at = rng.random(shape) < 0.2
        array = np.where(
            at, rng.choice([0, 1, largest // 2, max(least // 2, -1)], shape), array
        )
    return array.astype(dtype.numpy)
