"""Runs that broadcasting operators loop over."""

import onnx
import pytest

from tcfuse.graph.load import load_model
from tcfuse.graph.native_kernel import node_us
from tcfuse.graph.spans import short_spans


def product(left: str, right: str):
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    text = f"{head} g (float[{left}] x, float[{right}] s) => (float[] y) {{ y = Mul(x, s) }}"
    proto = onnx.parser.parse_model(text)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return load_model(proto).graph[0]


@pytest.mark.parametrize(
    ("left", "right", "count"),
    [
        ("1, 4, 9, 9, 16", "1, 4, 1, 1, 16", 4 * 81),  # a block for each pixel
        ("1, 4, 9, 9, 16", "1, 4, 9, 9, 16", 0),
        ("1, 32, 9, 9", "1, 32, 1, 1", 0),  # a channel is one run of 81
        ("1, 32, 3, 3", "1, 32, 1, 1", 32),
        ("8, 768", "768", 0),
        ("8, 16", "16", 8),
        ("8, 16", "1", 0),
        ("8, W", "W", 0),  # a size that is not known is not called short
        ("1, 16", "16", 0),
    ],
)
def test_runs_are_counted_where_they_are_short(left: str, right: str, count: int):
    assert short_spans(product(left, right)) == count


def test_short_runs_cost_time():
    one = node_us(product("1, 4, 9, 9, 16", "1, 4, 9, 9, 16"))
    assert node_us(product("1, 4, 9, 9, 16", "1, 4, 1, 1, 16")) > one + 2.0
