"""Weights handed over in memory give the session that the whole message gives."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from models import bert
from models.draft import Draft
from tcfuse.ort import inference, injection
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session, runtime
from tcfuse.ort.injection import LARGE_BYTES, Injected
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses

pytestmark = pytest.mark.ort

SIZE = LARGE_BYTES // 4 + 64


def network() -> ir.Model:
    """Convolutions, which are packed and laid out anew, and constants that can be folded."""
    g, rng = Draft("network"), np.random.default_rng(0)
    x = g.input("x", [1, 64, 12, 12])
    for _ in range(2):
        kernel = g.constant(rng.normal(size=(64, 64, 3, 3)).astype(np.float32), np.float32)
        x = g.op("Relu", g.op("Conv", x, kernel, pads=[1, 1, 1, 1]))
    weights = g.constant(rng.normal(size=(12, SIZE // 12)).astype(np.float32), np.float32)
    folded = g.op("Transpose", g.op("Neg", weights), perm=[1, 0])
    codes = g.constant(rng.integers(0, 99, (64, SIZE // 8)), np.int64)
    halves = g.constant(rng.normal(size=(SIZE, 2)).astype(np.float16), np.float16)
    g.output(
        g.op("MatMul", x, g.op("Transpose", folded, perm=[1, 0])), "y", [1, 64, 12, SIZE // 12]
    )
    g.output(
        g.op("Gather", codes, g.constant([3, 5], np.int64)),
        "z",
        [2, SIZE // 8],
        ir.DataType.INT64,
    )
    g.output(
        g.op("Gather", halves, g.constant([7], np.int64)), "h", [1, 2], ir.DataType.FLOAT16
    )
    return g.model()


@pytest.mark.parametrize("build", [network, bert.build])
def test_answers_are_the_same(build, monkeypatch: pytest.MonkeyPatch):
    model = build()
    inputs = model_feeds(model, next(shape_guesses(model, Wishes())))
    found = run(open_session(model), inputs)
    monkeypatch.setattr(injection, "SINCE", (99,))
    for ours, theirs in zip(found, run(open_session(model), inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_message_is_without_weights_and_the_model_stays_as_it_was():
    model = network()
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    parts = Injected.of(model)
    assert len(parts.weights) == 5
    assert len(parts.message) < 4000
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before


def test_the_optimizer_does_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def optimized(name: str) -> Counter[str]:
        path = tmp_path / name
        made = runtime().SessionOptions

        def options() -> object:
            given = made()
            given.optimized_model_filepath = str(path)
            return given

        with monkeypatch.context() as patch:
            patch.setattr(runtime(), "SessionOptions", options)
            open_session(network())
        return Counter(node.op_type for node in onnx.load(path).graph.node)

    found = optimized("injected.onnx")
    monkeypatch.setattr(injection, "SINCE", (99,))
    assert found == optimized("whole.onnx")
    assert found["ReorderOutput"]  # convolutions got their blocked layout
    assert not found["Neg"]


def test_weights_live_as_long_as_their_session():
    session = open_session(network())
    inputs = {"x": np.ones((1, 64, 12, 12), np.float32)}
    first = run(session, inputs)
    gc.collect()
    junk = [np.full(SIZE, np.nan, np.float32) for _ in range(64)]
    for ours, theirs in zip(run(session, inputs), first, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    del junk


def test_older_versions_get_the_whole_message(monkeypatch: pytest.MonkeyPatch):
    def fail(_: ir.Model) -> Injected:
        raise AssertionError("injected")

    monkeypatch.setattr(injection.Injected, "of", fail)
    monkeypatch.setattr(inference, "_version", lambda _: (1, 31))
    assert run(open_session(network()), {"x": np.ones((1, 64, 12, 12), np.float32)})
