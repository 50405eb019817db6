"""Operators of ONNX's previews are written out, with the graphs that they bring along."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from tcfuse.graph.load import load_model
from tcfuse.ort.inference import open_session

HEAD = '<ir_version: 11, opset_import: ["" : 26, "ai.onnx.preview" : 1]>'
TWICE = """graph (float[B, 4, S, 8] q, float[B, 2, T, 8] k, float[B, 2, T, 8] v) => (y) {
  a = ai.onnx.preview.FlexAttention<score_mod = capped (float[B, H, S, T] s)
      => (float[B, H, S, T] r) {
    r = Tanh(s)
  }>(q, k, v)
  y = ai.onnx.preview.FlexAttention(a, k, v)
}"""
OUTER = """graph (float[1, 2, 3, 4] q, float[1] c) => (y) {
  y = ai.onnx.preview.FlexAttention<score_mod = scaled (float[B, H, S, T] s)
      => (float[B, H, S, T] r) {
    r = Mul(s, c)
  }>(q, q, q)
}"""


def op_types(text: str) -> list[str]:
    return [node.op_type for node in load_model(parser.parse_model(f"{HEAD}\n{text}")).graph]


@pytest.mark.ort
def test_two_attentions_give_what_onnx_says():
    model = parser.parse_model(f"{HEAD}\n{TWICE}")
    shapes = {"q": (2, 4, 3, 8), "k": (2, 2, 5, 8), "v": (2, 2, 5, 8)}
    rng = np.random.default_rng(0)
    feeds: dict[str, Any] = {n: rng.standard_normal(s, np.float32) for n, s in shapes.items()}
    loaded = load_model(model)
    assert not [node for node in loaded.graph if node.domain]
    session = open_session(loaded, optimized=False)
    (got,) = session.run(["y"], feeds)
    (want,) = ReferenceEvaluator(model).run(["y"], feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_graph_that_reads_what_is_around_it_stays():
    assert op_types(OUTER) == ["FlexAttention"]


def test_an_operator_of_unknown_type_stays():
    assert op_types("graph (q) => (y) { y = ai.onnx.preview.FlexAttention(q, q, q) }") == [
        "FlexAttention"
    ]


def test_an_opset_that_lacks_what_is_needed_leaves_it():
    text = TWICE.replace("26", "9")
    model = parser.parse_model(f"{HEAD.replace('26', '9')}\n{text}")
    assert {node.op_type for node in load_model(model).graph} == {"FlexAttention"}
