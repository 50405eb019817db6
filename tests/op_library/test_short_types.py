"""Casts to and from the types of less than two bytes, bit by bit as ONNX Runtime has them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tcfuse.types import DType
from tests.op_library.test_against_onnxruntime import compare

pytestmark = pytest.mark.ort

FLOAT8 = [DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ]
NAMES = [d.tc for d in FLOAT8]


def telling(dtype: DType) -> np.ndarray:
    """Every value, what lies between two and beside that, what lies beyond all, and NaN."""
    known = np.arange(256, dtype=np.uint8).view(dtype.numpy).astype(np.float32)
    known = np.unique(known[np.isfinite(known)])
    middle = (known[1:] + known[:-1]) / 2
    beside = [np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf)]
    beyond = known[-1] * np.linspace(1, 3, 64, dtype=np.float32)
    ends = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30])
    return np.concatenate([known, middle, *beside, beyond, -beyond, ends]).astype(np.float32)


def misread(dtype: DType, x: np.ndarray) -> np.ndarray:
    """Where ONNX Runtime has neither the NaN nor the infinity of ONNX's table."""
    low, high = {"float8e4m3fn": (480, 496), "float8e5m2": (61440, 65536)}.get(dtype.tc, (1, 1))
    size = np.abs(x.astype(np.float64))
    return (size >= low) & (size < high)


@pytest.mark.parametrize("dtype", FLOAT8, ids=NAMES)
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("source", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_casts_to_floats_of_a_byte(run, dtype, saturate, source):
    with np.errstate(over="ignore"):
        x = telling(dtype).astype(source)
    if not saturate:
        x = x[~misread(dtype, x)]
    compare(run, "Cast", 19, [x], {"to": dtype.onnx, "saturate": saturate})


@pytest.mark.parametrize("dtype", FLOAT8, ids=NAMES)
@pytest.mark.parametrize("target", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_casts_from_floats_of_a_byte(run, dtype, target):
    x = np.arange(256, dtype=np.uint8).view(dtype.numpy)
    to = next(d for d in DType if d.numpy == np.dtype(target)).onnx
    compare(run, "Cast", 19, [x], {"to": to})


@pytest.mark.parametrize("dtype", FLOAT8, ids=NAMES)
@pytest.mark.parametrize("integer", [np.int8, np.uint8, np.int32, np.int64, np.uint32, bool])
def test_casts_between_integers_and_floats_of_a_byte(run, dtype, integer):
    x = np.arange(-128, 128).astype(integer)
    compare(run, "Cast", 19, [x], {"to": dtype.onnx})
    y = np.float32([0, 0.25, 1, -1.5, 7, 100]).astype(dtype.numpy)
    to = next(d for d in DType if d.numpy == np.dtype(integer)).onnx
    compare(run, "Cast", 19, [y], {"to": to})


@pytest.mark.parametrize("source", FLOAT8, ids=NAMES)
@pytest.mark.parametrize("target", FLOAT8, ids=NAMES)
def test_casts_between_floats_of_a_byte(run, source, target):
    x = np.arange(256, dtype=np.uint8).view(source.numpy)
    compare(run, "Cast", 19, [x], {"to": target.onnx})


@pytest.mark.parametrize("dtype", FLOAT8, ids=NAMES)
@pytest.mark.parametrize("saturate", [0, 1])
def test_quantization_to_floats_of_a_byte(run, dtype, saturate):
    x = telling(dtype)
    x = x if saturate else x[~misread(dtype, x)]
    zero, attributes = np.zeros((), dtype.numpy), {"saturate": saturate}
    compare(run, "QuantizeLinear", 19, [x, np.float32(1), zero], attributes)
    scale = np.float32([0.5, 3, 1e-3])
    zeros, attributes = np.zeros(3, dtype.numpy), {"axis": 0}
    compare(run, "QuantizeLinear", 19, [np.stack([x, x * 4, x]), scale, zeros], attributes)
    half = np.float16([0.25, -3, 100])
    compare(run, "QuantizeLinear", 21, [half, np.float16(0.1)], {"output_dtype": dtype.onnx})


@pytest.mark.parametrize("dtype", FLOAT8, ids=NAMES)
def test_dequantization_of_floats_of_a_byte(run, dtype):
    x = np.arange(256, dtype=np.uint8).view(dtype.numpy)
    for scale in (np.float32(0.3), np.float16(0.3)):
        compare(run, "DequantizeLinear", 19, [x, scale, np.zeros((), dtype.numpy)])
    blocked = x.reshape(4, 64)
    scales = np.linspace(0.1, 2, 4 * 16, dtype=np.float32).reshape(4, 16)
    compare(run, "DequantizeLinear", 21, [blocked, scales], {"axis": 1, "block_size": 4})


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("rounding", ["up", "down", "nearest"])
@pytest.mark.parametrize("source", [np.float32, np.float16, np.float64, np.int32])
def test_casts_to_powers_of_two(run, saturate, rounding, source):
    codes = np.arange(1, 255, dtype=np.uint32) << 23
    offsets = np.array([0, 1, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFF], np.uint32)
    tiny = np.uint32([0, 1, 0x3FFFFF, 0x400000, 0x400001, 0x5FFFFF, 0x600000, 0x7FFFFF])
    x = np.concatenate([(codes[:, None] + offsets).ravel(), tiny]).view(np.float32)
    with np.errstate(all="ignore"):
        x = np.concatenate([x, np.float32([-1, -0.0, np.nan, np.inf, -np.inf])]).astype(source)
    attributes = {"to": DType.FLOAT8E8M0.onnx, "saturate": saturate, "round_mode": rounding}
    compare(run, "Cast", 25, [x], attributes)


INTEGERS = [DType.INT4, DType.UINT4, DType.INT2, DType.UINT2]


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.tc)
@pytest.mark.parametrize(
    "source", [np.float32, np.float16, np.float64, np.int8, np.uint8, np.int32, np.int64, bool]
)
def test_casts_to_integers_of_less_than_a_byte(run, dtype, source):
    x = np.array([*range(-40, 41), 0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6, 7.5, -8.5, 300, 255])
    compare(run, "Cast", 25, [x.astype(source)], {"to": dtype.onnx})


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.tc)
@pytest.mark.parametrize("target", ["float", "float16", "int8", "uint8", "int64", "bool"])
def test_casts_from_integers_of_less_than_a_byte(run, dtype, target):
    least, largest = dtype.limits
    x = np.arange(least, largest + 1).astype(dtype.numpy)
    to = DType.from_tc(target)
    assert to is not None
    compare(run, "Cast", 25, [x], {"to": to.onnx})


