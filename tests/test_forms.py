"""Models in a blocked layout: equal, refused where they would be wrong, saved whole."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import tcfuse
from tcfuse.commands import bench, verify
from tcfuse.errors import InputError, OptionError
from tcfuse.forms import _chosen, blocked_form
from tcfuse.options import OptimizeOptions
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session
from tcfuse.ort.library import build_library
from tcfuse.ort.manifest import read_manifest
from tcfuse.ort.optimized import native_block
from tcfuse.pipeline import explain, optimize
from tests.random_convnets import Net

BLOCK = native_block()

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.ort,
    pytest.mark.skipif(not BLOCK, reason="ONNX Runtime blocks nothing here"),
]


def net(*steps: str, channels: int = 2 * BLOCK, images: int | str = 2) -> ir.Model:
    """Two convolutions with those steps of a ``Net`` between them."""
    made = Net(0, images)
    made.convolve(channels)
    for step in steps:
        getattr(made, step)()
    made.convolve(BLOCK)
    made.draft.output(made.value, "y", [images, BLOCK, None, None])
    return made.draft.model()


def image(n: int = 2) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).standard_normal((n, 3, 9, 9)).astype("f")}


def blocked(model: ir.Model | Path) -> tcfuse.Result:
    return optimize(model, gate=False, layout="blocked", target="cpu")


def assert_same(model: ir.Model, result: tcfuse.Result, n: int = 2) -> None:
    (expected,) = run(open_session(model), image(n))
    for threads in (1, 2):
        opened = open_session(result.model, result.library, threads=threads)
        (found,) = run(opened, image(n))
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("seed", range(6))
def test_random_networks_give_the_same_answers(seed: int):
    model = Net(100 + seed).model(length=4)
    result = blocked(model)
    assert_same(model, result)


@pytest.mark.parametrize("channels", [BLOCK // 2, BLOCK + 4, 2 * BLOCK])
def test_what_lies_between_convolutions_becomes_kernels_on_blocked_tensors(channels: int):
    model = net("gate", "residual", "pad", channels=channels, images="N")
    result = blocked(model)
    assert result.report.block == BLOCK
    assert result.report.kept
    assert result.portable is not None
    for n in (1, 3):
        assert_same(model, result, n)


def test_it_does_not_load_without_its_library():
    result = blocked(net("gate"))
    with pytest.raises(Exception, match="not a registered function"):
        open_session(result.model)
    assert result.portable is not None
    open_session(result.portable.model)


def test_a_machine_with_another_block_is_refused_with_the_way_out(tmp_path: Path):
    from tests.ort.test_session import twice

    other = 24 - BLOCK
    build_library([twice()], tmp_path / "other.so", block=other)
    build_library([twice()], tmp_path / "same.so", block=BLOCK)
    model = net()
    open_session(model, tmp_path / "same.so")
    message = f"blocks of {other}, and here it has blocks of {BLOCK}; .*portable.onnx"
    with pytest.raises(Exception, match=message):
        open_session(model, tmp_path / "other.so")


def test_initializers_that_are_folded_away_need_not_be_fed():
    made = Net(0)
    made.convolve(2 * BLOCK)
    half = made.draft.op("Mul", made.draft.constant(0.25), made.draft.constant(2.0))
    made.value = made.draft.op("Mul", made.value, half)
    made.gate()
    made.convolve(BLOCK)
    made.draft.output(made.value, "y", [2, BLOCK, None, None])
    model = made.draft.model()
    model.graph.inputs.extend(model.graph.initializers.values())
    model.ir_version = 3
    result = blocked(model)
    assert result.report.block == BLOCK
    assert [value.name for value in result.model.graph.inputs] == ["x"]
    assert_same(model, result)


class TestSave:
    def test_both_forms_are_there_and_commands_take_either(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        model = net("gate", "pointwise")
        path = blocked(model).save(tmp_path / "out.onnx")
        assert {file.name for file in tmp_path.iterdir()} == {
            *("out.onnx", "out.so", "out.tcfuse.json"),
            *("out.portable.onnx", "out.portable.so", "out.portable.tcfuse.json"),
        }
        report = read_manifest(path)
        assert report.block == BLOCK
        assert report.versions["onnxruntime"]
        portable = tmp_path / "out.portable.onnx"
        assert read_manifest(portable).block == 0
        (expected,) = run(open_session(model), image())
        for form in (path, portable):
            (found,) = tcfuse.session(form).run(None, image())
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
            assert verify.run(form, quiet=True) == 0
            assert bench.run(form, None, bench.Conditions(rounds=3), [], []) == 0
        assert "speedup" in capsys.readouterr().out

    def test_an_earlier_portable_form_goes(self, tmp_path: Path):
        blocked(net("gate")).save(tmp_path / "out.onnx")
        optimize(net("gate"), gate=False).save(tmp_path / "out.onnx")
        assert {file.name for file in tmp_path.iterdir()} == {
            *("out.onnx", "out.so", "out.tcfuse.json")
        }

    def test_killed_while_saving_it_leaves_nothing_that_looks_whole(self, tmp_path: Path):
        script = (
            "import os, signal, sys\n"
            "from pathlib import Path\n"
            "from tests.test_forms import blocked, net\n"
            "result = blocked(net('gate'))\n"
            "from tcfuse import result as module\n"
            "def die(*_):\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
            "module.sha256 = die\n"
            "result.save(Path(sys.argv[1]) / 'out.onnx')\n"
        )
        root = Path(__file__).parent.parent
        environment = {**os.environ, "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)], env=environment, check=False
        )
        assert done.returncode == -signal.SIGKILL
        assert [file.name for file in tmp_path.iterdir() if file.suffix == ".onnx"] == []


class TestChoice:
    def test_nothing_is_blocked_unmeasured_and_unasked(self):
        assert optimize(net("gate"), gate=False, target="cpu").report.block == 0
        options = OptimizeOptions.of(gate=True, layout="portable", target="cpu")
        assert blocked_form(net("gate"), options, net("gate")) is None

    def test_the_faster_form_is_kept(self):
        result = optimize(net("gate", "residual"), target="cpu")
        assert result.report.notes
        if result.report.block:
            assert result.portable is not None
            assert "times as fast as the portable form" in result.report.notes[-1]
        else:
            assert "blocked" in result.report.notes[-1]

    @pytest.mark.parametrize(
        ("problem", "gain", "forced", "expected"),
        [
            ("", 1.5, False, True),
            ("", 1.01, False, False),
            ("", 0.9, True, True),
            ("other answers", 1.5, True, False),
        ],
    )
    def test_a_form_is_chosen_by_its_speed_and_never_when_it_is_wrong(
        self, problem: str, gain: float, forced: bool, expected: bool
    ):
        result = blocked(net("gate"))
        assert result.portable is not None
        ratio = {"value": gain, "spread": 0.0, "before_us": 2.0, "after_us": 1.0}
        record = {"problem": problem, "gain": ratio, "whole": ratio}
        chosen = _chosen(result.portable, result, record, forced)
        assert bool(chosen.report.block) is expected
        assert (chosen.portable is not None) is expected

    def test_answers_that_differ_give_the_form_up(self, monkeypatch: pytest.MonkeyPatch):
        forms = importlib.import_module("tcfuse.forms")
        monkeypatch.setattr(forms, "_agree", lambda *_: False)
        monkeypatch.setattr(forms, "tool_digest", lambda: "another")
        result = blocked(net("gate"))
        assert result.report.block == 0
        assert "answers are not those" in result.report.notes[-1]

    def test_an_unknown_layout_is_an_error(self):
        with pytest.raises(OptionError, match="no layout 'nhwc'"):
            optimize(net(), layout="nhwc")

    def test_explain_shows_the_blocked_graph_when_asked(self):
        assert explain(net("gate"), layout="blocked", target="cpu").block == BLOCK
        assert explain(net("gate"), target="cpu").block == 0


def test_two_manifests_do_not_take_each_others_library(tmp_path: Path):
    path = blocked(net("gate")).save(tmp_path / "out.onnx")
    (tmp_path / "out.so").write_bytes((tmp_path / "out.portable.so").read_bytes())
    with pytest.raises(InputError, match="is not the one"):
        verify.run(path, quiet=True)
