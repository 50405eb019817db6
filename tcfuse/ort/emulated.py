"""Run a kernel for GPUs, in the emulator, against the operators it replaces and float64.

What the emulator finds (a race, an access out of bounds, memory that was never written) makes a
kernel wrong whatever its results are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from tcfuse.emulator import Program, emulate
from tcfuse.errors import VerificationError
from tcfuse.ort.feeds import Feed
from tcfuse.ort.verify import Answer, Subject, Verification, compare_with_original
from tcfuse.targets.base import CudaSource
from tcfuse.targets.toolchain import Toolchain

MOST_ELEMENTS = 1 << 18  # of all inputs of one run
MOST_FEEDS = 6
SHARED_LIMIT = 99 << 10  # bytes that a block may ask for on the smallest of today's GPUs


def verify_emulated(subject: Subject, source: CudaSource, toolchain: Toolchain) -> Verification:
    """Compare one kernel with its original on a few small feeds.

    Raises:
        ToolchainError: The emulator cannot be built.
    """
    symbols = [launch.symbol for launch in source.launches]
    program = Program.build(
        source.text, symbols, trace=True, contract=source.contract, toolchain=toolchain
    )

    def answer(inputs: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
        done = emulate(
            source, list(inputs.values()), program=program, shared_limit=SHARED_LIMIT
        )
        if done.reports:
            raise VerificationError(str(done.reports[0]))
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
