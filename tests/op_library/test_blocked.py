"""Operators on blocked tensors, against NumPy and against ONNX Runtime's own."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from tcfuse.errors import UnsupportedError
from tcfuse.graph.blocked import NCHWC
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session
from tcfuse.types import DType, TensorType
from tests.op_library.conftest import lower_call, run_call

BLOCKS = (8, 16)


def to_blocks(x: np.ndarray, block: int, fill: float = 0.0) -> np.ndarray:
    """(N, C, H, W) as it lies in memory when it is blocked."""
    n, c, h, w = x.shape
    blocks = -(-c // block)
    padded = np.full((n, blocks * block, h, w), fill, x.dtype)
    padded[:, :c] = x
    return padded.reshape(n, blocks, block, h, w).transpose(0, 1, 3, 4, 2).copy()


def image(channels: int, n: int = 2) -> np.ndarray:
    return np.random.default_rng(channels).standard_normal((n, channels, 3, 5)).astype("f")


def of(*shape: int) -> TensorType:
    return TensorType(DType.FLOAT32, shape)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("channels", [4, 12, 16, 24, 32])
class TestReorders:
    def test_input(self, channels: int, block: int):
        x = image(channels)
        expected = to_blocks(x, block)
        given = apart(x, block)
        (found,) = run_call(
            "ReorderInput", [given], [of(*expected.shape)], opset=1, domain=NCHWC
        )
        np.testing.assert_array_equal(found, expected)

    def test_output_drops_what_only_fills_a_block(self, channels: int, block: int):
        x = image(channels)
        wanted = apart(x, block)
        (found,) = run_call(
            "ReorderOutput",
            [to_blocks(x, block, np.nan)],
            [of(*wanted.shape)],
            {"channels": channels},
            opset=1,
            domain=NCHWC,
        )
        np.testing.assert_array_equal(found, wanted)

    def test_channels_last(self, channels: int, block: int):
        x = image(channels)
        last = x.transpose(0, 2, 3, 1).copy()
        given = last if channels % block else last.reshape(2, 3, 5, channels // block, block)
        attributes = {"channels_last": 1, "channels": channels}
        blocked = to_blocks(x, block)
        call = {"opset": 1, "domain": NCHWC}
        (found,) = run_call("ReorderInput", [given], [of(*blocked.shape)], attributes, **call)
        np.testing.assert_array_equal(found, blocked)
        (back,) = run_call("ReorderOutput", [blocked], [of(*given.shape)], attributes, **call)
        np.testing.assert_array_equal(back, given)


def apart(x: np.ndarray, block: int) -> np.ndarray:
    """A plain tensor with whole blocks of channels apart, as definitions see it."""
    n, c, h, w = x.shape
    return x if c % block else x.reshape(n, c // block, block, h, w)


def test_the_mean_of_the_pixels_of_each_channel():
    x = to_blocks(image(16), 8)
    (found,) = run_call("GlobalAveragePool", [x], [of(2, 2, 1, 1, 8)], opset=1, domain=NCHWC)
    np.testing.assert_allclose(found, x.mean((2, 3), keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("activation", ["", "Relu", "HardSigmoid"])
def test_a_convolution_of_single_elements_scales_channels(activation: str):
    x, z = (to_blocks(image(c), 8) for c in (16, 16))
    w, b = (np.linspace(-1, 1, 16, dtype="f").reshape(2, 8) + k for k in range(2))
    attributes: dict[str, object] = {"activation": activation} if activation else {}
    if activation == "HardSigmoid":
        attributes["activation_params"] = (0.25, 0.5)
    (found,) = run_call("Conv", [x, w, b, z], [of(*x.shape)], attributes, opset=1, domain=NCHWC)
    value = x * w[:, None, None] + b[:, None, None] + z
    expected = {
        "": value,
        "Relu": np.maximum(value, 0),
        "HardSigmoid": np.clip(0.25 * value + 0.5, 0, 1),
    }[activation]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_another_convolution_is_refused():
    with pytest.raises(UnsupportedError, match="several elements"):
        lower_call(
            "Conv",
            ["float(1, 2, 4, 4, 8)", "float(2, 2, 8, 8)"],
            ["float(1, 2, 4, 4, 8)"],
            opset=1,
            domain=NCHWC,
        )


@pytest.mark.ort
@pytest.mark.parametrize("channels", [8, 12, 16, 40, 48])
def test_the_order_is_that_of_onnx_runtime(channels: int):
    from tcfuse.ort.optimized import native_block

    block = native_block()
    if not block:
        pytest.skip("ONNX Runtime blocks nothing here")
    x = image(channels)
    blocked = to_blocks(x, block)
    n, blocks, h, w, _ = blocked.shape
    shape = (n, blocks * block, h, w)
    assert_node("ReorderInput", {}, x, blocked.reshape(shape))
    assert_node("ReorderOutput", {"channels": channels}, blocked.reshape(shape), x)


def assert_node(
    op_type: str, attributes: dict[str, int], x: np.ndarray, expected: np.ndarray
) -> None:
    """ONNX Runtime's own node, run alone."""
    value = ir.Value(name="x", shape=ir.Shape(x.shape), type=ir.TensorType(ir.DataType.FLOAT))
    node = ir.node(op_type, [value], {"channels_last": 0, **attributes}, domain=NCHWC)
    (result,) = node.outputs
    result.name, result.type = "y", ir.TensorType(ir.DataType.FLOAT)
    imports = {"": 17, NCHWC: 1}
    graph = ir.Graph([value], [result], nodes=[node], opset_imports=imports)
    (found,) = run(open_session(ir.Model(graph, ir_version=8)), {"x": x})
    np.testing.assert_array_equal(found, expected)
