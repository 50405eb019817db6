"""Definitions agree with ONNX Runtime where ONNX has no cases: old opsets, contributed
operators, infinities and NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tcfuse.ort.arrays import run as run_session
from tcfuse.types import DType, TensorType

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.ort

MICROSOFT = "com.microsoft"
EDGES = np.array(
    [
        -np.inf,
        -1e30,
        -100,
        -2.5,
        -1.5,
        -0.5,
        -1e-30,
        -0.0,
        0.0,
        0.5,
        1.5,
        2.5,
        1e30,
        np.inf,
        np.nan,
    ],
    np.float32,
)
TOLERANCE = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-5}


def dtype_of(array: np.ndarray) -> DType:
    return next(d for d in DType if d.numpy == array.dtype)


def data(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + len(shape)).standard_normal(shape).astype(dtype)


def positive(*shape: int) -> np.ndarray:
    return np.abs(data(*shape)) + np.float32(0.1)


def whole(*values: int, dtype: Any = np.int64) -> np.ndarray:
    return np.array(values, dtype)


def scalar(value: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


def run_onnxruntime(
    op_type: str,
    arrays: Sequence[np.ndarray | None],
    outputs: Sequence[str],
    attributes: dict[str, Any],
    opset: int,
    domain: str,
) -> list[np.ndarray]:
    """The outputs of one node, by ONNX Runtime without its own fusions."""
    names = ["" if a is None else f"x{k}" for k, a in enumerate(arrays)]
    given = {n: a for n, a in zip(names, arrays, strict=True) if a is not None}
    graph = helper.make_graph(
        [helper.make_node(op_type, names, outputs, domain=domain, **attributes)],
        "one_node",
        [helper.make_tensor_value_info(n, dtype_of(a).onnx, a.shape) for n, a in given.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs if name],
    )
    opsets = [helper.make_opsetid("", 17 if domain else opset)]
    opsets += [helper.make_opsetid(domain, opset)] if domain else []
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [*run_session(session, given)]


def compare(
    run: Any,
    op_type: str,
    opset: int,
    arrays: Sequence[np.ndarray | None],
    attributes: dict[str, Any] | None = None,
    outputs: Sequence[str] = ("y",),
    domain: str = "",
) -> None:
    """Check that a node has the same outputs by its definition and by ONNX Runtime."""
    attributes = attributes or {}
    expected = run_onnxruntime(op_type, arrays, outputs, attributes, opset, domain)
    remaining = iter(expected)
    types = []
    for name in outputs:
        array = next(remaining) if name else None
        types.append(None if array is None else TensorType(dtype_of(array), array.shape))
    results = run(op_type, arrays, types, attributes, opset=opset, domain=domain)
    for got, want in zip(results, expected, strict=True):
        assert got.dtype == want.dtype
        limit = TOLERANCE.get(want.dtype, 0)
        np.testing.assert_allclose(got, want, rtol=limit, atol=limit)


UNARY = [
    *("Neg", "Abs", "Sign", "Reciprocal", "Sqrt", "Exp", "Log", "Floor", "Ceil", "Round"),
    *("Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Atan", "Asin", "Acos", "IsInf", "IsNaN"),
    *("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "HardSwish", "HardSigmoid", "Mish", "Erf"),
    *("Softplus", "Softsign", "Sigmoid", "Tanh", "ThresholdedRelu", "Shrink", "Identity"),
]


@pytest.mark.parametrize("op_type", UNARY)
def test_functions_at_infinities_zeros_and_nan(run, op_type):
    compare(run, op_type, 20, [EDGES])


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Equal"])
def test_pairs_at_infinities_zeros_and_nan(run, op_type):
    compare(run, op_type, 14, [EDGES[:, None], EDGES])


@pytest.mark.parametrize("exponent", [0, 0.5, 1, 2, 3, -1, 2.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_power_of_any_types(run, exponent, dtype):
    compare(run, "Pow", 15, [EDGES, scalar(exponent, dtype)])


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.float64, bool]
)
def test_cast_out_of_range_wraps(run, dtype):
    x = np.array([-300.7, -129, -1.5, -0.4, 0, 0.6, 127.9, 128, 255.5, 300, 1e5], np.float32)
    compare(run, "Cast", 13, [x], {"to": dtype_of(np.zeros(1, dtype)).onnx})


@pytest.mark.parametrize("bounds", [(None, 1), (-1, None), (None, None), (2, 1)])
def test_clip_by_inputs(run, bounds):
    compare(run, "Clip", 13, [EDGES, *(None if b is None else scalar(b) for b in bounds)])


@pytest.mark.parametrize("attributes", [{}, {"min": -1.0}, {"max": 1.0}])
def test_clip_by_attributes(run, attributes):
    compare(run, "Clip", 10, [EDGES], attributes)


REDUCTIONS = [
    *("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"),
]


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("opset", [7, 11, 13, 18])
@pytest.mark.parametrize("axes", [None, (0,), (1, 2)])
def test_reductions_of_every_opset(run, kind, opset, axes):
    arrays, attributes = [positive(2, 3, 4)], {"keepdims": int(opset != 11)}
    if axes and opset >= (13 if kind == "Sum" else 18):
        arrays.append(whole(*axes))
    elif axes:
        attributes["axes"] = axes
    compare(run, f"Reduce{kind}", opset, arrays, attributes)


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions_of_integers(run, kind):
    x = whole(1, 2, 3, 4, 5, 9, dtype=np.int32).reshape(2, 3)
    compare(run, f"Reduce{kind}", 18, [x, whole(1)])


def test_log_sum_exp_of_infinities(run):
    x = data(3, 4)
    x[0], x[1, 1], x[2, 1] = -np.inf, np.inf, np.nan
    compare(run, "ReduceLogSumExp", 13, [x], {"axes": [1]})


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("opset", [7, 11, 13])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_softmax_of_every_opset(run, op_type, opset, axis):
    compare(run, op_type, opset, [40 * data(3, 4, 5)], {} if axis is None else {"axis": axis})


x, half, row = data(2, 3, 4), data(2, 3, 4, dtype=np.float16), data(4, dtype=np.float16)
TRAINS, TRAINED = {"training_mode": 1}, ("y", "mean", "variance")
NORMALIZATIONS = [
    ("LayerNormalization", 17, [x, data(4), data(4)], {}, ("y", "mean", "deviation")),
    ("LayerNormalization", 17, [x, data(3, 4)], {"axis": 1}, ("y",)),
    ("LayerNormalization", 17, [half, row, row], {}, ("y",)),
    ("SimplifiedLayerNormalization", 17, [x, data(4)], {}, ("y", "deviation")),
    ("InstanceNormalization", 7, [data(2, 3, 4, 5), data(3), data(3)], {}, ("y",)),
    ("GroupNormalization", 21, [data(2, 6, 4), data(6), data(6)], {"num_groups": 3}, ("y",)),
    ("GroupNormalization", 18, [data(2, 6, 4), data(3), data(3)], {"num_groups": 3}, ("y",)),
    ("BatchNormalization", 7, [x, data(3), data(3), data(3), positive(3)], {}, ("y",)),
    ("BatchNormalization", 15, [x, data(3), data(3), data(3), positive(3)], {}, ("y",)),
    (
        "BatchNormalization",
        9,
        [x, data(3), data(3), data(3), positive(3)],
        {},
        (*TRAINED, "", ""),
    ),
    ("BatchNormalization", 14, [x, data(3), data(3), data(3), positive(3)], TRAINS, TRAINED),
    (
        "BatchNormalization",
        15,
        [data(4, 3), data(3), data(3), data(3), positive(3)],
        {**TRAINS, "momentum": 0.25, "epsilon": 0.5},
        TRAINED,
    ),
    ("LpNormalization", 13, [x], {"p": 1, "axis": 0}, ("y",)),
    ("LpNormalization", 13, [np.zeros((2, 3), np.float32)], {}, ("y",)),
    ("MeanVarianceNormalization", 13, [data(2, 3, 4, 5)], {}, ("y",)),
]


@pytest.mark.parametrize(
    ("op_type", "opset", "arrays", "attributes", "outputs"), NORMALIZATIONS
)
def test_normalizations(run, op_type, opset, arrays, attributes, outputs):
    compare(run, op_type, opset, arrays, attributes, outputs)


m = data(4, 5)
CONTRIBUTED = [
    ("Gelu", [EDGES], ("y",)),
    ("QuickGelu", [EDGES], ("y",)),
    ("FastGelu", [EDGES], ("y",)),
    ("FastGelu", [data(2, 8), data(8)], ("y",)),
    ("BiasGelu", [data(2, 8), data(8)], ("y",)),
    ("SkipLayerNormalization", [x, x + 1, data(4), data(4), data(4)], ("y", "", "", "sum")),
    ("SkipLayerNormalization", [x, data(3, 4), data(4)], ("y",)),
    ("SkipLayerNormalization", [half, half, row, row], ("y",)),
    ("SkipSimplifiedLayerNormalization", [x, x + 1, data(4), data(4)], ("y", "", "", "sum")),
    ("SkipSimplifiedLayerNormalization", [x, x + 1, data(4)], ("y",)),
    ("SkipSimplifiedLayerNormalization", [x, x + 1, data(4)], ("y", "mean", "deviation")),
    ("SkipLayerNormalization", [m, m + 1, data(5), data(5)], ("y", "mean", "deviation", "sum")),
]


@pytest.mark.parametrize(("op_type", "arrays", "outputs"), CONTRIBUTED)
def test_contributed_operators(run, op_type, arrays, outputs):
    compare(run, op_type, 1, arrays, {}, outputs, MICROSOFT)


MOVEMENTS = [
    ("Slice", 9, [m], {"starts": [1, -3], "ends": [1000, -1], "axes": [0, 1]}, ("y",)),
    ("Slice", 9, [m], {"starts": [1, 2], "ends": [3, 5]}, ("y",)),
    ("Slice", 13, [m, whole(-1), whole(-(2**63)), whole(0), whole(-1)], {}, ("y",)),
    ("Slice", 13, [m, whole(100), whole(0), whole(-1), whole(-2)], {}, ("y",)),
    ("Slice", 13, [m, whole(3), whole(1), whole(1)], {}, ("y",)),
    ("Split", 7, [m], {}, ("a", "b", "c", "d")),
    ("Split", 11, [m], {"split": [2, 3], "axis": -1}, ("a", "b")),
    (
        "Split",
        13,
        [
            m,
            whole(2, 3),
        ],
        {"axis": 1},
        ("a", "b"),
    ),
    ("Split", 18, [m], {"num_outputs": 3, "axis": 1}, ("a", "b", "c")),
    ("Concat", 7, [m, data(4, 1), data(4, 2)], {"axis": 1}, ("y",)),
    ("Concat", 13, [m, np.zeros((0, 5), np.float32), m], {"axis": -2}, ("y",)),
    ("Expand", 13, [data(3, 1), whole(2, 1, 4)], {}, ("y",)),
    ("Tile", 13, [data(3, 1, 2), whole(2, 1, 4)], {}, ("y",)),
    ("Gather", 13, [m, whole(0, -1, 2, 1).reshape(2, 2)], {"axis": 1}, ("y",)),
    ("DepthToSpace", 13, [data(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}, ("y",)),
    ("SpaceToDepth", 13, [data(1, 2, 4, 6)], {"blocksize": 2}, ("y",)),
    ("Transpose", 13, [x], {"perm": [1, 2, 0]}, ("y",)),
    ("Reshape", 14, [x, whole(0, -1)], {}, ("y",)),
    ("Flatten", 13, [x], {"axis": 2}, ("y",)),
    ("Squeeze", 11, [data(1, 3, 1)], {}, ("y",)),
    ("Unsqueeze", 11, [m], {"axes": [0, 2]}, ("y",)),
    ("Dropout", 13, [m, scalar(0.3), np.array(False)], {}, ("y",)),
    ("Dropout", 13, [m, scalar(0.0), np.array(True)], {}, ("y", "mask")),
    ("Dropout", 12, [m], {}, ("y", "mask")),
    ("Dropout", 10, [m], {}, ("y", "mask")),
    ("Dropout", 7, [m], {}, ("y", "mask")),
    ("Pad", 7, [m], {"pads": [1, 2, 1, 0], "value": 3.5}, ("y",)),
    ("Pad", 13, [whole(1, 2), whole(1, 2), whole(7).reshape(())], {}, ("y",)),
    ("Pad", 18, [m, whole(2, 1), None, whole(-1)], {"mode": "reflect"}, ("y",)),
    ("Pad", 19, [m, whole(1, 2, 1, 0)], {"mode": "wrap"}, ("y",)),
]


@pytest.mark.parametrize(("op_type", "opset", "arrays", "attributes", "outputs"), MOVEMENTS)
def test_movements(run, op_type, opset, arrays, attributes, outputs):
    compare(run, op_type, opset, arrays, attributes, outputs)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("pads", [(1, 2, 1, 0), (-1, 2, 1, -2)])
def test_pads_and_crops(run, mode, pads):
    compare(run, "Pad", 13, [m, whole(*pads)], {"mode": mode})


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantization(run, dtype):
    x = np.append(100 * data(8), np.float32([0.25, 0.75, 1.25, 1e9, -1e9, np.inf, -np.inf]))
    compare(run, "QuantizeLinear", 13, [x, scalar(0.5), scalar(3, dtype)])
    zeros = np.arange(3, dtype=dtype)
    compare(run, "QuantizeLinear", 13, [9 * data(2, 3, 4), positive(3), zeros], {"axis": 1})
    quantized = np.arange(24, dtype=dtype).reshape(2, 3, 4)
    compare(run, "DequantizeLinear", 13, [quantized, positive(3), zeros], {"axis": -2})
