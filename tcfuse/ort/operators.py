"""What a library is made of: operators, each with a kernel for one target or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tcfuse.targets.base import CudaSource, Interface, KernelSource
from tcfuse.targets.nvrtc import Image


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """A kernel for GPUs: how it is launched, and its code."""

    source: CudaSource
    images: tuple[Image, ...]

    def __post_init__(self) -> None:
        assert self.images, f"{self.source.name} was compiled for nothing"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a library.

    Attributes:
        cpu: Its kernel for the CPU, if it has one.
        cuda: Its kernel for GPUs, if it has one.
        standby: The CPU's kernel does not pay: it serves only on machines with a GPU, where
            sessions on the CPU need some kernel too.
    """

    cpu: KernelSource | None
    cuda: CudaKernel | None = None
    standby: bool = False

    def __post_init__(self) -> None:
        assert self.cpu or self.cuda, "an operator needs a kernel"
        if self.cpu and self.cuda:
            same = self.cpu.interface == self.cuda.source.interface
            assert same, f"the kernels of {self.cpu.name} have different signatures"

    @property
    def source(self) -> KernelSource | CudaSource:
        """The kernel that the operator is named after: the CPU's, where there is one."""
        if self.cpu is not None:
            return self.cpu
        assert self.cuda is not None
        return self.cuda.source

    @property
    def name(self) -> str:
        """Its kernel's name."""
        return self.source.name

    @property
    def interface(self) -> Interface:
        """Its signature."""
        return self.source.interface


def as_operators(kernels: Sequence[KernelSource | Operator]) -> tuple[Operator, ...]:
    """Operators in their order, kernels for the CPU among them; equal names once."""
    made = (k if isinstance(k, Operator) else Operator(k) for k in kernels)
    return tuple({operator.name: operator for operator in made}.values())


@dataclass(frozen=True, slots=True)
class Naming:
    """What users of a library know its operators by.

    Attributes:
        domain: Of every operator.
        operators: Name of the operator of each kernel; a kernel that lacks has its own.
        ports: Call the inputs by their names in messages, not by their positions.
    """

    domain: str = "tcfuse"
    operators: Mapping[str, str] = field(default_factory=dict)
    ports: bool = False

    def operator(self, name: str) -> str:
        """The name of the operator of the kernel ``name``."""
        return self.operators.get(name, name)
