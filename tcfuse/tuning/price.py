"""What a call of a kernel takes on a GPU that is not there: a roofline over its counters.

The emulator counts at small sizes; what it counts grows with the instances of the statements.
A launch takes as long as the slowest of device memory, the caches, shared memory and the
instructions around accesses, each of them as fast as the threads in flight can use it; the
others overlap with it but for a tenth; and a constant to start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcfuse.emulator import Emulated
from tcfuse.targets.geometry import Step


@dataclass(frozen=True, slots=True)
class Gpu:
    """Rates of a device; those of an A100, of whose kind the ratios are.

    Units:
        Rates are bytes a microsecond.

    Attributes:
        memory: Of device memory.
        caches: Between the second level of the caches and the multiprocessors.
        shared: Of shared memory of all multiprocessors.
        requests: Accesses of whole warps a microsecond, with the instructions around each.
        multiprocessors: How many there are.
        warps: That a multiprocessor needs in flight to use these rates.
        launch_us: What a launch takes that has nothing to do.
        barrier_us: What a barrier takes that a block waits at.
    """

    memory: float = 1.5e6
    caches: float = 5.0e6
    shared: float = 19.0e6
    requests: float = 0.08e6
    multiprocessors: int = 108
    warps: int = 16
    launch_us: float = 2.5
    barrier_us: float = 0.05


@dataclass(frozen=True, slots=True)
class Counted:
    """What one launch did in the emulator.

    Attributes:
        moved: Bytes of device memory, every sector once.
        asked: Bytes of all requests.
        shared: Bytes of shared memory, with those that conflicts waste.
        requests: Accesses of whole warps.
        barriers: That a block waits at.
    """

    moved: float
    asked: float
    shared: float
    requests: float
    barriers: float


WAVEFRONT = 128  # bytes
OVERLAP_LOST = 0.1
_RATES = {"moved": "memory", "asked": "caches", "shared": "shared", "requests": "requests"}


def counted(made: Emulated) -> list[Counted]:
    """The counters of each launch."""
    return [
        Counted(
            sum(b.read + b.written for b in run.buffers),
            sum(b.read_requested + b.written_requested for b in run.buffers),
            WAVEFRONT * sum(s.transactions for s in run.sites if s.space == "shared"),
            sum(s.requests for s in run.sites),
            run.barriers / max(run.blocks, 1),
        )
        for run in made.runs
    ]


def micros(
    launches: Sequence[Counted], steps: Sequence[Step], growth: float, gpu: Gpu | None = None
) -> float:
    """Microseconds of a call.

    Args:
        launches: What the launches did at small sizes.
        steps: The launches at the sizes that are priced.
        growth: Instances of the statements at these sizes, over those at the small ones.
        gpu: What they run on.
    """
    gpu = gpu or Gpu()
    busy_us: list[float] = [
        growth * sum(getattr(one, name) for one in launches) / getattr(gpu, rate)
        for name, rate in _RATES.items()
    ]
    slowest_us = max(busy_us)
    together_us = slowest_us + OVERLAP_LOST * (sum(busy_us) - slowest_us)
    shares = [_share(step, gpu) for step in steps] or [1.0]
    slowed = sum(1 / share for share in shares) / len(shares)
    barriers = max((one.barriers for one in launches), default=0.0)
    return together_us * slowed + gpu.launch_us * len(steps) + gpu.barrier_us * barriers


def _share(step: Step, gpu: Gpu) -> float:
    """The part of the device's rates that the threads of a launch can use."""
    warps = step.grid * -(-step.block // 32)
    wanted = gpu.multiprocessors * gpu.warps
    return min(1.0, max(warps, 1) / wanted)
