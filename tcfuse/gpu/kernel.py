"""A kernel on a device: loaded once, and bound to memory for calls that can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from tcfuse.errors import InputError
from tcfuse.gpu.device import Device, Function
from tcfuse.gpu.images import Image, choose
from tcfuse.packed import memory_for, packed, unpacked
from tcfuse.targets.base import CudaSource
from tcfuse.targets.geometry import CudaPlan, Step, plan

OUT_OF_RANGE = "an index is out of range"


class LoadedKernel:
    """A kernel whose functions a device has.

    Args:
        device: Where.
        source: What was compiled.
        images: Its compiled forms.

    Raises:
        DeviceError: No image serves the device, or the driver refuses it.
    """

    def __init__(self, device: Device, source: CudaSource, images: Sequence[Image]) -> None:
        self.device, self.source = device, source
        self._module = device.load(choose(images, device.facts.arch).data)
        self._functions: dict[tuple[str, bool], Function] = {}

    def plan(self, shapes: Sequence[Sequence[int]]) -> CudaPlan:
        """What a call with inputs of ``shapes`` needs here.

        Raises:
            InputError: The kernel is not made for these shapes.
        """
        facts = self.device.facts
        return plan(
            self.source,
            shapes,
            shared_limit=facts.shared_limit,
            multiprocessors=facts.multiprocessors,
        )

    def function(self, step: Step) -> Function:
        """The kernel that a step launches."""
        key = step.symbol, step.shared_bytes > 0
        if key not in self._functions:
            # As much as the device allows: the attribute is a limit and costs nothing.
            shared = self.device.facts.shared_limit if step.shared_bytes else 0
            self._functions[key] = self.device.function(self._module, step.symbol, shared)
        return self._functions[key]

    def close(self) -> None:
        """Unload it."""
        self._functions.clear()
        self.device.unload(self._module)


@dataclass(frozen=True, slots=True)
class _Launch:
    function: Function
    step: Step


class Call:
    """A call of a kernel with memory of its own: filled once, launched as often as wanted.

    Args:
        kernel: What to run.
        inputs: The arrays, in order.

    Raises:
        InputError: The kernel is not made for these inputs.
        DeviceError: There is not enough memory, or the driver refuses.
    """

    def __init__(self, kernel: LoadedKernel, inputs: Sequence[np.ndarray]) -> None:
        self.kernel, self.device = kernel, kernel.device
        _check_types(kernel.source, inputs)
        self.plan = kernel.plan([array.shape for array in inputs])
        self.outputs = [
            memory_for(port.type.dtype, shape)
            for port, shape in zip(
                kernel.source.interface.outputs, self.plan.output_shapes, strict=True
            )
        ]
        self._memory: list[int] = []
        try:
            dense = (np.ascontiguousarray(array) for array in inputs)
            self._arguments = self._place([packed(array) for array in dense])
            self._launches = [_Launch(kernel.function(s), s) for s in self.plan.steps]
        except BaseException:
            self.close()
            raise

    def _place(self, inputs: list[np.ndarray]) -> list[int]:
        """Addresses and sizes, in the order of the parameters of ``targets.base.Launch``."""
        sizes = [array.nbytes for array in (*inputs, *self.outputs)]
        for n_bytes in (*sizes, self.plan.scratch_bytes, 4):
            self._memory.append(self.device.allocate(n_bytes))
        for address, array in zip(self._memory, inputs, strict=False):
            self.device.upload(address, array)
        self.device.clear(self._memory[-1], 4)
        return [*self._memory, *self.plan.sizes.values()]

    def enqueue(self) -> None:
        """Launch every step; nothing waits."""
        for launch in self._launches:
            step = launch.step
            self.device.launch(
                launch.function, step.grid, step.block, step.shared_bytes, self._arguments
            )

    def read(self) -> list[np.ndarray]:
        """The outputs of the last launch.

        Raises:
            InputError: An index among the inputs was out of range.
            DeviceError: The kernel failed.
        """
        fault = np.zeros(1, np.int32)
        self.device.download(fault, self._memory[-1])
        if fault[0]:
            raise InputError(OUT_OF_RANGE)
        first = len(self.kernel.source.interface.inputs)
        for array, address in zip(self.outputs, self._memory[first:], strict=False):
            self.device.download(array, address)
        ports, shapes = self.kernel.source.interface.outputs, self.plan.output_shapes
        return [
            unpacked(array.reshape(-1), port.type.dtype, shape)
            for array, port, shape in zip(self.outputs, ports, shapes, strict=True)
        ]

    def close(self) -> None:
        """Give the memory back."""
        while self._memory:
            self.device.free(self._memory.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def run(
    source: CudaSource, images: Sequence[Image], inputs: Sequence[np.ndarray], device: Device
) -> list[np.ndarray]:
    """The outputs of a kernel.

    Raises:
        InputError: The kernel is not made for these inputs, or finds an index out of range.
        DeviceError: The device cannot run it.
    """
    kernel = LoadedKernel(device, source, images)
    try:
        with Call(kernel, inputs) as call:
            call.enqueue()
            return call.read()
    finally:
        kernel.close()


def _check_types(source: CudaSource, inputs: Sequence[np.ndarray]) -> None:
    for port, array in zip(source.interface.inputs, inputs, strict=False):
        if array.dtype != port.type.dtype.numpy:
            wanted = port.type.dtype.tc
            raise InputError(f"{port.name!r} has elements of {array.dtype}, not {wanted}")
