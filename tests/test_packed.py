"""Elements of less than a byte in memory are where ONNX puts them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from tcfuse.packed import memory_for, packed, packed_bytes, unpacked
from tcfuse.types import DType

PACKED = [d for d in DType if d.bits < 8]
SHAPES = [(), (1,), (2,), (3,), (5, 3), (2, 4), (0,), (3, 0)]


def every(dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    values = np.arange(1 << dtype.bits) if dtype.is_signed else np.arange(1 << dtype.bits)[::-1]
    count = int(np.prod(shape))
    return np.resize(values + dtype.limits[0], count).astype(dtype.numpy).reshape(shape)


@pytest.mark.parametrize("dtype", PACKED, ids=lambda d: d.tc)
@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_are_those_of_onnx(dtype, shape):
    x = every(dtype, shape)
    data = packed(x)
    assert data.tobytes() == numpy_helper.from_array(x).raw_data
    assert data.size == packed_bytes(dtype, shape) == memory_for(dtype, shape).size
    back = unpacked(data, dtype, shape)
    assert (back.dtype, back.shape) == (x.dtype, x.shape)
    np.testing.assert_array_equal(back.astype(np.float32), x.astype(np.float32))


def test_whole_bytes_stay_as_they_are():
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert packed(x) is x
    assert packed_bytes(DType.INT16, x.shape) == x.nbytes
    assert memory_for(DType.INT16, x.shape).shape == x.shape
    np.testing.assert_array_equal(
        unpacked(x.view(np.uint8).reshape(-1), DType.INT16, (2, 3)), x
    )
