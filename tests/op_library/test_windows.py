"""Pools and other sliding windows agree with ONNX Runtime: pads, strides, dilations, opsets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tcfuse.errors import UnsupportedError
from tests.conformance.compiled import fuse_everything
from tests.op_library.test_against_onnxruntime import (
    MICROSOFT,
    compare,
    data,
    scalar,
)

pytestmark = pytest.mark.ort

WINDOWS = [
    {"kernel_shape": [3], "strides": [2], "pads": [1, 1]},
    {"kernel_shape": [3], "strides": [4], "pads": [0, 2]},
    {"kernel_shape": [2], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [3], "strides": [2], "auto_pad": "VALID"},
    {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 2, 1]},
    {"kernel_shape": [2, 3, 1], "pads": [1, 1, 0, 0, 2, 0]},
]
ROUNDED_UP = [{**window, "ceil_mode": 1} for window in WINDOWS]
DILATED = [
    {"kernel_shape": [2], "dilations": [2], "strides": [2], "pads": [1, 1], "ceil_mode": 1},
    {"kernel_shape": [2, 3], "dilations": [3, 2], "pads": [0, 2, 1, 1]},
    {"kernel_shape": [3], "dilations": [3], "pads": [2, 2]},
]
# Steps that leave elements out: ONNX Runtime pads by less than nothing.
SKIPPING = [
    {"kernel_shape": [2], "strides": [4], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2], "strides": [4], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [1], "strides": [4], "auto_pad": "SAME_LOWER"},
]


def image(window: dict, dtype: type = np.float32) -> np.ndarray:
    """An input for a window of as many dimensions."""
    sizes = (8, 7, 5)[: len(window["kernel_shape"])]
    return (20 * data(2, 3, *sizes)).astype(dtype)


@pytest.mark.parametrize("padded", [0, 1])
@pytest.mark.parametrize(
    ("opset", "window"),
    [
        *((7, w) for w in WINDOWS),
        *((11, w) for w in ROUNDED_UP),
        *((19, w) for w in ROUNDED_UP + DILATED + SKIPPING),
    ],
)
def test_average_pools(run, opset, window, padded):
    compare(run, "AveragePool", opset, [image(window)], {**window, "count_include_pad": padded})


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint8])
@pytest.mark.parametrize("window", ROUNDED_UP + DILATED)
def test_max_pools(run, window, dtype):
    compare(run, "MaxPool", 12, [image(window, dtype)], window)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("window", WINDOWS + DILATED)
def test_places_of_maxima(run, window, order):
    tied = np.round(image(window) / 20)
    attributes = {**window, "storage_order": order}
    compare(run, "MaxPool", 12, [tied], attributes, ("y", "indices"))


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(
    ("opset", "window"), [*((11, w) for w in WINDOWS), *((18, w) for w in ROUNDED_UP + DILATED)]
)
def test_lp_pools(run, opset, window, p):
    compare(run, "LpPool", opset, [image(window)], {**window, "p": p})


@pytest.mark.parametrize("p", [1, 2, 3])
def test_global_lp_pools(run, p):
    compare(run, "GlobalLpPool", 2, [data(2, 3, 4, 5)], {"p": p})


@pytest.mark.parametrize("size", [1, 3, 5])
def test_local_response_normalization(run, size):
    attributes = {"size": size, "alpha": 0.5, "beta": 0.6, "bias": 2.0}
    compare(run, "LRN", 13, [data(2, 4, 3, 2)], attributes)


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_quantized_pools(run, dtype, channels_last):
    x = np.random.default_rng(0).integers(0, 100, (2, 5, 6, 3)).astype(dtype)
    arrays = [x, scalar(0.1237), scalar(5, dtype), scalar(0.11), scalar(3, dtype)]
    attributes = {"channels_last": channels_last}
    compare(run, "QLinearGlobalAveragePool", 1, arrays, attributes, domain=MICROSOFT)
    for window in WINDOWS[5:6]:
        for padded in (0, 1):
            attributes |= {**window, "count_include_pad": padded}
            compare(run, "QLinearAveragePool", 1, arrays, attributes, domain=MICROSOFT)


def test_same_padding_of_dilated_windows_is_refused(lower):
    window = {"kernel_shape": [2], "dilations": [2], "auto_pad": "SAME_UPPER"}
    with pytest.raises(UnsupportedError, match="pads for a window without dilations"):
        lower("MaxPool", ["float(1, 1, 6)"], ["float(1, 1, 6)"], window)


@pytest.mark.parametrize(
    "window", [{}, {"kernel_shape": [2, 2]}, {"kernel_shape": [2], "strides": [0]}]
)
def test_windows_that_do_not_fit_are_refused(lower, window):
    with pytest.raises(UnsupportedError, match="MaxPool with"):
        lower("MaxPool", ["float(1, 1, 6)"], ["float(1, 1, 6)"], window)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool", "LpPool"])
def test_windows_over_named_sizes_have_a_kernel(op_type, step):
    node = f"y = {op_type} <kernel_shape=[3], strides=[{step}], pads=[{step - 1}, 0]> (x)"
    model = '<ir_version: 8, opset_import: ["": 18]> f (float[N,C,W] x) => (float[N,C,V] y)'
    kernel, _ = fuse_everything(onnx.parser.parse_model(f"{model} {{ {node} }}"))
    assert kernel.interface.sizes
