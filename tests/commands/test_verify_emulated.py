"""``tcfuse verify --emulate``: the CUDA of a model's kernels, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest

from models import gelu
from tcfuse.commands import verify_emulated
from tcfuse.errors import UnsupportedError

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def optimized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tcfuse.cli import main

    path = tmp_path_factory.mktemp("emulated") / "gelu.onnx"
    ir.save(gelu.build(n="N", features=64), path)
    out = path.with_name("out.onnx")
    arguments = ["optimize", path, "-o", out, "--no-gate", "--no-verify", "-q"]
    assert main([*map(str, arguments), "--target", "cpu"]) == 0
    return out


def edit(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Plant a fault in the text of every kernel."""
    compile_cuda = verify_emulated.compile_cuda_cached

    def faulty(*arguments: Any) -> Any:
        kernel = compile_cuda(*arguments)
        assert old in kernel.source.text
        text = kernel.source.text.replace(old, new)
        return replace(kernel, source=replace(kernel.source, text=text))

    monkeypatch.setattr(verify_emulated, "compile_cuda_cached", faulty)


def test_a_right_model(tcfuse: Command, optimized: Path):
    status, out, err = tcfuse("verify", "--emulate", optimized)
    assert (status, err) == (0, "")
    header, row, last = out.splitlines()
    assert header.split() == list(verify_emulated.HEADER)
    assert row.split()[4:] == ["1.00", "1.00", "1.00", "ok"]
    assert last == f"{optimized}: 1 kernels verified in the emulator"
    assert tcfuse("verify", "--emulate", "-q", optimized) == (0, "", "")


def test_counters(tcfuse: Command, optimized: Path):
    status, out, _ = tcfuse("verify", "--emulate", "--counters", optimized)
    assert status == 0
    rows = [line.split() for line in out.splitlines() if line.startswith("kernel.cu:")]
    assert {" ".join(row[2:5]) for row in rows} == {"global read 16", "global write 16"}
    assert {row[-1] for row in rows} == {"1.00"}


def test_a_wrong_value(tcfuse: Command, optimized: Path, monkeypatch: pytest.MonkeyPatch):
    edit(monkeypatch, "tcf::erf(", "tcf::tanh(")
    status, out, err = tcfuse("verify", "--emulate", optimized)
    assert status == 3
    assert "1 kernels are wrong" in err
    assert "verified" not in out


def test_a_wrong_access(tcfuse: Command, optimized: Path, monkeypatch: pytest.MonkeyPatch):
    edit(monkeypatch, "tcf::store<", "T_o0[-1] = 0.f; tcf::store<")
    status, _, err = tcfuse("verify", "--emulate", optimized)
    assert status == 3
    assert "writes out of bounds, 4 bytes at" in err
    assert "[byte -4], block 0 thread 0" in err


def test_a_text_that_does_not_compile(
    tcfuse: Command, optimized: Path, monkeypatch: pytest.MonkeyPatch
):
    edit(monkeypatch, "tcf::store<", "tcf::put_away<")
    status, _, err = tcfuse("verify", "--emulate", optimized)
    assert status == 1
    assert "put_away" in err


def test_a_region_without_a_kernel(
    tcfuse: Command, optimized: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise UnsupportedError("GPUs cannot do this")

    monkeypatch.setattr(verify_emulated, "compile_cuda_cached", refuse)
    status, out, _ = tcfuse("verify", "--emulate", optimized)
    assert status == 0
    assert "GPUs cannot do this" in out
    assert "0 kernels verified in the emulator, 1 have no kernel for GPUs" in out
