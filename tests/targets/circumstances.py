"""What kernels for GPUs meet: devices of all kinds, addresses of all kinds, any launch."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tcfuse.targets.base import CudaPhase, CudaSource
from tcfuse.targets.geometry import ALIGNMENT, MULTIPROCESSORS, SHARED_LIMIT

ALIGNMENTS = (1, 2, 4, 8, 16, 32, 256)  # bytes
SHARED_LIMITS = (0, 1 << 10, 48 << 10, 227 << 10)  # bytes


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Arguments of ``emulate`` that change no result.

    Attributes:
        alignment: Of the addresses of all tensors, in bytes.
        shared_limit: Bytes of shared memory that a block may ask for.
        multiprocessors: Of the device.
    """

    alignment: int = ALIGNMENT
    shared_limit: int = SHARED_LIMIT
    multiprocessors: int = MULTIPROCESSORS

    @classmethod
    def drawn(cls, source: CudaSource, rng: random.Random) -> Circumstances:
        """Some that a kernel may meet; elements are where their type can be."""
        ports = (*source.interface.inputs, *source.interface.outputs)
        widest = max(port.type.dtype.bytes for port in ports)
        alignment = rng.choice([a for a in ALIGNMENTS if a >= widest])
        return cls(alignment, rng.choice(SHARED_LIMITS), rng.choice((1, 3, MULTIPROCESSORS)))


def without_some_launches(source: CudaSource, rng: random.Random) -> CudaSource:
    """The kernel without the first launches of each phase; the last one always holds."""
    phases = (phase.launches[rng.randrange(len(phase.launches)) :] for phase in source.phases)
    return replace(source, phases=tuple(CudaPhase(launches) for launches in phases))
