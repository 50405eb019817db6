"""Opening, running, comparing and timing optimized models."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from tcfuse.errors import InputError
from tcfuse.ort.library import build_library
from tcfuse.ort.session import Difference, compare, run, session, session_options, time_paired
from tcfuse.targets.base import Interface, KernelSource, Phase, Port
from tcfuse.targets.compilers import levels
from tcfuse.types import DType, TensorType

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.ort

MODEL = """
<ir_version: 8, opset_import: ["" : 17, "tcfuse" : 1]>
g (float[N] x) => (float[N] y) { y = tcfuse.twice (x) }
<opset_import: ["" : 17], domain: "tcfuse">
twice (x) => (y) { y = Neg (x) }
"""

TWICE = """
TCF_KERNEL(twice_0)(char* const* t, const int64_t* n, char* shared, char* local,
                    int64_t begin, int64_t end, int32_t* fault) {
  for (int64_t i = begin; i < end; i++) ((float*)t[1])[i] = 2 * ((const float*)t[0])[i];
}
"""

X = np.arange(5, dtype=np.float32)


def twice() -> KernelSource:
    """Doubles; the function behind it negates, so the answer tells which ran."""
    vector = TensorType(DType.FLOAT32, ("n0",))
    interface = Interface((Port("x", vector),), (Port("y", vector),), ("n0",))
    return KernelSource("twice", TWICE, interface, (Phase("twice_0", "n0", "1"),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in ("fused", "other", "plain"):
        (folder / f"{name}.onnx").write_bytes(
            onnx.parser.parse_model(MODEL).SerializeToString()
        )
    build_library([twice()], folder / "fused.so", built=levels()[:1])
    (folder / "other.so").write_bytes((folder / "fused.so").read_bytes())
    return folder


@pytest.mark.compiler
def test_the_library_beside_the_model_is_used(folder: Path) -> None:
    np.testing.assert_array_equal(run(folder / "fused.onnx", {"x": X})["y"], 2 * X)
    np.testing.assert_array_equal(run(str(folder / "plain.onnx"), {"x": X})["y"], -X)


@pytest.mark.compiler
def test_a_relative_path_works(folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    np.testing.assert_array_equal(run("fused.onnx", {"x": X})["y"], 2 * X)


@pytest.mark.compiler
def test_own_options_may_be_used_again(folder: Path) -> None:
    options = ort.SessionOptions()
    for _ in range(2):
        opened = session(folder / "fused.onnx", sess_options=options)
        np.testing.assert_array_equal(run(opened, {"x": X})["y"], 2 * X)
    session(folder / "plain.onnx", sess_options=options)
    with pytest.raises(InputError, match=r"hold the kernels of .*fused\.so; use new ones"):
        session(folder / "other.onnx", sess_options=options)


@pytest.mark.compiler
def test_entries_reach_the_library(folder: Path) -> None:
    path = folder / "fused.onnx"
    options = session_options(path, entries={"tcfuse.disable": "twice"})
    opened = ort.InferenceSession(str(path), options)
    np.testing.assert_array_equal(run(opened, {"x": X})["y"], -X)


def test_clear_errors(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(InputError, match=r"absent\.onnx: there is no such file"):
        session(tmp_path / "absent.onnx")
    path = tmp_path / "broken.onnx"
    path.write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
    path.with_suffix(".so").write_bytes(b"not a library")
    with pytest.raises(InputError, match=r"broken\.so: the kernels cannot be loaded"):
        session(path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r"pip install 'tcfuse\[cpu\]'"):
        session(path)


def test_differences() -> None:
    nan, inf = np.float32("nan"), np.float32("inf")
    a = np.array([1, -4, nan, inf], np.float32)
    assert Difference.between(a, a) == Difference(0, 0)
    assert Difference.between(a, a + np.float32([0, 1, 0, 0])) == Difference(1, 0.25)
    assert Difference.between(a, a[:2]).absolute == np.inf
    assert Difference.between(a, a.astype(np.float64)).absolute == np.inf
    assert Difference.between(a, np.array([1, -4, 0, inf], np.float32)).absolute == np.inf
    assert Difference.between(a, -a).absolute == np.inf
    assert Difference.between(a[:0], a[:0]) == Difference(0, 0)
    words = np.array(["a"], object)
    assert Difference.between(words, words) == Difference(0, 0)
    assert compare({"y": a}, {"y": a}) == {"y": Difference(0, 0)}
    with pytest.raises(InputError, match="outputs are y and z"):
        compare({"y": a}, {"z": a})


def test_paired_times_find_the_faster_one() -> None:
    small, large = np.ones(1000), np.ones(1_000_000)
    times = time_paired([large.sum, small.sum, large.sum], rounds=3)
    assert times.ratios[0].value == 1
    assert times.ratios[1].value > 3
    assert 0.3 < times.ratios[2].value < 3
    assert times.medians_us[1] < times.medians_us[0]


@pytest.mark.compiler
def test_sessions_are_timed_on_feeds(folder: Path) -> None:
    sessions = [session(folder / "plain.onnx"), session(folder / "fused.onnx")]
    times = time_paired(sessions, {"x": X}, rounds=2, min_time=0.1)
    assert all(us > 0 for us in times.medians_us)


@pytest.mark.parametrize(
    ("providers", "entry"),
    [
        (None, "0"),
        (["CPUExecutionProvider"], "0"),
        (["CUDAExecutionProvider", "CPUExecutionProvider"], None),
        ([("CUDAExecutionProvider", {"device_id": 0})], None),
    ],
)
def test_gpus_are_left_alone_unless_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, providers, entry
):
    opened = []
    (tmp_path / "m.onnx").write_bytes(b"")
    monkeypatch.setattr(
        ort, "InferenceSession", lambda _, options, **more: opened.append(options)
    )
    session(tmp_path / "m.onnx", providers)
    try:
        found = opened[0].get_session_config_entry("tcfuse.cuda")
    except RuntimeError:
        found = None
    assert found == entry
