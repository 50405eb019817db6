"""Models whose weights lie in a file beside them: never in memory more than once."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from models import heavy
from scripts.memory import peaks
from tcfuse.ort import whole
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session
from tcfuse.pipeline import optimize

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

STOCK = """
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
session.run(None, {"x": numpy.ones((1, 2048), numpy.float32)})
"""
OURS = """
import sys
from tcfuse.cli import main
from tcfuse.ort import whole
whole.MOST_BYTES = 0  # as for a model that is too large for two sessions
sys.exit(main(["optimize", sys.argv[1], "-q"]))
"""
PYTHON_MIB = 256  # the compiler itself


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.timeout(300)
def test_weights_are_in_memory_once(tmp_path: Path):
    source = tmp_path / "heavy.onnx"
    weights = heavy.save(source, 20, 2048) >> 20
    assert weights > PYTHON_MIB
    stock = peaks([sys.executable, "-c", STOCK, str(source)])
    ours = peaks([sys.executable, "-c", OURS, str(source)])
    assert ours["RssAnon"] < stock["RssAnon"] + PYTHON_MIB
    assert ours["VmHWM"] < stock["VmHWM"] + PYTHON_MIB


def test_a_model_measured_one_session_at_a_time_is_the_same(tmp_path: Path, monkeypatch):
    source = tmp_path / "heavy.onnx"
    heavy.save(source, 2, 256)
    monkeypatch.setattr(whole, "MOST_BYTES", 0)
    fused = optimize(source).save(tmp_path / "out.onnx")
    x = {"x": np.random.default_rng(0).random((3, 256), np.float32)}
    expected = run(open_session(source), x)
    library = fused.with_suffix(".so")
    for kernels in {library if library.exists() else None, None}:
        for ours, theirs in zip(run(open_session(fused, kernels), x), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_the_result_may_go_to_another_folder(tmp_path: Path):
    source, out = tmp_path / "in" / "heavy.onnx", tmp_path / "out" / "heavy.onnx"
    source.parent.mkdir()
    heavy.save(source, 2, 256)
    optimize(source, gate=False).save(out)
    x = {"x": np.random.default_rng(0).random((3, 256), np.float32)}
    for ours, theirs in zip(
        run(open_session(out), x), run(open_session(source), x), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
