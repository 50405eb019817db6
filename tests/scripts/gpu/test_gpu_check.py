"""The whole of ``scripts/gpu_check.py`` without a GPU: the emulator stands for it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from scripts.gpu.command import main
from scripts.gpu.limits import COPY
from scripts.gpu.papers import paper_subject
from scripts.gpu.workbench import compiled, cuda_source, emulated
from tcfuse.debug import cache_dir
from tcfuse.gpu.images import choose
from tests import fake_libcuda

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, str(ROOT / "scripts" / "gpu_check.py")]
OK, WRONG, USAGE, NO_DEVICE, UNFINISHED = 0, 1, 2, 3, 4
MICRO = textwrap.dedent(
    '''
    """One bench in the form of the shared ones: rows scaled by a vector, then reshaped."""

    from types import SimpleNamespace

    import numpy as np
    from onnx import TensorProto, helper, numpy_helper


    def to_onnx(name, micro):
        gain = numpy_helper.from_array(micro.weights["gain"], "gain")
        shape = numpy_helper.from_array(np.array([6, 2, 8], np.int64), "shape")
        nodes = [
            helper.make_node("Mul", ["x", "gain"], ["y"]),
            helper.make_node("Reshape", ["y", "shape"], ["z"]),
            helper.make_node("Relu", ["z"], ["out"]),
        ]
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes,
            name,
            [value("x", TensorProto.FLOAT, (6, 16))],
            [value("out", TensorProto.FLOAT, (6, 2, 8))],
            [gain, shape],
        )
        opset = helper.make_opsetid("", 13)
        return helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()


    def oracle(t):
        sign = -1 if WRONG else 1
        return sign * np.maximum((t.x * t.gain).reshape(6, 2, 8), 0)


    def scale_relu():
        x = np.linspace(-1, 2, 96, dtype=np.float32).reshape(6, 16)
        return SimpleNamespace(
            kind="memory", inputs={"x": x}, weights={"gain": np.full(16, 3, np.float32)},
            oracle=oracle, flops=0, output_dtype="float32", gathered=0,
            traffic=lambda: 2 * 96 * 4 + 64,
        )


    WRONG = False
    BENCHES = {"scale_relu": None}


    def make(name):
        return scale_relu()
    '''
)


def check(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True
    )


def items_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())["items"]
    return found


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared" / "bench"
    folder.mkdir(parents=True)
    (folder / "micro_models.py").write_text(MICRO)
    return folder.parent


DRY = ("--dry-run", "--jobs", 1)
ONLY = ("limits", "papers/tmm-16", "test_relu", "scale_relu")
SOME = [f"--only={text}" for text in ONLY]
PARTS = [f"--part={name}" for name in ("limits", "papers", "cases", "micro", "models")]


@pytest.mark.compiler
def test_everything_but_a_gpu(tmp_path: Path, shared: Path) -> None:
    out = tmp_path / "found.json"
    done = check(*DRY, *PARTS, *SOME, "--shared", shared, "--out", out)
    assert done.returncode == OK, done.stdout + done.stderr
    items = items_of(out)
    statuses = {name: outcome["status"] for name, outcome in items.items()}
    assert statuses.pop("limits/products") in ("absent", "ok")
    assert set(statuses) == {
        *("limits/copy", "papers/tmm-16x32x8", "cases/test_relu", "micro/scale_relu"),
        *("cases/test_relu_expanded_ver18",),
    }
    assert set(statuses.values()) == {"ok"}
    micro = items["micro/scale_relu"]
    assert micro["error"] < 1e-6
    assert set(micro["seconds"]) == {"tcfuse", "copy"}
    assert all(len(modes["launched"]) == 2 for modes in micro["seconds"].values())
    assert all(len(modes["graph"]) == 2 for modes in micro["seconds"].values())
    assert "models: nothing to do (--models names a folder of models)" in done.stdout
    table = out.with_suffix(".txt").read_text()
    assert "DRY RUN: an emulator on the CPU; the times below mean nothing" in table
    assert "cases: 2 ok" in table

    text = MICRO.replace("WRONG = False", "WRONG = True")
    (shared / "bench" / "micro_models.py").write_text(text)
    wrong = check(*DRY, "--part", "micro", "--shared", shared, "--out", out, "--fresh")
    assert wrong.returncode == WRONG
    assert "micro/scale_relu wrong: error" in wrong.stdout


@pytest.mark.compiler
@pytest.mark.cuda_build
def test_the_way_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command as it is, with NVRTC's images; the driver alone is not NVIDIA's."""
    subject = paper_subject("tmm-1x5x1")
    source = cuda_source(subject.checked, subject.interface, subject.name)
    (image,) = emulated(source)
    kernels = image.data.decode().rstrip("\0").split(":", 2)[2]
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_libcuda.build(cache_dir()).parent))
    monkeypatch.setenv("FAKE_LIBCUDA_EMULATORS", kernels)
    out = tmp_path / "found.json"
    names = ("tmm-1x5x1", "fcrelu-1x2x1")
    done = check("--part", "papers", *(f"--only={n}" for n in names), "--out", out, "--jobs", 1)
    assert "fake sm_90" in done.stdout
    items = items_of(out)
    assert items["papers/tmm-1x5x1"]["status"] == "ok"
    # the emulator has one kernel only, and the other one is missed
    assert "named symbol not found" in items["papers/fcrelu-1x2x1"]["why"]
    assert done.returncode == WRONG


@pytest.mark.cuda_build
def test_a_gpu_newer_than_the_compiler_gets_ptx() -> None:
    assert [(i.arch, i.kind) for i in compiled(COPY, "sm_90")] == [
        ("sm_90", "cubin"),
        ("sm_90", "ptx"),
    ]
    assert choose(compiled(COPY, "sm_999"), "sm_999").kind == "ptx"


@pytest.mark.compiler
def test_what_is_left_when_time_is_up_is_done_by_the_next_run(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    arguments = (*DRY, "--part", "limits", "--out", out)
    first = check(*arguments, "--minutes", 0)
    assert first.returncode == UNFINISHED
    assert "time is up with 2 items left: run the same command again" in first.stdout
    assert not items_of(out)
    again = check(*arguments)
    assert again.returncode == OK
    assert "limits: 2 items, 0 done before" in again.stdout
    assert set(items_of(out)) == {"limits/copy", "limits/products"}


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    done = check("--part", "limits", "--out", out, "--device", 99)
    assert done.returncode == NO_DEVICE
    assert done.stderr.startswith("error: no GPU can be used: there is no")
    assert "--dry-run does everything but use one" in done.stderr
    assert not out.exists()


def test_slices_of_a_part_are_the_part(capsys: pytest.CaptureFixture[str]) -> None:
    def listed(part: str) -> list[str]:
        assert main(["--list", "--part", part]) == OK
        return capsys.readouterr().out.split()

    whole = listed("papers")
    assert len(whole) > 20
    halves = [listed(f"papers:{k}/2") for k in (1, 2)]
    assert sorted(halves[0] + halves[1]) == sorted(whole)
    assert abs(len(halves[0]) - len(halves[1])) <= 1


@pytest.mark.parametrize(
    ("part", "why"),
    [("speed", "parts are limits"), ("cases:3/2", "no slice 3 of 2"), ("cases:x", "like :2/4")],
)
def test_wrong_parts_are_refused(
    part: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--part", part])
    assert stopped.value.code == USAGE
    assert why in capsys.readouterr().err
