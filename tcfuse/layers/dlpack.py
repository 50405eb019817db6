"""Tensors of other libraries as NumPy arrays on the same memory, and back.

NumPy's own ``from_dlpack`` does not know bfloat16, so the structure is read here.  The capsule
is not consumed: it lives as long as the array does, and then frees what it holds itself.

Source: DLPack's ``dlpack.h``, version 1.1, and "Python Specification for DLPack".
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tcfuse.errors import InputError

CPU_MEMORY = {1: "CPU", 3: "CUDA host", 11: "ROCm host"}  # DLDeviceType
DEVICES = {2: "a CUDA GPU", 8: "a Metal GPU", 10: "a ROCm GPU", 14: "a oneAPI device"}
BFLOAT, BOOL = 4, 6
KINDS = {0: "i", 1: "u", 2: "f"}  # DLDataTypeCode
READ_ONLY = 1
NEWEST = (1, 0)  # the version we read


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_named = ctypes.pythonapi.PyCapsule_IsValid
_named.restype, _named.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def is_tensor(value: object) -> bool:
    """Whether ``value`` offers its memory through DLPack."""
    return hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")


def as_array(value: Any, what: str) -> np.ndarray:
    """An array on the memory of ``value``.

    Args:
        value: Anything with ``__dlpack__``.
        what: What messages call it.

    Raises:
        InputError: It is not in memory that the CPU reads, or its elements have no NumPy type.
    """
    device = int(value.__dlpack_device__()[0])
    if device not in CPU_MEMORY:
        where = DEVICES.get(device, f"a device of DLPack type {device}")
        raise InputError(f"{what} is on {where}; kernels are for the CPU: copy it there first")
    try:
        capsule = value.__dlpack__(max_version=NEWEST)
    except TypeError:  # a producer of before version 1
        capsule = value.__dlpack__()
    read_only = False
    if _named(capsule, b"dltensor_versioned"):
        whole = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        tensor, read_only = whole.tensor, bool(whole.flags & READ_ONLY)
    else:
        tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    array = _array(tensor, capsule, what)
    array.flags.writeable = array.flags.writeable and not read_only
    return array


def _array(tensor: _Tensor, owner: object, what: str) -> np.ndarray:
    dtype = _dtype(tensor, what)
    shape = tuple(tensor.shape[: tensor.ndim])
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = _strides(tensor, shape, dtype.itemsize)
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    first = sum(step for step in steps if step < 0)
    n_bytes = sum(step for step in steps if step > 0) - first + dtype.itemsize
    address = tensor.data + tensor.byte_offset + first
    memory = (ctypes.c_char * n_bytes).from_address(address)
    memory.owner = owner  # the array holds the memory
    return np.ndarray(shape, dtype, memory, -first, strides)


def _strides(tensor: _Tensor, shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Bytes from one element to the next in each dimension; absent strides are row-major."""
    if tensor.strides:
        return tuple(stride * itemsize for stride in tensor.strides[: tensor.ndim])
    found = [itemsize]
    for size in reversed(shape[1:]):
        found.insert(0, found[0] * size)
    return tuple(found[: len(shape)])


def _dtype(tensor: _Tensor, what: str) -> np.dtype:
    if tensor.lanes == 1 and tensor.bits % 8 == 0:
        if tensor.code == BOOL and tensor.bits == 8:
            return np.dtype(np.bool_)
        found: np.dtype = np.dtype(ml_dtypes.bfloat16)
        if tensor.code == BFLOAT and tensor.bits == 16:
            return found
        if tensor.code in KINDS and tensor.bits in (8, 16, 32, 64):
            return np.dtype(f"{KINDS[tensor.code]}{tensor.bits // 8}")
    raise InputError(
        f"{what} has elements of DLPack type {tensor.code} with {tensor.bits} bits, "
        "which no definition takes"
    )


def library_of(values: Sequence[object]) -> Any:
    """The module that all arrays among ``values`` come from, if it has ``from_dlpack``."""
    found: Any = None
    for value in values:
        if isinstance(value, bool | int | float):
            continue
        if type(value) is np.ndarray or not is_tensor(value):
            return None
        module = _module(value)
        if module is None or (found is not None and module is not found):
            return None
        found = module
    return found


def _module(value: Any) -> Any:
    if hasattr(value, "__array_namespace__"):
        module = value.__array_namespace__()
    else:
        module = sys.modules.get(type(value).__module__.partition(".")[0])
    return module if hasattr(module, "from_dlpack") and module is not np else None


def give(array: np.ndarray, library: Any) -> Any:
    """``array`` as a tensor of ``library`` on the same memory where it can be one."""
    try:
        return library.from_dlpack(array)
    except (BufferError, TypeError, RuntimeError):  # NumPy does not export bfloat16
        try:
            return library.asarray(array)
        except (AttributeError, TypeError, RuntimeError):
            return array
