"""Attention, rotary embeddings and operators with a state agree with ONNX Runtime, where it has
kernels of them: Attention of opsets 23 and 24, and operators of its own domain."""

from __future__ import annotations

import numpy as np
import pytest

from tests.op_library.test_against_onnxruntime import (
    MICROSOFT,
    compare,
    data,
    whole,
)

pytestmark = pytest.mark.ort

HALF = np.float16
Q, K, V = data(2, 4, 3, 8), data(2, 2, 5, 8, seed=1), data(2, 2, 5, 6, seed=2)
PAST = [data(2, 2, 4, 8, seed=3), data(2, 2, 4, 6, seed=4)]
PACKED = [data(2, 3, 32), data(2, 5, 16, seed=1), data(2, 5, 12, seed=2)]
HEADS = {"q_num_heads": 4, "kv_num_heads": 2}
PRESENT = ("y", "keys", "values")
OPEN = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
MINUS = np.where(OPEN, 0.25, -np.inf).astype(np.float32)
OVERFLOWING = np.where(np.arange(96).reshape(1, 4, 3, 8) == 9, np.inf, Q[:1]).astype(np.float32)
ATTENTION = [
    (23, [Q, K, V], {}, ("y",)),
    (23, [Q, K, V], {"scale": 0.2, "softcap": 0.5}, ("y", "", "", "seen")),
    (23, [Q, K, V, OPEN], {"is_causal": 1, "qk_matmul_output_mode": 3}, ("y", "", "", "seen")),
    (23, [Q, K, V, MINUS], {"softcap": 2.0, "qk_matmul_output_mode": 1}, ("y", "", "", "seen")),
    (23, [Q, K, V, data(4, 3, 5)], {"qk_matmul_output_mode": 2}, ("y", "", "", "seen")),
    (23, [OVERFLOWING, K[:1], V[:1], MINUS], {}, ("y",)),
    (23, [Q, K, V, data(2, 1, 3, 9), *PAST], {"is_causal": 1}, PRESENT),
    (23, [*PACKED], HEADS, ("y",)),
    (23, [*PACKED, None, *PAST], {**HEADS, "is_causal": 1}, PRESENT),
    (23, [a.astype(HALF) for a in (Q, K, V)], {"is_causal": 1}, ("y",)),
    (24, [Q, K, V, None, None, None, whole(2, 5)], {"is_causal": 1}, ("y",)),
    (24, [Q, K, V, OPEN, None, None, whole(3, 4)], {}, ("y",)),
]


@pytest.mark.parametrize(("opset", "arrays", "attributes", "outputs"), ATTENTION)
def test_attention(run, opset, arrays, attributes, outputs):
    compare(run, "Attention", opset, arrays, attributes, outputs)


COS, SIN = np.cos(data(9, 4)), np.sin(data(9, 4))
PLACES = whole(0, 1, 8, 3, 4, 5).reshape(2, 3)
WIDE, SIDE_BY_SIDE = data(2, 4, 3, 8), data(2, 3, 32)
ROTATED = [
    ([WIDE, PLACES, COS, SIN], {}),
    ([WIDE, whole(2), COS, SIN], {}),
    ([SIDE_BY_SIDE, PLACES, COS, SIN], {}),
    ([SIDE_BY_SIDE, whole(0), COS, SIN], {"num_heads": 4, "scale": 2.0}),
    ([WIDE, PLACES, COS[:, :2], SIN[:, :2]], {"num_heads": 4, "rotary_embedding_dim": 4}),
    (
        [SIDE_BY_SIDE, PLACES, COS[:, :2], SIN[:, :2]],
        {"num_heads": 4, "rotary_embedding_dim": 4},
    ),
    ([WIDE.astype(HALF), PLACES, COS.astype(HALF), SIN.astype(HALF)], {}),
]


@pytest.mark.parametrize(("arrays", "attributes"), ROTATED)
@pytest.mark.parametrize("interleaved", [0, 1])
def test_contributed_rotary_embedding(run, arrays, attributes, interleaved):
    attributes = {**attributes, "interleaved": interleaved}
    compare(run, "RotaryEmbedding", 1, arrays, attributes, domain=MICROSOFT)


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("steps", [1, 7])
def test_contributed_causal_convolution(run, past, dilation, steps):
    arrays = [data(2, 4, steps), data(4, 1, 3), data(4)]
    arrays += [data(2, 4, 2 * dilation)] if past else []
    attributes = {"dilation": dilation, "activation": "silu" if past else "none"}
    compare(run, "CausalConvWithState", 1, arrays, attributes, ("y", "state"), MICROSOFT)


