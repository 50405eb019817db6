"""A device through pycuda, for machines where it is installed (extra ``pycuda``)."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tcfuse.errors import DeviceError
from tcfuse.gpu import graphs
from tcfuse.gpu.device import Facts
from tcfuse.gpu.libcuda import Libcuda

P = ParamSpec("P")
T = TypeVar("T")


def _raises_ours(method: Callable[P, T]) -> Callable[P, T]:
    """``method``, whose errors of pycuda are ``DeviceError``."""

    @functools.wraps(method)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return method(*arguments, **named)
        except driver().Error as error:
            raise DeviceError(str(error)) from error

    return call


@functools.cache
def driver() -> Any:
    """``pycuda.driver``.

    Raises:
        DeviceError: It is not installed, or there is no NVIDIA driver.
    """
    try:
        import pycuda.driver
    except ImportError as error:
        raise DeviceError(f"pycuda cannot be used: {error}") from error
    return pycuda.driver


class PycudaDevice:
    """A GPU of this machine; see ``device.Device`` for the methods.

    Args:
        ordinal: Which, counted as CUDA counts.

    Raises:
        DeviceError: pycuda is not installed, or there is no driver or no such GPU.
    """

    @_raises_ours
    def __init__(self, ordinal: int = 0) -> None:
        self._cuda = cuda = driver()
        cuda.init()
        if ordinal >= cuda.Device.count():
            count = cuda.Device.count()
            raise DeviceError(f"there is no GPU {ordinal}: {count} can be seen")
        device = cuda.Device(ordinal)
        self.facts = self._facts(device)
        self._context = device.retain_primary_context()
        self._context.push()
        self._stream = cuda.Stream()
        self.stream: int = self._stream.handle
        self._graphs = Libcuda()  # the library that pycuda has loaded
        self._memory: dict[int, Any] = {}
        self._open = True
        atexit.register(self.close)  # pycuda aborts the process when a context is left

    def _facts(self, device: Any) -> Facts:
        cuda = self._cuda
        which = cuda.device_attribute
        major, minor = device.compute_capability()
        version = cuda.get_driver_version()
        shared = which.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        return Facts(
            name=device.name(),
            arch=f"sm_{major}{minor}",
            multiprocessors=device.get_attribute(which.MULTIPROCESSOR_COUNT),
            shared_limit=device.get_attribute(shared),
            memory_bytes=device.total_memory(),
            l2_bytes=device.get_attribute(which.L2_CACHE_SIZE),
            driver=f"{version // 1000}.{version % 1000 // 10}",
        )

    @_raises_ours
    def allocate(self, n_bytes: int) -> int:
        memory = self._cuda.mem_alloc(max(n_bytes, 1))
        self._memory[int(memory)] = memory
        return int(memory)

    @_raises_ours
    def free(self, address: int) -> None:
        self._memory.pop(address).free()

    @_raises_ours
    def upload(self, address: int, array: np.ndarray) -> None:
        assert array.flags.c_contiguous
        if array.nbytes:
            self._cuda.memcpy_htod_async(address, _bytes(array), self._stream)
            self._stream.synchronize()  # or the caller could change the array too early

    @_raises_ours
    def download(self, array: np.ndarray, address: int) -> None:
        assert array.flags.c_contiguous
        if array.nbytes:
            self._cuda.memcpy_dtoh_async(_bytes(array), address, self._stream)
        self._stream.synchronize()

    @_raises_ours
    def clear(self, address: int, n_bytes: int) -> None:
        if n_bytes:
            self._cuda.memset_d8_async(address, 0, n_bytes, self._stream)

    @_raises_ours
    def load(self, image: bytes) -> Any:
        return self._cuda.module_from_buffer(image + b"\0")  # PTX is a string of C

    def unload(self, module: Any) -> None:
        """Nothing: pycuda unloads a module when nothing refers to it any more."""

    @_raises_ours
    def function(self, module: Any, symbol: str, dynamic_shared: int) -> Any:
        found = module.get_function(symbol)
        if dynamic_shared:
            attribute = self._cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            found.set_attribute(attribute, dynamic_shared)
        return found

    @_raises_ours
    def launch(
        self, function: Any, grid: int, block: int, shared_bytes: int, arguments: Sequence[int]
    ) -> None:
        function(
            *map(np.int64, arguments),
            grid=(grid, 1),
            block=(block, 1, 1),
            shared=shared_bytes,
            stream=self._stream,
        )

    @_raises_ours
    def synchronize(self) -> None:
        self._stream.synchronize()

    @_raises_ours
    def record(self) -> Any:
        return self._cuda.Event().record(self._stream)

    @_raises_ours
    def seconds(self, begin: Any, end: Any) -> float:
        end.synchronize()
        milliseconds: float = begin.time_till(end)
        return milliseconds / 1e3

    def capture(self, work: Callable[[], None]) -> int:
        return graphs.capture(self._graphs, self.stream, work)

    def replay(self, graph: int) -> None:
        graphs.replay(self._graphs, graph, self.stream)

    def drop(self, graph: int) -> None:
        graphs.drop(self._graphs, graph)

    @_raises_ours
    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._memory.clear()
        del self._stream
        self._context.pop()
        self._context.detach()


def _bytes(array: np.ndarray) -> np.ndarray:
    """The memory of an array, of whatever element type: pycuda knows those of NumPy only."""
    return array.reshape(-1).view(np.uint8)
