"""Models of ``models/``, whole: optimized by the command, run by plain ONNX Runtime.

Real models are fetched; where that is not possible those tests are skipped.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from models import fetch
from tcfuse.cli import main
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session
from tcfuse.ort.manifest import read_manifest
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

REAL = (
    "silero_vad_op15",
    "oww_mycroft",
    "oww_embedding",
    "basic_pitch",
    "magika",
    "ppocr2_cls",
)


def compare(source: Path, fused: Path) -> None:
    """The two give the same answers, with the library and without it."""
    original = ir.load(source)
    library = fused.with_suffix(".so")
    for shapes in shape_guesses(original, Wishes()):
        inputs = model_feeds(original, shapes)
        try:
            expected = run(open_session(source), inputs)
        except Exception:
            continue
        for kernels in {library if library.exists() else None, None}:
            found = run(open_session(fused, kernels), inputs)
            for ours, theirs in zip(found, expected, strict=True):
                scale = float(np.abs(theirs, dtype=np.float64).max(initial=1e-6))
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * scale)
        return
    pytest.fail("the original runs on none of our inputs")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", REAL)
def test_real_models_come_out_equal(name: str, tmp_path: Path):
    try:
        source = fetch.fetch(name)
    except (fetch.FetchError, OSError) as error:
        pytest.skip(f"no {name}: {error}")
    fused = tmp_path / "out.onnx"
    assert main(["optimize", str(source), "-o", str(fused), "--no-gate", "-q"]) == 0
    report = read_manifest(fused)
    wrong = [r.reason for r in report.regions if r.reason.startswith(("internal", "verif"))]
    assert wrong == []
    compare(source, fused)


@pytest.mark.parametrize("name", ["gelu", "softmax", "bert"])
def test_the_gate_leaves_a_model_that_is_equal(name: str, tmp_path: Path):
    source, fused = tmp_path / "in.onnx", tmp_path / "out.onnx"
    ir.save(importlib.import_module(f"models.{name}").build(), source)
    assert main(["optimize", str(source), "-o", str(fused), "-q"]) == 0
    compare(source, fused)


def start(source: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tcfuse", "optimize", str(source), "-o", str(out)]
    return subprocess.Popen([*command, "--no-gate", "-q"], env=dict(os.environ))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_run_leaves_no_file_that_looks_finished(how: signal.Signals, tmp_path: Path):
    source, out = tmp_path / "in.onnx", tmp_path / "out" / "out.onnx"
    ir.save(importlib.import_module("models.softmax").build(heads=3), source)
    for delay in (0.3, 1.5):
        process = start(source, out)
        time.sleep(delay)
        process.send_signal(how)
        process.wait()
        left = {p.name for p in out.parent.glob("*")} if out.parent.exists() else set()
        assert process.returncode == 0 or "out.onnx" not in left
        if "out.onnx" in left:
            compare(source, out)


def test_two_runs_share_a_cache_without_harm(tmp_path: Path):
    source = tmp_path / "in.onnx"
    ir.save(importlib.import_module("models.rope").build(heads=7), source)
    outs = [tmp_path / f"out{k}.onnx" for k in range(2)]
    processes = [start(source, out) for out in outs]
    assert [process.wait() for process in processes] == [0, 0]
    for out in outs:
        compare(source, out)
    assert outs[0].with_suffix(".so").read_bytes() == outs[1].with_suffix(".so").read_bytes()
