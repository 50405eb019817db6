"""How a function of a kernel is started on a GPU."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Launch:
    """One way to run a phase on a GPU: a ``__global__`` function and how it is started.

    Grids and blocks have one dimension.  The function's parameters are, in this order, a
    pointer to each input, to each output, ``char* scratch``, ``int32_t* fault`` and each size
    of the interface as ``int64_t``; all launches of a kernel have the same ones.

    Attributes:
        symbol: Name of the ``extern "C" __global__`` function.
        grid: Blocks that there is work for, a C expression over size names.  Any smaller number
            of blocks does the same work; none is started for 0 or less.
        block: Threads of a block.
        shared_bytes: Dynamic shared memory of a block, a C expression over size names.
        when: A C condition over size names and two more: ``tcf_alignment``, a power of two that
            divides every tensor's address, and ``tcf_shared_limit``, the bytes of shared memory
            that a block may ask for.
        blocks_per_multiprocessor: At most that many blocks are started for each multiprocessor
            of the device; 0 sets no limit.
    """

    symbol: str
    grid: str
    block: int
    shared_bytes: str = "0"
    when: str = "1"
    blocks_per_multiprocessor: int = 0
