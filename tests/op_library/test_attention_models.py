"""Attention and its neighbours compiled for named sizes: equal to ONNX Runtime for several."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import parser

from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session
from tests.conformance.compiled import run_cases

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

DECODER = """graph (float[B, S, 32] q, float[B, T, 16] k, float[B, T, 16] v,
    float[B, 1, S, M] m, float[B, 2, P, 8] pk, float[B, 2, P, 8] pv) => (y, a, b) {
  y, a, b = Attention<q_num_heads = 4, kv_num_heads = 2, is_causal = 1>(q, k, v, m, pk, pv)
}"""
CROSS = """graph (float16[B, 4, S, 8] q, float16[B, 2, T, 8] k, float16[B, 2, T, 6] v,
    bool[S, T] m) => (y) {
  a = Attention(q, k, v, m)
  y = Neg(a)
}"""
ROTARY = """graph (float[B, S, 24] x, int64[B, S] p, float[9, 4] c, float[9, 4] s) => (y) {
  y = RotaryEmbedding<num_heads = 3>(x, c, s, p)
}"""
RESIDUAL = """graph (float[B, S, 8] x, float[B, S, 8] r, float[8] g) => (y, t) {
  z, , , t = com.microsoft.SkipSimplifiedLayerNormalization(x, r, g)
  n = SimplifiedLayerNormalization<axis = -1>(z, g)
  y = Add(n, t)
}"""
STEPS = """graph (float[B, C, L] x, float[C, 1, 4] w, float[C] b, float[B, C, 3] p)
    => (y, state) {
  y, state = com.microsoft.CausalConvWithState<activation = "silu">(x, w, b, p)
}"""


def values(seed: int, dtype: type, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def decoder(b: int, s: int, t: int, p: int) -> list[np.ndarray]:
    shapes = [(b, s, 32), (b, t, 16), (b, t, 16), (b, 1, s, p + t), (b, 2, p, 8), (b, 2, p, 8)]
    return [values(k, np.float32, *shape) for k, shape in enumerate(shapes)]


def cross(b: int, s: int, t: int) -> list[np.ndarray]:
    shapes = [(b, 4, s, 8), (b, 2, t, 8), (b, 2, t, 6)]
    arrays = [values(k, np.float16, *shape) for k, shape in enumerate(shapes)]
    return [*arrays, values(3, np.float32, s, t) > -0.5]


def rotary(b: int, s: int) -> list[np.ndarray]:
    places = np.arange(b * s).reshape(b, s) % 9
    return [
        values(0, np.float32, b, s, 24),
        places,
        *(values(k, np.float32, 9, 4) for k in (1, 2)),
    ]


def residual(b: int, s: int) -> list[np.ndarray]:
    return [*(values(k, np.float32, b, s, 8) for k in (0, 1)), values(2, np.float32, 8)]


def steps(b: int, c: int, length: int) -> list[np.ndarray]:
    shapes = [(b, c, length), (c, 1, 4), (c,), (b, c, 3)]
    return [values(k, np.float32, *shape) for k, shape in enumerate(shapes)]


MODELS = {
    "decoder": (DECODER, [decoder(2, 3, 3, 4), decoder(1, 1, 1, 9)]),
    "cross": (CROSS, [cross(2, 3, 5), cross(1, 7, 2)]),
    "rotary": (ROTARY, [rotary(2, 3), rotary(1, 9)]),
    "residual": (RESIDUAL, [residual(2, 3), residual(1, 1)]),
    "steps": (STEPS, [steps(2, 3, 9), steps(1, 2, 1)]),
}


def test_equal_to_onnxruntime_for_named_sizes():
    cases = []
    for name, (text, feeds) in MODELS.items():
        head = '<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]>'
        model = parser.parse_model(f"{head}\n{text}")
        names = [value.name for value in model.graph.input]
        stock = open_session(ir.from_proto(model), optimized=False)
        runs = [(feed, run(stock, dict(zip(names, feed, strict=True)))) for feed in feeds]
        cases.append(SimpleNamespace(name=name, model=model, data_sets=runs))
    outcome = run_cases(cases)
    assert not outcome.failed, outcome.failed
    assert outcome.equal == list(MODELS), outcome.refused
