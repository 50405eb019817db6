"""Operators on quantized tensors against ONNX Runtime, on every pair of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcfuse.types import TensorType
from tests.op_library.test_against_onnxruntime import (
    MICROSOFT,
    compare,
    data,
    dtype_of,
    run_onnxruntime,
    scalar,
)

pytestmark = pytest.mark.ort

EXACT = (0.5, 0.25, 1.0)  # what is halfway between two integers is so in any precision
UNEVEN = (0.0123, 0.0456, 0.03)


def every(dtype: Any) -> np.ndarray:
    return np.arange(256).astype(np.uint8).view(dtype)


def operand(x: np.ndarray, scale: float, zero: int) -> list[np.ndarray]:
    return [x, scalar(scale), np.array(zero, x.dtype)]


def near(run: Any, op_type: str, arrays: list[np.ndarray], attributes: Any = None) -> None:
    """Compare where float32 and float64 may round to neighbours, in a few places."""
    attributes = attributes or {}
    (want,) = run_onnxruntime(op_type, arrays, ("y",), attributes, 1, MICROSOFT)
    types = [TensorType(dtype_of(want), want.shape)]
    (got,) = run(op_type, arrays, types, attributes, opset=1, domain=MICROSOFT)
    apart = np.abs(got.astype(int) - want.astype(int))
    assert apart.max() <= 1
    assert (apart > 0).mean() < 0.05


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("zero", [10, 11])
def test_pairs(run, dtype, op_type, zero):
    a, b = every(dtype)[:, None], every(dtype)
    for scales, check in ((EXACT, compare), (UNEVEN, near)):
        arrays = operand(a, scales[0], 3) + operand(b, scales[1], 8)
        arrays += operand(a, scales[2], zero)[1:]
        if check is compare:
            compare(run, op_type, 1, arrays, domain=MICROSOFT)
        else:
            near(run, op_type, arrays)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(
    ("op_type", "attributes"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.3})]
)
def test_functions(run, dtype, op_type, attributes):
    x = every(dtype)
    for scale, result in ((0.05, 1 / 256), (0.011, 0.02)):
        near(run, op_type, operand(x, scale, 7) + operand(x, result, 5)[1:], attributes)


def test_leaky_relu_has_a_slope(run):
    x = every(np.int8)
    arrays = operand(x, 0.5, 7) + operand(x, 0.25, 5)[1:]
    compare(run, "QLinearLeakyRelu", 1, arrays, {"alpha": 0.5}, domain=MICROSOFT)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_choices(run, dtype):
    a, b = every(dtype)[:, None], every(dtype)
    condition = np.arange(256) % 3 == 0
    arrays = [condition, *operand(a, 0.5, 3), *operand(b, 0.25, 8), *operand(a, 1, 9)[1:]]
    compare(run, "QLinearWhere", 1, arrays, domain=MICROSOFT)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("axis", [0, -1])
def test_concatenation(run, dtype, axis):
    x = every(dtype).reshape(16, 16)
    arrays = operand(x, 0.5, 10)[1:] + operand(x, 0.5, 10) + operand(x, 0.25, 3)
    compare(run, "QLinearConcat", 1, arrays, {"axis": axis}, domain=MICROSOFT)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(("opset", "axis"), [(13, -1), (13, 1), (11, 1)])
def test_softmax(run, dtype, opset, axis):
    x = np.random.default_rng(1).permutation(np.tile(every(dtype), 2)).reshape(4, 8, 16)
    zero = np.iinfo(dtype).min
    arrays = operand(x, 0.02, 3) + operand(x, 1 / 256, zero)[1:]
    near(run, "QLinearSoftmax", arrays, {"opset": opset, "axis": axis})


EXTREMES = [data(3, 5), data(7), np.abs(data(2, 3)), -np.abs(data(2, 3)), 0 * data(2, 2)]


@pytest.mark.parametrize("x", EXTREMES)
def test_dynamic_quantization(run, x):
    compare(run, "DynamicQuantizeLinear", 11, [x], {}, ("y", "scale", "zero"))


def test_a_nan_does_not_make_the_scale_of_a_dynamic_quantization_nan(run):
    x = data(7)
    x[0] = np.nan
    compare(run, "DynamicQuantizeLinear", 11, [x], {}, ("y", "scale", "zero"))
    x[3] = np.inf
    compare(run, "DynamicQuantizeLinear", 11, [x], {}, ("y", "scale", "zero"))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_quantization_of_every_domain(run, dtype):
    x, zero = 40 * data(4, 6), np.array(3, dtype)
    for domain, opset in (("", 21), (MICROSOFT, 1)):
        compare(run, "QuantizeLinear", opset, [x, scalar(0.5), zero], domain=domain)
        x_half, scale = x.astype(np.float16), scalar(0.5, np.float16)
        compare(run, "QuantizeLinear", opset, [x_half, scale, zero], domain=domain)
        quantized = np.arange(24).astype(dtype).reshape(4, 6)
        for kind in (np.float32, np.float16):
            arrays = [quantized, scalar(0.25, kind), zero]
            compare(run, "DequantizeLinear", opset, arrays, domain=domain)
