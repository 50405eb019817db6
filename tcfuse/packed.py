"""Arrays of 4 and 2 bits as ONNX stores them: several elements a byte, the first lowest.

In NumPy every element has a byte of its own; so it has inside kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcfuse.types import Array, DType


def dtype_of(array: Array) -> DType:
    """The element type of an array of a type that tcfuse has."""
    return next(d for d in DType if d.numpy == array.dtype)


def packed(array: Array) -> Array:
    """The bytes of ``array``; of a type of at least 8 bits, ``array`` itself."""
    bits = dtype_of(array).bits
    if bits >= 8:
        return array
    codes = np.ascontiguousarray(array).view(np.uint8).reshape(-1) & ((1 << bits) - 1)
    places = np.arange(0, 8, bits, dtype=np.uint8)
    rows = np.pad(codes, (0, -codes.size % places.size)).reshape(-1, places.size)
    return np.asarray(np.bitwise_or.reduce(rows << places, axis=1, dtype=np.uint8))


def unpacked(data: Array, dtype: DType, shape: Sequence[int]) -> Array:
    """The elements of type ``dtype`` that lie in ``data``, the memory of a tensor in ONNX."""
    if dtype.bits >= 8:
        return data.view(dtype.numpy).reshape(shape)
    places = np.arange(0, 8, dtype.bits, dtype=np.uint8)
    codes = (data[:, None] >> places) & ((1 << dtype.bits) - 1)
    codes = codes.reshape(-1)[: int(np.prod(shape, dtype=np.int64))].reshape(shape)
    if dtype.is_float:
        return codes.view(dtype.numpy)
    least = dtype.limits[0]
    return ((codes.astype(np.int64) - least) % (1 << dtype.bits) + least).astype(dtype.numpy)


def packed_bytes(dtype: DType, shape: Sequence[int]) -> int:
    """Bytes of a tensor in ONNX."""
    return -(-int(np.prod(shape, dtype=np.int64)) * dtype.bits // 8)


def memory_for(dtype: DType, shape: Sequence[int]) -> Array:
    """Memory for a tensor in ONNX, with anything in it."""
    if dtype.bits >= 8:
        return np.empty(shape, dtype.numpy)
    return np.empty(packed_bytes(dtype, shape), np.uint8)
