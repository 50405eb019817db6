"""A quick race of a few kernels that compute the same, in this process, on one thread.

It chooses between kernels that are all right; how much one wins by is measured elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tcfuse.errors import UnsupportedError
from tcfuse.ort.direct import DirectBuild
from tcfuse.ort.sizes import MOST_ELEMENTS, evaluate_size
from tcfuse.ort.timing import Ratio, interleave
from tcfuse.targets.base import Interface, KernelSource, Port

ROUNDS = 7
CACHE_LINE = 64


def race(
    kernels: Sequence[KernelSource], sizes: Mapping[str, int], contract: str = "fast"
) -> list[Ratio] | None:
    """How many times faster each kernel is than the first; ``None`` where none can be run.

    Args:
        kernels: Of one definition.
        sizes: Value of each size name.
        contract: How they are compiled.

    Raises:
        ToolchainError: A kernel cannot be compiled.
    """
    inputs = _inputs(kernels[0].interface, sizes)
    if inputs is None:
        return None
    calls: dict[str, Callable[[], int]] = {}
    for number, kernel in enumerate(kernels):
        call = _bound(kernel, inputs, contract)
        if call is None or call():  # an index was out of range
            return None
        calls[str(number)] = call
    times = interleave(calls, ROUNDS)
    return [Ratio.paired(times["0"], times[name]) for name in calls]


def _inputs(interface: Interface, sizes: Mapping[str, int]) -> list[np.ndarray] | None:
    """Numbers for every input; ``None`` where a size is unknown, or they are too many."""
    try:
        shapes = [_shape(port, sizes) for port in (*interface.inputs, *interface.outputs)]
    except UnsupportedError:
        return None
    counts = [math.prod(shape) for shape in shapes]
    if not all(counts) or sum(counts) > MOST_ELEMENTS:
        return None
    rng = np.random.default_rng(0)
    return [
        np.ascontiguousarray(
            rng.standard_normal(shape) if port.type.dtype.is_float else np.ones(shape),
            port.type.dtype.numpy,
        )
        for port, shape in zip(interface.inputs, shapes, strict=False)
    ]


def _shape(port: Port, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate_size(size, sizes) for size in port.type.shape)


def _bound(
    source: KernelSource, inputs: Sequence[np.ndarray], contract: str
) -> Callable[[], int] | None:
    """A call of a kernel that returns 1 when an index was out of range."""
    kernel, _ = DirectBuild(source, contract).load()
    dims = [size for array in inputs for size in array.shape]
    plan = kernel.plan(dims)
    if plan is None or plan.empty:
        return None
    outputs = [
        np.zeros(shape, port.type.dtype.numpy)
        for port, shape in zip(source.interface.outputs, plan.shapes, strict=True)
    ]
    tensors = [*inputs, *outputs]
    shared, local = _scratch(plan.shared_bytes), _scratch(plan.local_bytes)
    run = kernel.runner(dims, [tensor.ctypes.data for tensor in tensors])

    def call(kept: object = (tensors, shared, local)) -> int:  # memory lives as long as this
        return run(_aligned(shared), _aligned(local), 0, kernel.n_phases, 0, 1)

    return call


def _scratch(n_bytes: int) -> np.ndarray:
    return np.empty(n_bytes + CACHE_LINE, np.uint8)


def _aligned(scratch: np.ndarray) -> int:
    """The first address of a cache line in ``scratch``."""
    return -(-scratch.ctypes.data // CACHE_LINE) * CACHE_LINE
