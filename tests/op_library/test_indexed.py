"""Operators that work with positions agree with ONNX Runtime where ONNX has no cases."""

from __future__ import annotations

import numpy as np
import pytest

from tcfuse.errors import UnsupportedError
from tests.op_library.test_against_onnxruntime import compare, data, scalar, whole

pytestmark = pytest.mark.ort

NAN, INF = np.nan, np.inf
NAN_ROWS = np.array(
    [
        *([NAN, 1, 2], [1, NAN, 2], [2, NAN, 1], [NAN, NAN, NAN], [-INF, NAN, -INF]),
        *([NAN, -INF, INF], [2, NAN, 2], [INF, NAN, INF], [3, NAN, NAN], [NAN, 2, 2]),
    ],
    np.float32,
)
TIES = np.array([[3, 1, 3, 1], [0, 0, 0, 0], [-5, 7, 7, -5]])


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_extrema_pass_over_nan_except_at_the_start(run, op_type, last, axis):
    x = NAN_ROWS if axis else np.ascontiguousarray(NAN_ROWS.T)
    attributes = {"axis": axis, "keepdims": last, "select_last_index": last}
    compare(run, op_type, 13, [x], attributes)


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int32, np.int64, np.float64, np.float32]
)
@pytest.mark.parametrize("last", [0, 1])
def test_extrema_of_equals_of_any_type(run, op_type, dtype, last):
    x = (TIES + (5 if dtype is np.uint8 else 0)).astype(dtype)
    compare(run, op_type, 12, [x], {"axis": -1, "keepdims": 0, "select_last_index": last})
    compare(run, op_type, 11, [x])


@pytest.mark.parametrize("opset", [7, 11, 13])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_hardmax_of_every_opset(run, opset, axis):
    x = np.round(data(3, 4, 5))
    compare(run, "Hardmax", opset, [x], {} if axis is None else {"axis": axis})


def test_hardmax_of_rows_with_nan(run):
    compare(run, "Hardmax", 13, [NAN_ROWS])


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, -9, -1, 0, 2, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_triangles_of_any_type(run, upper, k, dtype):
    arrays = [data(2, 4, 5, dtype=dtype), *([] if k is None else [scalar(k, np.int64)])]
    compare(run, "Trilu", 14, arrays, {"upper": upper})


@pytest.mark.parametrize("dtype", [None, np.int32, np.float64, bool])
def test_eye_of_any_type(run, dtype):
    x, attributes = data(3, 5), {"k": -1}
    if dtype is not None:
        attributes["dtype"] = {np.int32: 6, np.float64: 11, bool: 9}[dtype]
    if dtype is not bool:  # ONNX Runtime has none of bools
        compare(run, "EyeLike", 9, [x], attributes)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_cumulative_sums(run, reverse, exclusive, dtype):
    x = (9 * data(2, 3, 4)).astype(dtype)
    for axis in (scalar(-2, np.int32), whole(0)):
        compare(run, "CumSum", 14, [x, axis], {"reverse": reverse, "exclusive": exclusive})


def test_a_cumulative_sum_keeps_infinities_where_they_are(run):
    x = np.array([1, INF, 2, -INF, NAN, 3], np.float32)
    compare(run, "CumSum", 14, [x, scalar(0, np.int64)])
    compare(run, "CumSum", 14, [x[::-1].copy(), scalar(0, np.int64)], {"exclusive": 1})


GATHERS = [
    ("GatherElements", [data(4, 5), whole(3, -4, 0, 1, -1, 2).reshape(2, 3)], {"axis": 0}),
    ("GatherElements", [data(4, 5), whole(4, -5, 0, 1).reshape(2, 2)], {"axis": -1}),
    ("GatherND", [data(3, 4, 5), whole(2, -1, -3, 0).reshape(2, 2)], {}),
    ("GatherND", [data(3, 4, 5), whole(2, 0, -1).reshape(3, 1)], {"batch_dims": 1}),
    ("GatherND", [data(3, 4, 5), whole(0, 4, 3, -1, 1, 1).reshape(3, 1, 2)], {"batch_dims": 1}),
    ("GatherND", [data(3, 2), whole(1, 1)], {}),
]


@pytest.mark.parametrize(("op_type", "arrays", "attributes"), GATHERS)
def test_gathers(run, op_type, arrays, attributes):
    compare(run, op_type, 13, arrays, attributes)


@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32])
def test_one_hot_of_negative_and_outside_indices(run, axis, dtype):
    indices = whole(1, -1, 4, 3, -4, -5, dtype=dtype).reshape(2, 3)
    arrays = [indices, scalar(4, np.float32), data(2)]
    compare(run, "OneHot", 11, arrays, {"axis": axis})


def test_one_hot_of_fractions_cuts_them_off(run):
    x = np.array([1.9, -0.9, 0.2, 3.0, -1.5], np.float32)
    compare(run, "OneHot", 11, [x, scalar(4, np.int64), whole(5, 7)])


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_sequences_reversed(run, axes):
    time, batch = axes
    lengths = whole(3, 1, 2, 3) if batch else whole(4, 1, 2)
    attributes = {"time_axis": time, "batch_axis": batch}
    compare(run, "ReverseSequence", 10, [data(3, 4, 2), lengths], attributes)


