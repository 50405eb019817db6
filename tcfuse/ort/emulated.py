"""Run a kernel for GPUs, in the emulator, against the operators it replaces and float64.

What the emulator finds (a race, an access out of bounds, memory that was never written) makes a
kernel wrong whatever its results are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from tcfuse.emulator import Emulated, emulate
from tcfuse.emulator.emulate import compile_source
from tcfuse.errors import VerificationError
from tcfuse.ort.feeds import Feed
from tcfuse.ort.verify import Answer, Subject, Verification, compare_with_original
from tcfuse.targets.base import CudaSource
from tcfuse.targets.toolchain import Toolchain

MOST_ELEMENTS = 1 << 18  # of all inputs of one run
MOST_FEEDS = 6
SHARED_LIMIT = 99 << 10  # bytes that a block may ask for on the smallest of today's GPUs


def verify_emulated(
    subject: Subject,
    source: CudaSource,
    toolchain: Toolchain,
    watch: Callable[[Emulated], None] | None = None,
) -> Verification:
    """Compare one kernel with its original on a few small feeds.

    Args:
        subject: Where it is used.
        source: The kernel.
        toolchain: What compiles it for the emulator.
        watch: Is given every run.

    Raises:
        ToolchainError: It does not compile.
    """
    program = compile_source(source, trace=True, toolchain=toolchain)

    def answer(inputs: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
        done = emulate(
            source, list(inputs.values()), program=program, shared_limit=SHARED_LIMIT
        )
        if watch is not None:
            watch(done)
        if done.reports:
            more = f" (and {len(done.reports) - 1} more)" if done.reports[1:] else ""
            raise VerificationError(f"{done.reports[0]}{more}")
        if done.fault:
            raise VerificationError("an index is out of range")
        return done.outputs

    def opened(_: ir.Model) -> Answer:
        return answer

    return compare_with_original(subject, opened, small)


def small(given: Iterable[Feed]) -> Iterator[Feed]:
    """The first few feeds that do not take long; a single size may leave none."""
    found = 0
    for feed in given:
        if sum(array.size for array in feed.arrays) <= MOST_ELEMENTS:
            yield feed
            found += 1
        if found == MOST_FEEDS:
            return
