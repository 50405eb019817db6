"""The entry points of libcuda that are used, by ctypes.

Names and parameters: CUDA driver API reference, CUDA 13.0; all are in CUDA 11.4 too.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint64, c_void_p
from pathlib import Path

from tcfuse.errors import DeviceError

LIBRARY = "libcuda.so.1"

_handle = POINTER(c_void_p)
_unsigned = ctypes.c_uint
_PARAMETERS: dict[str, tuple[type, ...]] = {
    "cuInit": (_unsigned,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (_handle, c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (_handle,),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, c_ubyte, c_size_t, c_void_p),
    "cuModuleLoadData": (_handle, c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (_handle, c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (c_void_p, *[_unsigned] * 7, c_void_p, c_void_p, c_void_p),
    "cuStreamCreate": (_handle, _unsigned),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, _handle),
    "cuEventCreate": (_handle, _unsigned),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuGraphInstantiateWithFlags": (_handle, c_void_p, c_uint64),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGraphDestroy": (c_void_p,),
}

# CUdevice_attribute
MULTIPROCESSORS, L2_BYTES, MAJOR, MINOR, SHARED_LIMIT = 16, 38, 75, 76, 97
MAX_DYNAMIC_SHARED = 8  # CUfunction_attribute


class Libcuda:
    """The driver, with a method ``call`` that raises instead of returning an error.

    Args:
        path: Of the library; the system's when there is none.

    Raises:
        DeviceError: It cannot be loaded, or is too old.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        try:
            self._library = ctypes.CDLL(str(path or LIBRARY))
            self._functions = {name: getattr(self._library, name) for name in _PARAMETERS}
        except OSError as error:
            raise DeviceError(f"there is no NVIDIA driver: {error}") from error
        except AttributeError as error:
            raise DeviceError(f"the NVIDIA driver is too old: {error}") from error
        for name, parameters in _PARAMETERS.items():
            self._functions[name].argtypes = parameters
            self._functions[name].restype = c_int

    def call(self, name: str, *arguments: object) -> None:
        """Call an entry point.

        Raises:
            DeviceError: It returned an error.
        """
        status = self._functions[name](*arguments)
        if status:
            raise DeviceError(f"{name}: {self._explain(status)}")

    def new(self, name: str, *arguments: object) -> int:
        """The handle that an entry point stores where its first parameter says."""
        handle = c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle.value or 0

    def number(self, name: str, *arguments: object) -> int:
        """The integer that an entry point stores where its first parameter says."""
        kind = _PARAMETERS[name][0]._type_  # type: ignore[attr-defined]
        value = kind()
        self.call(name, ctypes.byref(value), *arguments)
        return int(value.value)

    def _explain(self, status: int) -> str:
        texts = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = c_char_p()
            getattr(self._library, name)(status, ctypes.byref(text))
            texts.append((text.value or b"unknown").decode(errors="replace"))
        return f"{texts[1]} ({texts[0]}, {status})"