X, KEYS, VALUES = data(2, 3, 16), data(2, 3, 8, seed=1), data(2, 3, 12, seed=2)
DECAY, BETA = -np.abs(data(2, 3, 8, seed=3)), np.abs(data(2, 3, 2, seed=4))
RULES = {
    "linear": (None, None),
    "gated": (DECAY, None),
    "delta": (None, BETA),
    "gated_delta": (DECAY[..., :2], BETA[..., :1]),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("past", [False, True])
def test_contributed_linear_attention(run, rule, past):
    arrays = [X, KEYS, VALUES, data(2, 2, 4, 6) if past else None, *RULES[rule]]
    attributes = {**HEADS, "update_rule": rule, "scale": 0.3 if past else 0.0}
    compare(run, "LinearAttention", 1, arrays, attributes, ("y", "state"), MICROSOFT)


QUERY, KEY = data(2, 3, 8), data(2, 5, 8, seed=1)
VALUE, SAME = data(2, 5, 12, seed=2), data(2, 5, 8, seed=2)
APART = [data(2, 2, 5, 4, seed=1), data(2, 2, 5, 4, seed=2)]
BEFORE = [data(2, 2, 4, 4, seed=5), data(2, 2, 4, 4, seed=6)]
LENGTHS = np.array([2, 4], np.int32)
COUNTED = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0]], np.int32)
PER_QUERY, PER_KEY = ((data(*s) > 0).astype(np.int32) for s in ((2, 3, 5), (2, 9)))
MULTI_HEAD = [
    ([QUERY, KEY, VALUE], {}, ("y",)),
    ([QUERY, KEY, VALUE, data(28)], {"scale": 0.3}, PRESENT),
    ([QUERY, *APART], {}, ("y",)),
    ([QUERY, KEY, VALUE, None, COUNTED], {"mask_filter_value": -3.0}, ("y",)),
    ([QUERY, KEY, VALUE, data(28), PER_QUERY, data(1, 2, 3, 5)], {}, ("y",)),
    ([QUERY, KEY, VALUE, None, LENGTHS, data(2, 1, 3, 5)], {"unidirectional": 1}, ("y",)),
    ([QUERY[:, :1], KEY, VALUE], {"unidirectional": 1}, ("y",)),
    ([QUERY, KEY, SAME, None, PER_KEY, data(2, 2, 3, 9), *BEFORE], {}, PRESENT),
    ([QUERY, KEY, SAME, data(24), None, None, *BEFORE], {"unidirectional": 1}, PRESENT),
]


@pytest.mark.parametrize(("arrays", "attributes", "outputs"), MULTI_HEAD)
def test_multi_head_attention(run, arrays, attributes, outputs):
    attributes = {**attributes, "num_heads": 2}
    compare(run, "MultiHeadAttention", 1, arrays, attributes, outputs, MICROSOFT)


def whole32(*values: int) -> np.ndarray:
    return np.array(values, np.int32).reshape(2, 3)


WORDS, SEGMENTS = whole32(1, 0, 4, 2, 2, 3), whole32(0, 1, 1, 0, 0, 0)
TABLES = [data(5, 8), data(4, 8, seed=1), data(2, 8, seed=2), data(8), data(8, seed=3)]
COUNTED_WORDS, ELSEWHERE = whole32(0, 1, 1, 1, 0, 2), whole32(2, 1, 0, 3, 3, 0)
EMBEDDED = [
    ([WORDS, SEGMENTS, *TABLES, COUNTED_WORDS], {"epsilon": 0.1}, ("y", "counted")),
    ([WORDS, None, *TABLES[:2], None, *TABLES[3:]], {}, ("y", "counted")),
    ([WORDS, SEGMENTS, *TABLES, COUNTED_WORDS, ELSEWHERE], {}, ("y", "counted", "sum")),
    ([WORDS, SEGMENTS, *TABLES, None, ELSEWHERE[:1]], {}, ("y", "", "sum")),
    ([WORDS, SEGMENTS, *(a.astype(HALF) for a in TABLES)], {}, ("y", "counted")),
]


@pytest.mark.parametrize(("arrays", "attributes", "outputs"), EMBEDDED)
def test_embed_layer_normalization(run, arrays, attributes, outputs):
    compare(run, "EmbedLayerNormalization", 1, arrays, attributes, outputs, MICROSOFT)
