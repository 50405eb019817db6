"""One call of a kernel: its scratch, and its parts on threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tcfuse.ort.direct import STACK_SCRATCH, DirectKernel, Plan

CACHE_LINE = 64


def run(
    kernel: DirectKernel,
    plan: Plan,
    dims: Sequence[int],
    tensors: Sequence[np.ndarray],
    threads: int = 1,
) -> bool:
    """Fill the outputs; false when an index was out of range.

    Args:
        kernel: What to run.
        plan: What it said it needs for these shapes.
        dims: The dimensions of all inputs.
        tensors: Contiguous arrays: the inputs, then the outputs.
        threads: Parts to run at the same time, at most.
    """
    if plan.empty:
        return True
    runner = kernel.runner(dims, [tensor.ctypes.data for tensor in tensors])
    parts = min(threads, max(plan.parts))
    shared = _scratch(plan.shared_bytes, 1, always=parts > 1)
    local = _scratch(plan.local_bytes, parts)
    if parts == 1:
        return not runner(_address(shared), _address(local), 0, len(plan.parts), 0, 1)
    for phase, worth in enumerate(plan.parts):
        if not _run_phase(runner, phase, min(parts, worth), _address(shared), local):
            return False
    return True


def _run_phase(
    runner: Callable[..., int],
    phase: int,
    parts: int,
    shared: int | None,
    local: np.ndarray | None,
) -> bool:
    """Run the parts of one phase, the last of them on this thread."""

    def part(k: int) -> int:
        mine = None if local is None else _address(local[k])
        return runner(shared, mine, phase, phase + 1, k, parts)

    others = [_pool(parts - 1).submit(part, k) for k in range(parts - 1)] if parts > 1 else []
    faults = [part(parts - 1)]
    faults += [other.result() for other in others]
    return not any(faults)


def _scratch(n_bytes: int, parts: int, *, always: bool = False) -> np.ndarray | None:
    """A row for each part; none when the stack serves."""
    if n_bytes <= (0 if always else STACK_SCRATCH):
        return None
    return np.empty((parts, -(-n_bytes // CACHE_LINE) * CACHE_LINE), np.uint8)


def _address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="tcfuse")