REDUCTIONS = [("none", 16), ("add", 16), ("mul", 16), ("min", 18), ("max", 18)]


@pytest.mark.parametrize(("reduction", "opset"), REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float64])
def test_scattered_elements(run, reduction, opset, dtype):
    x, updates = (9 * data(4, 5)).astype(dtype), (9 * data(3, 2)).astype(dtype)
    indices = whole(0, -1, 0, 2, 0, 2).reshape(3, 2)  # twice the same
    compare(run, "ScatterElements", opset, [x, indices, updates], {"reduction": reduction})
    compare(
        run,
        "ScatterElements",
        opset,
        [x, indices.astype(np.int32) - 1, updates],
        {"reduction": reduction, "axis": 1},
    )


@pytest.mark.parametrize(("reduction", "opset"), REDUCTIONS)
def test_scattered_tuples(run, reduction, opset):
    attributes = {} if reduction == "none" else {"reduction": reduction}
    once = whole(0, 1, -1, -1, 2, 0, 1, 3).reshape(2, 2, 2)
    compare(run, "ScatterND", opset, [data(3, 4, 2), once, data(2, 2, 2)], attributes)
    rows = whole(2, 0) if reduction == "none" else whole(2, 2)
    compare(run, "ScatterND", opset, [data(3, 4), rows.reshape(2, 1), data(2, 4)], attributes)
    compare(run, "ScatterND", opset, [data(3, 4), whole(1, 2), data()], attributes)


def test_scattering_of_older_opsets(run):
    indices = whole(1, 0, 2, 2).reshape(2, 2)
    compare(run, "Scatter", 10, [data(3, 3), indices, data(2, 2)], {"axis": 1})
    compare(run, "ScatterElements", 11, [data(3, 3), indices, data(2, 2)])
    compare(run, "ScatterND", 11, [data(3, 3), indices, data(2)])


def test_scattering_by_nan_and_infinities(run):
    x, updates = (
        np.array([[1, NAN, 2]] * 2, np.float32),
        np.array([[NAN, 3, INF]] * 2, np.float32),
    )
    for reduction in ("add", "mul"):
        arrays = [x, np.zeros((2, 3), np.int64), updates]
        compare(run, "ScatterElements", 18, arrays, {"reduction": reduction})


def test_scattering_out_of_places_of_unknown_length_is_refused(lower):
    with pytest.raises(UnsupportedError, match="one of size N"):
        lower(
            "ScatterND",
            ["float(8)", "int64(4, N, 1)", "float(4, N)"],
            ["float(8)"],
            {"reduction": "none"},
        )


LOSSES = [
    (shape, weights, ignored)
    for shape in ((4, 3), (2, 3, 4), (2, 3, 2, 2, 1))
    for weights in (False, True)
    for ignored in (None, 1, -5, 10)
]


@pytest.mark.parametrize(("shape", "weights", "ignored"), LOSSES)
@pytest.mark.parametrize("op_type", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses(run, shape, weights, ignored, op_type, reduction):
    labels = np.random.default_rng(0).integers(0, 3, (shape[0], *shape[2:]))
    labels.reshape(-1)[0] = 1
    attributes: dict[str, object] = {"reduction": reduction}
    if ignored is not None:
        labels.reshape(-1)[1] = ignored
        attributes["ignore_index"] = ignored
    arrays = [data(*shape), labels, *([np.abs(data(3)) + 0.1] if weights else [])]
    outputs = ("y",) if op_type[0] == "N" else ("y", "logs")
    compare(run, op_type, 13, arrays, attributes, outputs)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize("axis", [0, -1])
def test_the_first_by_rank_with_ties(run, largest, dtype, axis):
    x = (2 * data(5, 6)).round().astype(dtype)
    outputs, attributes = ("values", "indices"), {"largest": largest, "axis": axis}
    compare(run, "TopK", 11, [x, whole(4)], attributes, outputs)


@pytest.mark.parametrize("largest", [0, 1])
def test_the_first_by_rank_with_nan(run, largest):
    x = np.array([[3, NAN, 1, INF, NAN, -INF, -0.0, 0.0]], np.float32)
    compare(run, "TopK", 11, [x, whole(8)], {"largest": largest}, ("values", "indices"))


def test_the_first_by_rank_of_older_opsets(run):
    compare(run, "TopK", 10, [data(3, 6), whole(2)], {}, ("values", "indices"))
    compare(run, "TopK", 7, [data(3, 6)], {"k": 3, "axis": 0}, ("values", "indices"))


def test_an_order_of_onnx_runtime_s_own_is_refused(lower):
    types = ["float(8)", "int64(1)"], ["float(2)", "int64(2)"]
    with pytest.raises(UnsupportedError, match="in no order"):
        lower("TopK", *types, {"sorted": 0}, constants={1: [2]})
