"""Arrays of every element type go into ONNX Runtime and come back with the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tcfuse.ort.arrays import run, to_array, to_value
from tcfuse.types import DType

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.ort


def every(dtype: DType) -> np.ndarray:
    codes = np.arange(256 if dtype is not DType.BOOL else 2, dtype=np.uint8)
    return np.repeat(codes, dtype.bytes).view(dtype.numpy)


@pytest.mark.parametrize("dtype", DType, ids=lambda d: d.tc)
@pytest.mark.parametrize("shape", [(1,), (), (2, 1), (0, 3)])
def test_values_keep_their_bits(dtype, shape):
    x = np.resize(every(dtype), shape) if 0 not in shape else np.zeros(shape, dtype.numpy)
    back = to_array(to_value(x))
    assert (back.dtype, back.shape) == (x.dtype, x.shape)
    assert back.tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.BFLOAT16, DType.FLOAT8E5M2])
def test_sessions_run_on_types_that_numpy_lacks(dtype):
    given, taken = (helper.make_tensor_value_info(n, dtype.onnx, ["N"]) for n in "xy")
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g", [given], [taken]
    )
    opsets = [helper.make_opsetid("", 19)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    session = ort.InferenceSession(model.SerializeToString())
    x = every(dtype)
    (y,) = run(session, {"x": x, "other": x})
    assert y.dtype == x.dtype
    assert y.tobytes() == x.tobytes()
