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
        parts: For each phase, how many parts of it run at the same time; none when there is
            nothing to run.
        shared: Address of the scratch of the call; ``None`` where the stack serves.
        local: The same for each part.
        memory: Tensors and scratch, which live as long as this does.
    """

    runner: Callable[..., int]
    parts: tuple[int, ...]
    shared: int | None
    local: tuple[int | None, ...]
    memory: Sequence[np.ndarray]

    @classmethod
    def of(
        cls,
        kernel: DirectKernel,
        plan: Plan,
        dims: Sequence[int],
        tensors: Sequence[np.ndarray],
        threads: int = 1,
        scratch: Callable[[int], np.ndarray] | None = None,
    ) -> Bound:
        """A call that fills the outputs.

        Args:
            kernel: What to run.
            plan: What it said it needs for these shapes.
            dims: The dimensions of all inputs.
            tensors: Contiguous arrays: the inputs, then the outputs.
            threads: Parts to run at the same time, at most.
            scratch: Makes memory of so many bytes, which are whole cache lines; it is asked
                for all scratch then, where else the stack serves for little.
        """
        runner = kernel.runner(dims, [tensor.ctypes.data for tensor in tensors])
        parts = plan.parts_of(threads)
        most = max(parts, default=1)
        make = scratch or _fresh
        memory = list(tensors)

        def place(n_bytes: int, *, always: bool = False) -> int | None:
            least = 0 if always or scratch is not None else STACK_SCRATCH
            if n_bytes <= least:
                return None
            memory.append(make(-(-n_bytes // CACHE_LINE) * CACHE_LINE))
            return memory[-1].ctypes.data

        shared = place(plan.shared_bytes, always=most > 1)
        local = tuple(place(plan.local_bytes) for _ in range(most))
        return cls(runner, parts, shared, local, memory)

    def __call__(self) -> bool:
        """Fill the outputs; false when an index was out of range."""
        if len(self.local) == 1:  # the phases follow each other in one call
            return not self.runner(self.shared, self.local[0], 0, len(self.parts), 0, 1)
        return all(
            _run_phase(self.runner, phase, parts, self.shared, self.local)
            for phase, parts in enumerate(self.parts)
        )


def _run_phase(
    runner: Callable[..., int],
    phase: int,
    parts: int,
    shared: int | None,
    local: Sequence[int | None],
) -> bool:
    """Run the parts of one phase, the last of them on this thread."""

    def part(k: int) -> int:
        return runner(shared, local[k], phase, phase + 1, k, parts)

    others = (
        [_pool(parts - 1, getpid()).submit(part, k) for k in range(parts - 1)]
        if parts > 1
        else []
    )
    faults = [part(parts - 1)]
    faults += [other.result() for other in others]
    return not any(faults)


def _fresh(n_bytes: int) -> np.ndarray:
    return np.empty(n_bytes, np.uint8)


@functools.cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads of this process: one that was forked has none of its parent's."""
    del process
    return ThreadPoolExecutor(threads, thread_name_prefix="tcfuse")
