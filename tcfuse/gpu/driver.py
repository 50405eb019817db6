"""A device through the driver API by ctypes: all it needs is libcuda."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tcfuse.errors import DeviceError
from tcfuse.gpu import graphs
from tcfuse.gpu.device import Facts
from tcfuse.gpu.libcuda import (
    L2_BYTES,
    MAJOR,
    MAX_DYNAMIC_SHARED,
    MINOR,
    MULTIPROCESSORS,
    SHARED_LIMIT,
    Libcuda,
)


class DriverDevice:
    """A GPU of this machine; see ``device.Device`` for the methods.

    Args:
        ordinal: Which, counted as CUDA counts.
        library: Path of libcuda; the system's when there is none.

    Raises:
        DeviceError: There is no driver, or no such GPU.
    """

    def __init__(self, ordinal: int = 0, library: Path | str | None = None) -> None:
        self._cuda = cuda = Libcuda(library)
        cuda.call("cuInit", 0)
        count = cuda.number("cuDeviceGetCount")
        if ordinal >= count:
            raise DeviceError(f"there is no GPU {ordinal}: {count} can be seen")
        self._device = cuda.number("cuDeviceGet", ordinal)
        self.facts = self._facts()
        context = cuda.new("cuDevicePrimaryCtxRetain", self._device)
        cuda.call("cuCtxPushCurrent_v2", context)
        # A blocking stream: it waits for, and is waited for by, what uses the default stream.
        self.stream = cuda.new("cuStreamCreate", 0)

    def _facts(self) -> Facts:
        cuda, device = self._cuda, self._device

        def attribute(which: int) -> int:
            return cuda.number("cuDeviceGetAttribute", which, device)

        name = ctypes.create_string_buffer(256)
        cuda.call("cuDeviceGetName", name, len(name), device)
        version = cuda.number("cuDriverGetVersion")
        return Facts(
            name=name.value.decode(errors="replace"),
            arch=f"sm_{attribute(MAJOR)}{attribute(MINOR)}",
            multiprocessors=attribute(MULTIPROCESSORS),
            shared_limit=attribute(SHARED_LIMIT),
            memory_bytes=cuda.number("cuDeviceTotalMem_v2", device),
            l2_bytes=attribute(L2_BYTES),
            driver=f"{version // 1000}.{version % 1000 // 10}",
        )

    def allocate(self, n_bytes: int) -> int:
        return self._cuda.number("cuMemAlloc_v2", max(n_bytes, 1))

    def free(self, address: int) -> None:
        self._cuda.call("cuMemFree_v2", address)

    def upload(self, address: int, array: np.ndarray) -> None:
        assert array.flags.c_contiguous
        if array.nbytes:
            data = array.ctypes.data
            self._cuda.call("cuMemcpyHtoDAsync_v2", address, data, array.nbytes, self.stream)
            self.synchronize()  # or the caller could change the array too early

    def download(self, array: np.ndarray, address: int) -> None:
        assert array.flags.c_contiguous
        if array.nbytes:
            data = array.ctypes.data
            self._cuda.call("cuMemcpyDtoHAsync_v2", data, address, array.nbytes, self.stream)
        self.synchronize()

    def clear(self, address: int, n_bytes: int) -> None:
        if n_bytes:
            self._cuda.call("cuMemsetD8Async", address, 0, n_bytes, self.stream)

    def load(self, image: bytes) -> int:
        return self._cuda.new("cuModuleLoadData", image + b"\0")  # PTX is a string of C

    def unload(self, module: int) -> None:
        self._cuda.call("cuModuleUnload", module)

    def function(self, module: int, symbol: str, dynamic_shared: int) -> int:
        found = self._cuda.new("cuModuleGetFunction", module, symbol.encode())
        if dynamic_shared:
            self._cuda.call("cuFuncSetAttribute", found, MAX_DYNAMIC_SHARED, dynamic_shared)
        return found

    def launch(
        self, function: int, grid: int, block: int, shared_bytes: int, arguments: Sequence[int]
    ) -> None:
        values = (ctypes.c_int64 * len(arguments))(*arguments)
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * len(arguments))(
            *range(first, first + 8 * len(arguments), 8)
        )
        self._cuda.call(
            *("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, shared_bytes),
            *(self.stream, places, None),
        )

    def synchronize(self) -> None:
        self._cuda.call("cuStreamSynchronize", self.stream)

    def record(self) -> int:
        event = self._cuda.new("cuEventCreate", 0)
        self._cuda.call("cuEventRecord", event, self.stream)
        return event

    def seconds(self, begin: int, end: int) -> float:
        self._cuda.call("cuEventSynchronize", end)
        elapsed = ctypes.c_float()
        self._cuda.call("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
        for event in (begin, end):
            self._cuda.call("cuEventDestroy_v2", event)
        return elapsed.value / 1e3

    def capture(self, work: Callable[[], None]) -> int:
        return graphs.capture(self._cuda, self.stream, work)

    def replay(self, graph: int) -> None:
        graphs.replay(self._cuda, graph, self.stream)

    def drop(self, graph: int) -> None:
        graphs.drop(self._cuda, graph)

    def close(self) -> None:
        self._cuda.call("cuStreamDestroy_v2", self.stream)
        self._cuda.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        self._cuda.call("cuDevicePrimaryCtxRelease_v2", self._device)
