"""ONNX Runtime as a contender, with its CPU in the place of the GPU; and what is not there."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from models import gelu
from scripts.gpu import contenders, micro_graphs, models, sanitizer
from scripts.gpu.contenders import OnnxRuntime, Torch, measure, run_once
from scripts.gpu.workbench import Workbench
from tcfuse.errors import DeviceError

FEEDS = """
import numpy as np

def feeds(path):
    return {"x": np.linspace(-3, 3, 512, dtype=np.float32).reshape(8, 64)}
"""


class OnTheCpu(OnnxRuntime):
    """The same calls; no streams and no graphs."""

    provider, memory = "CPUExecutionProvider", "cpu"

    def settings(self) -> dict[str, str]:
        return {}

    def graph(self, model, library, inputs, like) -> contenders.Replayed:
        enqueue, _ = self.bound(self.session(model, library), inputs, like)
        return contenders.Replayed(enqueue)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "gelu.onnx"
    ir.save(gelu.build(n=8, features=64), path)
    return path


@pytest.mark.compiler
@pytest.mark.ort
def test_a_bound_session_writes_where_it_is_told_to(bench: Workbench, model: Path) -> None:
    runtime = OnTheCpu(bench.device)
    session = runtime.session(str(model))
    (name,) = (i.name for i in session.get_inputs())
    inputs = {name: np.ones((8, 64), np.float32), "unused": np.zeros(3)}
    like = run_once(session, inputs)
    enqueue, binding = runtime.bound(session, inputs, like)
    enqueue()
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], like[0])
    times = measure(bench, {"ort": enqueue}, {"ort": contenders.Replayed(enqueue)})
    assert set(times["ort"]) == {"launched", "graph"}


@pytest.mark.compiler
@pytest.mark.ort
def test_a_model_is_optimized_compared_and_timed(
    bench: Workbench, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "feeds.py").write_text(FEEDS)
    monkeypatch.setattr(models, "OnnxRuntime", OnTheCpu)
    monkeypatch.setattr(
        models, "OPTIMIZE", (*models.OPTIMIZE[:-1], "cpu", "--no-gate", "--no-verify")
    )
    monkeypatch.delitem(sys.modules, "feeds", raising=False)
    found = models.run("gelu", bench)
    assert found["status"] == "ok", found
    assert found["errors"]["ONNX Runtime"] == 0
    assert 0 <= found["errors"]["tcfuse in ONNX Runtime"] < 1e-5
    assert set(found["seconds"]) == {"ONNX Runtime", "tcfuse in ONNX Runtime"}
    assert not found["notes"]


@pytest.mark.ort
def test_the_cpu_package_is_no_contender() -> None:
    ort = pytest.importorskip("onnxruntime")
    if "CUDAExecutionProvider" in ort.get_available_providers():
        pytest.skip("this one was built with CUDA")
    with pytest.raises(DeviceError, match="onnxruntime-gpu has it"):
        OnnxRuntime(None)


def test_neither_is_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(DeviceError, match="PyTorch cannot be used"):
        Torch(None)
    with pytest.raises(DeviceError, match="ONNX Runtime cannot be used"):
        OnnxRuntime(None)


def test_benches_need_their_folder(tmp_path: Path) -> None:
    assert micro_graphs.names(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="--shared says where it is"):
        micro_graphs.definitions(tmp_path)


SANITIZER = f"""#!{sys.executable}
import subprocess, sys
tool, status, command = sys.argv[2], sys.argv[4], sys.argv[5:]
assert sys.argv[1:4:2] == ["--tool", "--error-exitcode"]
if tool == "racecheck":
    print("========= Error: Race reported", flush=True)
    sys.exit(int(status))
sys.exit(subprocess.run(command).returncode)
"""


@pytest.mark.compiler
def test_kernels_run_under_the_sanitizer(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "compute-sanitizer"
    program.write_text(SANITIZER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(sanitizer, "PAPERS", ("tmm",))
    monkeypatch.setattr(sanitizer, "CASES", ())
    assert shutil.which("compute-sanitizer") == str(program)
    assert sanitizer.run("memcheck", bench) == {"status": "ok", "kernels": 1}
    assert sanitizer.run("racecheck", bench) == {
        "status": "wrong",
        "why": "========= Error: Race reported",
    }


def test_what_runs_under_the_sanitizer_is_there() -> None:
    from scripts.gpu.items import item_names

    names = sanitizer.kernels()
    assert len(names) == len(sanitizer.PAPERS) + len(sanitizer.CASES)
    assert set(names) <= {*item_names("papers"), *item_names("cases")}
