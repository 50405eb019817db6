"""How far a layer is from its definition in float64, on random values of small sizes.

The error is told, not judged: where a definition compares or rounds, the nearest float32 may
make another choice than float64 does.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from tcfuse.errors import TcfuseError
from tcfuse.layers.layer import Layer
from tcfuse.tc.binding import number, size_value
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.types import TensorType

TRIES = 100
LARGEST_SIZE = 12
MOST_POINTS = 1 << 21  # of one statement: half a second in the evaluator


def largest_error(layer: Layer) -> float | None:
    """The largest error relative to the largest value; ``None`` when nothing could be tried.

    Sizes or data that the definition does not allow are drawn again.

    Raises:
        UnsupportedError: The definition is beyond the compiler.
        ToolchainError: There is no compiler, or it failed.
    """
    layer.compile()
    rng = np.random.default_rng(0)
    checked = layer.checked
    for _ in range(TRIES):
        sizes = {name: int(rng.integers(1, LARGEST_SIZE + 1)) for name in checked.sizes}
        try:
            if _points(checked, sizes) > MOST_POINTS:
                return None
            names = (*checked.inputs, *checked.inout)
            given = {name: random_array(checked.tensors[name], sizes, rng) for name in names}
            found = run_on(layer, given)
            exact = evaluate(checked, given)
        except TcfuseError:
            continue
        return max(error_of(found[name], exact[name]) for name in checked.outputs)
    return None


def run_on(layer: Layer, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs by name; one that is updated starts from what is given under its name."""
    checked = layer.checked
    out = tuple(given[n].copy() if n in checked.inout else None for n in checked.outputs)
    inputs = [given[name] for name in checked.inputs]
    results = layer(*inputs, out=out if checked.inout else None)
    found = results if isinstance(results, tuple) else (results,)
    return dict(zip(checked.outputs, found, strict=True))


def random_array(
    declared: TensorType, sizes: Mapping[str, int], rng: np.random.Generator
) -> np.ndarray:
    """Values that most layers take: small ones, and integers that are indices of anything."""
    shape = tuple(size_value(size, sizes) for size in declared.shape)
    if declared.dtype.is_float:
        return np.asarray(rng.standard_normal(shape)).astype(declared.dtype.numpy)
    return np.asarray(rng.integers(0, 2, shape)).astype(declared.dtype.numpy)


def error_of(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest difference, relative to the largest finite value."""
    a, b = found.astype(np.float64), exact.astype(np.float64)
    if a.shape != b.shape:
        return float("inf")
    with np.errstate(all="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    largest = float(np.nan_to_num(apart, nan=np.inf, posinf=np.inf).max(initial=0.0))
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    return largest / scale if scale else largest


def _points(checked: CheckedDef, sizes: Mapping[str, int]) -> int:
    """Instances of the largest statement."""
    return max(
        prod(max(number(r.high, sizes) - number(r.low, sizes), 0) for r in item.ranges)
        for item in checked.statements
    )
