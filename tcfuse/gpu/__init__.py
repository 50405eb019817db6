"""Launching and timing kernels on a GPU without ONNX Runtime.

``device()`` opens one; ``run`` computes a kernel's outputs; ``Call`` keeps what it needs on the
device, for ``launched`` and ``captured``, which ``interleave`` times.
"""

from __future__ import annotations

from pathlib import Path

from tcfuse.errors import OptionError
from tcfuse.gpu.device import Device, Facts
from tcfuse.gpu.kernel import Call, LoadedKernel, run
from tcfuse.gpu.timing import (
    BLOCK_SECONDS,
    GRAPH_CALLS,
    Times,
    captured,
    interleave,
    launched,
)

__all__ = [
    "BLOCK_SECONDS",
    "GRAPH_CALLS",
    "Call",
    "Device",
    "Facts",
    "LoadedKernel",
    "Times",
    "captured",
    "device",
    "interleave",
    "launched",
    "run",
]

BACKENDS = ("driver", "pycuda")


def device(ordinal: int = 0, backend: str = "driver", library: Path | None = None) -> Device:
    """A GPU of this machine.

    Args:
        ordinal: Which, counted as CUDA counts.
        backend: ``driver`` (libcuda by ctypes) or ``pycuda``.
        library: Path of libcuda, for ``driver``; the system's when there is none.

    Raises:
        OptionError: There is no such backend.
        DeviceError: There is no driver or no such GPU, or pycuda is not installed.
    """
    if backend == "driver":
        from tcfuse.gpu.driver import DriverDevice

        return DriverDevice(ordinal, library)
    if backend == "pycuda":
        from tcfuse.gpu.pycuda_backend import PycudaDevice

        return PycudaDevice(ordinal)
    raise OptionError(f"there is no backend {backend!r}; there are {', '.join(BACKENDS)}")
