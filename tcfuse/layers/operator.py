"""A definition as an ONNX operator: its names, ports and kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcfuse.interface import Port
from tcfuse.kernels import CompiledKernel
from tcfuse.targets.base import KernelSource
from tcfuse.tc.checked import CheckedDef


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a library.

    Attributes:
        name: As models call it.
        domain: As models call it.
        checked: What it computes.
        kernel: How.
    """

    name: str
    domain: str
    checked: CheckedDef
    kernel: CompiledKernel[KernelSource]

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs in their order, over the sizes of the definition."""
        return tuple(self._ports())

    def _ports(self) -> Iterator[Port]:
        """Parameters, then what outputs that are updated start from."""
        tensors = self.checked.tensors
        declared = self.checked.inputs
        started = self.checked.inout
        for port, name in zip(
            self.kernel.source.interface.inputs, (*declared, *started), strict=True
        ):
            yield Port(port.name, tensors[name])

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs in their order."""
        tensors = self.checked.tensors
        return tuple(Port(name, tensors[name]) for name in self.checked.outputs)
