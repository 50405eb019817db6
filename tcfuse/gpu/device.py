"""What launching and timing kernels needs of a GPU; there are two ways to get it.

``driver.DriverDevice`` calls libcuda by ctypes and needs nothing but the driver;
``pycuda_backend.PycudaDevice`` goes through pycuda.  Both use the device's primary context, so
that memory of PyTorch and ONNX Runtime can be given to kernels, and one stream of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

Module: TypeAlias = Any  # a backend's own; only it looks inside
Function: TypeAlias = Any
Event: TypeAlias = Any
Graph: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Facts:
    """What a device is.

    Attributes:
        name: As its maker calls it.
        arch: ``sm_90``.
        multiprocessors: How many it has.
        shared_limit: Bytes of shared memory that a block may ask for.
        memory_bytes: Of global memory.
        l2_bytes: Of the cache before it.
        driver: Newest CUDA version that the driver knows, ``13.0``.
    """

    name: str
    arch: str
    multiprocessors: int
    shared_limit: int
    memory_bytes: int
    l2_bytes: int
    driver: str


class Device(Protocol):
    """A GPU with one stream; work is done in the order in which it is asked for.

    Every method raises ``DeviceError`` when the driver refuses; a fault of a kernel shows in
    any call after it.
    """

    facts: Facts
    stream: int
    """The handle of the stream, for libraries that take one."""

    def allocate(self, n_bytes: int) -> int:
        """The address of new global memory, a multiple of 256; of at least one byte."""

    def free(self, address: int) -> None:
        """Give memory back."""

    def upload(self, address: int, array: np.ndarray) -> None:
        """Copy a contiguous array to the device."""

    def download(self, array: np.ndarray, address: int) -> None:
        """Fill a contiguous array from the device, after all work before."""

    def clear(self, address: int, n_bytes: int) -> None:
        """Set every byte to 0."""

    def load(self, image: bytes) -> Module:
        """A module from a cubin or PTX text."""

    def unload(self, module: Module) -> None:
        """Forget a module, whose functions end with it."""

    def function(self, module: Module, symbol: str, dynamic_shared: int) -> Function:
        """A kernel of a module, whose blocks may have that much dynamic shared memory."""

    def launch(
        self,
        function: Function,
        grid: int,
        block: int,
        shared_bytes: int,
        arguments: Sequence[int],
    ) -> None:
        """Start a kernel whose parameters are all of 64 bits: addresses and ``int64_t``."""

    def synchronize(self) -> None:
        """Wait until all work is done."""

    def record(self) -> Event:
        """A mark in the stream."""

    def seconds(self, begin: Event, end: Event) -> float:
        """Time from one mark to another, waiting for both; they are gone then."""

    def capture(self, work: Callable[[], None]) -> Graph:
        """The launches that ``work`` asks for, as a CUDA graph; they do not run now."""

    def replay(self, graph: Graph) -> None:
        """Run a graph."""

    def drop(self, graph: Graph) -> None:
        """Forget a graph."""

    def close(self) -> None:
        """Give the stream and the context back; nothing can be called any more."""
