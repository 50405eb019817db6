"""The products and convolutions of ONNX Runtime's own domain agree with its kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.op_library.test_against_onnxruntime import MICROSOFT, compare, data, scalar
from tests.op_library.test_contractions import small

pytestmark = pytest.mark.ort


@pytest.mark.parametrize(
    ("left", "right", "attributes"),
    [
        ((2, 3), (3, 4), {}),
        ((2, 3), (3, 4), {"alpha": 0.25}),
        ((3, 2), (3, 4), {"transA": 1}),
        ((3,), (4, 3), {"transA": 1, "transB": 1}),
        ((5, 1, 2, 3), (6, 4, 3), {"transB": 1, "alpha": 2.0}),
        ((2, 5, 3), (5, 3, 4), {"transBatchA": 1}),
        ((2, 5, 6, 3), (5, 6, 3, 4), {"transBatchA": 1}),
        ((3, 5, 2), (4, 5, 3), {"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1}),
    ],
)
def test_factors_with_axes_in_any_order(run, left, right, attributes):
    arrays = [data(*left), data(*right)]
    compare(run, "FusedMatMul", 1, arrays, attributes, domain=MICROSOFT)
    if not any(name.startswith("transBatch") for name in attributes):
        compare(run, "TransposeMatMul", 1, arrays, attributes, domain=MICROSOFT)


@pytest.mark.parametrize(
    "attributes",
    [
        {"activation": "Relu"},
        {"activation": "LeakyRelu", "activation_alpha": 0.1, "alpha": 0.5},
        {"activation": "Elu", "activation_alpha": 0.7},
        {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4},
        {"activation": "Tanh", "transA": 1},
        {"activation": "Softsign", "beta": 2.0},
    ],
)
@pytest.mark.parametrize("has_c", [False, True])
def test_gemm_with_an_activation(run, attributes, has_c):
    a = data(2, 3) if attributes.get("transA") else data(3, 2)
    c = [data(4, seed=3)] if has_c else []
    arrays = [a, data(2, 4, seed=1), *c]
    compare(run, "FusedGemm", 1, arrays, attributes, domain=MICROSOFT)


@pytest.mark.parametrize(
    "attributes",
    [
        {"activation": "Relu"},
        {"activation": "LeakyRelu", "activation_params": [0.1], "strides": [2, 1]},
        {"activation": "Clip", "activation_params": [-0.5, 0.75], "pads": [1, 0, 1, 1]},
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
    ],
)
@pytest.mark.parametrize("has_bias", [False, True])
def test_convolution_with_an_activation(run, attributes, has_bias):
    bias = [data(4)] if has_bias else []
    arrays = [data(1, 3, 5, 6), data(4, 3, 2, 2), *bias]
    compare(run, "FusedConv", 1, arrays, attributes, domain=MICROSOFT)


def test_convolution_with_a_sum_and_an_activation(run):
    arrays = [data(1, 3, 5, 6), data(4, 3, 2, 2), data(4), data(1, 4, 4, 5, seed=2)]
    compare(run, "FusedConv", 1, arrays, {"activation": "Relu"}, domain=MICROSOFT)


@pytest.mark.parametrize("attributes", [{}, {"group": 2, "pads": [1, 0, 0, 1]}])
def test_quantized_convolution_with_channels_last(run, attributes):
    w = small(4, 4 // attributes.get("group", 1), 2, 3, dtype=np.int8, seed=1)
    arrays = [small(2, 5, 6, 4), scalar(0.0513), scalar(5, np.uint8), w, abs(data(4)) / 9]
    arrays += [np.zeros(4, np.int8), scalar(0.913), scalar(3, np.uint8)]
    attributes = {"channels_last": 1, **attributes}
    compare(run, "QLinearConv", 1, arrays, attributes, domain=MICROSOFT)


@pytest.mark.parametrize("types", [(np.uint8, np.uint8), (np.uint8, np.int8)])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
def test_integer_products_that_give_floats(run, types, per_column, has_bias):
    b = small(5, 4, dtype=types[1], seed=1)
    zero = small(4, dtype=types[1], seed=2) if per_column else scalar(7, types[1])
    scale = abs(data(4)) / 9 if per_column else scalar(0.0217)
    bias = [data(4, seed=3)] if has_bias else []
    arrays = [small(2, 3, 5, dtype=types[0]), b, scalar(0.0513), scale]
    arrays += [scalar(9, types[0]), zero, *bias]
    compare(run, "MatMulIntegerToFloat", 1, arrays, domain=MICROSOFT)
    arrays = [data(2, 3, 5), b, scale, zero, *bias]
    compare(run, "DynamicQuantizeMatMul", 1, arrays, domain=MICROSOFT)


def test_a_factor_of_zeros_is_quantized(run):
    arrays = [np.zeros((2, 5), np.float32), small(5, 4), scalar(0.1)]
    compare(run, "DynamicQuantizeMatMul", 1, arrays, domain=MICROSOFT)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["none", "packed", "plain"])
@pytest.mark.parametrize("has_bias", [False, True])
def test_products_with_packed_weights(run, bits, zeros, has_bias):
    if (bits, zeros) == (8, "plain"):
        pytest.skip("ONNX Runtime has no kernel for these")
    n, k, block = 5, 40, 16
    blocks = 3
    packed = np.random.default_rng(0).integers(0, 256, (n, blocks, block * bits // 8))
    arrays = [data(2, 3, k), packed.astype(np.uint8), abs(data(n, blocks)) / 9]
    if zeros == "packed":
        row = -(-blocks * bits // 8)
        arrays.append(np.random.default_rng(1).integers(0, 256, (n, row)).astype(np.uint8))
    elif zeros == "plain":
        arrays.append(abs(data(n, blocks, seed=5)))
    else:
        arrays.append(None)
    arrays += [None, data(n, seed=3)] if has_bias else []
    attributes = {"N": n, "K": k, "bits": bits, "block_size": block}
    compare(run, "MatMulNBits", 1, arrays, attributes, domain=MICROSOFT)
