"""CUDA graphs through libcuda; pycuda has no functions for them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress

from tcfuse.errors import DeviceError
from tcfuse.gpu.libcuda import Libcuda

THREAD_LOCAL = 1  # CUstreamCaptureMode: what other threads call meanwhile does not matter


def capture(libcuda: Libcuda, stream: int, work: Callable[[], None]) -> int:
    """What ``work`` asks of ``stream``, as an executable graph.

    Raises:
        DeviceError: ``work`` does what cannot be captured, such as allocating or waiting.
    """
    graph = ctypes.c_void_p()
    libcuda.call("cuStreamBeginCapture_v2", stream, THREAD_LOCAL)
    try:
        work()
    except BaseException:
        with suppress(DeviceError):  # it says what has been raised
            libcuda.call("cuStreamEndCapture", stream, ctypes.byref(graph))
            libcuda.call("cuGraphDestroy", graph)
        raise
    libcuda.call("cuStreamEndCapture", stream, ctypes.byref(graph))
    try:
        return libcuda.new("cuGraphInstantiateWithFlags", graph, 0)
    finally:
        libcuda.call("cuGraphDestroy", graph)


def replay(libcuda: Libcuda, graph: int, stream: int) -> None:
    """Run a graph."""
    libcuda.call("cuGraphLaunch", graph, stream)


def drop(libcuda: Libcuda, graph: int) -> None:
    """Forget a graph."""
    libcuda.call("cuGraphExecDestroy", graph)
