"""Kernels for GPUs, many at a time, that the emulator runs on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from tcfuse.cuda_options import CudaOptions
from tcfuse.emulator import Finding, Program, emulate
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.base import CudaSource
from tcfuse.targets.cuda import compile_kernel
from tests.targets.circumstances import Circumstances
from tests.targets.language import Ready

Arrays = Mapping[str, np.ndarray]
USUAL = (MappingOptions(), CudaOptions())


@dataclass(frozen=True, eq=False)
class EmulatedKernel:
    """A kernel that can be called; anything that the emulator finds is an error.

    Only that an index is out of range has consequences: the thread that finds it leaves, and
    others may read what it did not write.
    """

    source: CudaSource
    program: Program
    circumstances: Circumstances = field(default_factory=Circumstances)

    def __call__(
        self, inputs: Arrays, sizes: Mapping[str, int] | None = None, *, chunks: int = 3
    ) -> tuple[dict[str, np.ndarray], int]:
        """The outputs and the fault flag, as ``Compiled`` gives them.

        Args:
            inputs: By name.
            sizes: What the shapes say is checked against them.
            chunks: Chooses the order of blocks and threads.
        """
        interface = self.source.interface
        given = [np.asarray(inputs[port.name], order="C") for port in interface.inputs]
        more = asdict(self.circumstances)
        made = emulate(self.source, given, program=self.program, seed=chunks, **more)
        excused = {Finding.UNINITIALISED} if made.fault else set()
        reports = [report for report in made.reports if report.kind not in excused]
        assert not reports, "\n".join(map(str, reports))
        names = (port.name for port in interface.outputs)
        return dict(zip(names, made.outputs, strict=True)), int(made.fault)


def cuda_source(
    program: Ready, name: str, options: tuple[MappingOptions, CudaOptions] = USUAL
) -> CudaSource:
    """A program as CUDA C; ``name`` tells its functions from others."""
    return compile_kernel(program.formed, program.form.interface, name, *options).source


def emulated(sources: Sequence[CudaSource]) -> list[EmulatedKernel]:
    """Kernels that are built together."""
    texts = [source.text for source in sources]
    symbols = [launch.symbol for source in sources for launch in source.launches]
    program = Program.build(texts, symbols, trace=True)
    return [EmulatedKernel(source, program) for source in sources]
