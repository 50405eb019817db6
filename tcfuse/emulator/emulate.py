"""A whole kernel in the emulator: its launches, as planned for given input shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcfuse.emulator.launches import TIME_LIMIT_S, Argument, Launches, Run
from tcfuse.emulator.memory import ALIGNMENT
from tcfuse.emulator.native_interface import READ_ONLY, UNORDERED, UNWRITTEN
from tcfuse.emulator.program import Program
from tcfuse.emulator.report import Report, Traffic
from tcfuse.errors import InputError
from tcfuse.packed import memory_for, packed, unpacked
from tcfuse.targets.base import CudaSource
from tcfuse.targets.geometry import MULTIPROCESSORS, SHARED_LIMIT, Step, plan
from tcfuse.targets.toolchain import Toolchain
from tcfuse.types import Array, DType


@dataclass(frozen=True)
class Emulated:
    """What a kernel did.

    Attributes:
        outputs: In the order of the interface.
        fault: Whether it found an index out of range.
        runs: Its launches, in order; the first that did not finish is the last.
    """

    outputs: tuple[Array, ...]
    fault: bool
    runs: tuple[Run, ...]

    @property
    def reports(self) -> tuple[Report, ...]:
        """What is wrong in any launch."""
        return tuple(report for run in self.runs for report in run.reports)

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """Traffic of every buffer after the last launch."""
        return self.runs[-1].buffers if self.runs else ()

    @property
    def moved_bytes(self) -> int:
        """Bytes that the launches move when each reads or writes every sector once."""
        return sum(b.read + b.written for run in self.runs for b in run.buffers)

    @property
    def requested_bytes(self) -> int:
        """Bytes that all requests ask for: what moves if no cache helps."""
        return sum(
            b.read_requested + b.written_requested for run in self.runs for b in run.buffers
        )

    @property
    def compulsory_bytes(self) -> int:
        """Bytes of the inputs that are ever read and of the outputs that are ever written."""
        tensors = [b for b in self.traffic if b.buffer not in ("scratch", "fault")]
        return sum(b.written_ever or b.read_ever for b in tensors)


def emulate(
    source: CudaSource,
    inputs: Sequence[Array],
    *,
    trace: bool = True,
    seed: int = 0,
    program: Program | None = None,
    toolchain: Toolchain | None = None,
    alignment: int = ALIGNMENT,
    shared_limit: int = SHARED_LIMIT,
    multiprocessors: int = MULTIPROCESSORS,
    limit_s: float = TIME_LIMIT_S,
) -> Emulated:
    """Run a kernel on arrays.

    Args:
        source: The kernel.
        inputs: Of the types and shapes that its interface says.
        trace: Check and count every access.
        seed: Chooses the order of blocks, warps and lanes.
        program: The compiled kernel, possibly among others; compiled here when not given.
        toolchain: Compiler and cache to compile it with.
        alignment: Of the addresses of all tensors, in bytes; a power of two up to 256.  What
            an allocator gives, scratch, has the largest.
        shared_limit: Bytes of shared memory that a block may ask for.
        multiprocessors: Of the device that launches are planned for.
        limit_s: Seconds after which a launch is stopped.

    Raises:
        InputError: The inputs do not fit the interface.
        ToolchainError: The kernel does not compile.
    """
    _check_types(source, inputs)
    planned = plan(
        source,
        [array.shape for array in inputs],
        alignment=alignment,
        shared_limit=shared_limit,
        multiprocessors=multiprocessors,
    )
    program = program or compile_source(source, trace=trace, toolchain=toolchain)
    kinds = list(zip(source.interface.outputs, planned.output_shapes, strict=True))
    outputs = [_unset(shape, port.type.dtype) for port, shape in kinds]
    scratch = _unset((planned.scratch_bytes,), DType.UINT8)
    fault = np.zeros(1, np.int32)
    tensors = [*map(packed, inputs), *outputs]
    args: list[Argument] = [*tensors, scratch, fault, *planned.sizes.values()]
    ports = (*source.interface.inputs, *source.interface.outputs)
    names = [*(port.name for port in ports), "scratch", "fault", *planned.sizes]
    flags = [READ_ONLY] * len(inputs) + [UNWRITTEN] * (len(outputs) + 1) + [UNORDERED]
    flags += [0] * len(planned.sizes)
    runs: list[Run] = []
    alignments = [alignment] * len(tensors) + [ALIGNMENT] * (len(args) - len(tensors))
    with program.launches(args, names, flags, alignments) as launches:
        for step in planned.steps:
            if all(run.finished for run in runs):
                runs.append(_launched(launches, step, seed, limit_s))
    made = zip(outputs, kinds, strict=True)
    results = (unpacked(a.reshape(-1), port.type.dtype, shape) for a, (port, shape) in made)
    return Emulated(tuple(results), bool(fault[0]), tuple(runs))


def _launched(launches: Launches, step: Step, seed: int, limit_s: float) -> Run:
    return launches.launch(step.symbol, step.grid, step.block, step.shared_bytes, seed, limit_s)


def compile_source(
    source: CudaSource, *, trace: bool, toolchain: Toolchain | None = None
) -> Program:
    """The program of one kernel alone.

    Raises:
        ToolchainError: It does not compile.
    """
    symbols = [launch.symbol for launch in source.launches]
    return Program.build(
        source.text, symbols, trace=trace, contract=source.contract, toolchain=toolchain
    )


def _unset(shape: tuple[int, ...], dtype: DType) -> Array:
    """Memory for a tensor, with bits that are not a number in any floating type."""
    array = memory_for(dtype, shape)
    array.reshape(-1).view(np.uint8)[...] = 0xFF
    return array


def _check_types(source: CudaSource, inputs: Sequence[Array]) -> None:
    for port, array in zip(source.interface.inputs, inputs, strict=False):
        if array.dtype != port.type.dtype.numpy:
            wanted = port.type.dtype.tc
            raise InputError(f"{port.name!r} is {array.dtype}, but the kernel takes {wanted}")
