"""What wisdom calls the machine that kernels run on."""

from __future__ import annotations

import ctypes
import functools

from tcfuse.errors import DeviceError
from tcfuse.processor import processor
from tcfuse.wisdom.problem import ANY_DEVICE


def device_of(target: str) -> str:
    """The processor, or the name of the first GPU; ``ANY_DEVICE`` where there is no GPU."""
    return processor() if target == "cpu" else _gpu()


@functools.cache
def _gpu() -> str:
    from tcfuse.gpu.libcuda import Libcuda  # only where kernels for GPUs are wanted

    name = ctypes.create_string_buffer(256)
    try:
        cuda = Libcuda()
        cuda.call("cuInit", 0)
        cuda.call("cuDeviceGetName", name, len(name), cuda.number("cuDeviceGet", 0))
    except DeviceError:
        return ANY_DEVICE
    return name.value.decode(errors="replace")