@pytest.mark.parametrize("source", INTEGERS, ids=lambda d: d.tc)
@pytest.mark.parametrize("target", INTEGERS, ids=lambda d: d.tc)
def test_casts_between_integers_of_less_than_a_byte(run, source, target):
    least, largest = source.limits
    x = np.arange(least, largest + 1).astype(source.numpy)
    compare(run, "Cast", 25, [x], {"to": target.onnx})


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.tc)
def test_quantization_to_integers_of_less_than_a_byte(run, dtype):
    x = np.linspace(-20, 20, 161, dtype=np.float32)
    for zero in dtype.limits:
        offset = np.array(zero, dtype.numpy)
        compare(run, "QuantizeLinear", 25, [x, np.float32(0.5), offset])
    rows = x[:160].reshape(4, 40)
    zeros = np.zeros(4, dtype.numpy)
    scales = np.float32([0.125, 1, 2, 3])
    compare(run, "QuantizeLinear", 25, [rows, scales, zeros], {"axis": 0})
    blocks = np.exp2(np.arange(20) % 4 - 2).astype(np.float32).reshape(4, 5)
    attributes = {"axis": 1, "block_size": 8, "output_dtype": dtype.onnx}
    compare(run, "QuantizeLinear", 25, [rows, blocks], attributes)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.tc)
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_dequantization_of_integers_of_less_than_a_byte(run, dtype, kind):
    x = np.resize(np.arange(16) + int(dtype.limits[0]), 60).astype(dtype.numpy).reshape(3, 20)
    compare(run, "DequantizeLinear", 25, [x, np.array(0.3, kind), np.array(1, dtype.numpy)])
    zeros = np.arange(3).astype(dtype.numpy)
    compare(run, "DequantizeLinear", 25, [x, np.array([1, 2, 3], kind), zeros], {"axis": 0})
    blocks = np.linspace(0.5, 2, 15).astype(kind).reshape(3, 5)
    compare(run, "DequantizeLinear", 25, [x, blocks], {"axis": 1, "block_size": 4})


@pytest.mark.parametrize("target", [np.float32, np.float16, np.float64])
def test_casts_from_powers_of_two(run, target):
    x = np.arange(256, dtype=np.uint8).view(DType.FLOAT8E8M0.numpy)
    to = next(d for d in DType if d.numpy == np.dtype(target)).onnx
    compare(run, "Cast", 25, [x], {"to": to})
