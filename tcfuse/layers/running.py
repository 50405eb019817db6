"""One call of a kernel: its scratch, and its parts on threads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import getpid

import numpy as np

from tcfuse.ort.direct import STACK_SCRATCH, DirectKernel, Plan

CACHE_LINE = 64


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A call of a kernel that can be repeated, but not run twice at the same time.

    Attributes:
        runner: What ``DirectKernel.runner`` made of the arrays.
        tensors: The arrays, which live as long as this does.
        parts: For each phase, how many parts of it run at the same time; none when there is
            nothing to run.
        shared: Scratch of the call.
        local: Scratch of each part.
    """

    runner: Callable[..., int]
    tensors: Sequence[np.ndarray]
    parts: tuple[int, ...]
    shared: np.ndarray | None
    local: np.ndarray | None

    @classmethod
    def of(
        cls,
        kernel: DirectKernel,
        plan: Plan,
        dims: Sequence[int],
        tensors: Sequence[np.ndarray],
        threads: int = 1,
    ) -> Bound:
        """A call that fills the outputs.

        Args:
            kernel: What to run.
            plan: What it said it needs for these shapes.
            dims: The dimensions of all inputs.
            tensors: Contiguous arrays: the inputs, then the outputs.
            threads: Parts to run at the same time, at most.
        """
        runner = kernel.runner(dims, [tensor.ctypes.data for tensor in tensors])
        parts, most = (1,) * len(plan.parts), 1
        if threads > 1:
            parts = tuple(max(min(threads, n), 1) for n in plan.parts)
            most = max(parts)
        if plan.empty:
            parts = ()
        shared = _scratch(plan.shared_bytes, 1, always=most > 1)
        return cls(runner, tensors, parts, shared, _scratch(plan.local_bytes, most))

    def __call__(self) -> bool:
        """Fill the outputs; false when an index was out of range."""
        shared = _address(self.shared)
        if max(self.parts, default=1) == 1:  # the phases follow each other in one call
            local = _address(self.local)
            return not self.runner(shared, local, 0, len(self.parts), 0, 1)
        return all(
            _run_phase(self.runner, phase, parts, shared, self.local)
            for phase, parts in enumerate(self.parts)
        )


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

    others = (
        [_pool(parts - 1, getpid()).submit(part, k) for k in range(parts - 1)]
        if parts > 1
        else []
    )
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
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads of this process: one that was forked has none of its parent's."""
    del process
    return ThreadPoolExecutor(threads, thread_name_prefix="tcfuse")
