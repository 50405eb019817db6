"""Knobs of kernels for NVIDIA GPUs, beside those of ``MappingOptions``."""

from __future__ import annotations

from dataclasses import dataclass

from tcfuse.knob import check_knobs, knob

WARP = 32  # threads that run together


@dataclass(frozen=True, slots=True)
class CudaOptions:
    """How one kernel is mapped to a GPU; 0 lets the kernel choose by its sizes."""

    team: int = knob(
        0,
        choices=(0, 1, 8, 32, 128, 256, 512, 1024),
        unit="threads",
        doc="threads that work together on one iteration of the parallel loops",
        legal="0 or a power of two up to 1024",
        accepts=lambda n: n == 0 or (1 <= n <= 1024 and n & (n - 1) == 0),
    )
    block: int = knob(
        0,
        choices=(0, 64, 128, 256, 512, 1024),
        unit="threads",
        doc="threads of a block whose teams are smaller than a block",
        legal="0 or a power of two from 32 to 1024",
        accepts=lambda n: n == 0 or (32 <= n <= 1024 and n & (n - 1) == 0),
        matters=lambda options: options.team <= WARP,  # a larger team is a block
    )
    vector_bytes: int = knob(
        16,
        choices=(16, 8, 4),
        unit="bytes",
        doc="bytes that a thread reads or writes at once where addresses allow it",
        legal="1, 2, 4, 8 or 16",
        accepts=lambda n: n in (1, 2, 4, 8, 16),
    )
    row_groups: int = knob(
        8,
        choices=(0, 2, 4, 8, 16),
        unit="vectors",
        doc="vectors of rows that a thread keeps in registers; more go through shared memory",
        legal="0 to 64",
        accepts=lambda n: 0 <= n <= 64,
    )
    split: int = knob(
        0,
        choices=(0, 1, 64, 256, 1024, 4096),
        unit="parts",
        doc="parts of a long reduction that blocks compute on their own; 1 does not split",
        legal="0 to 2^20",
        accepts=lambda n: 0 <= n <= 1 << 20,
    )

    waves: int = knob(
        4,
        choices=(0, 1, 4, 16),
        unit="waves",
        doc="times what a device runs at once that blocks start for; 0: one for all work",
        legal="0 to 1024",
        accepts=lambda n: 0 <= n <= 1024,
    )

    def __post_init__(self) -> None:
        check_knobs(self)
