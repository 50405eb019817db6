"""What ``tcfuse doctor`` says of CUDA, with it and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tcfuse.commands import doctor
from tcfuse.errors import ToolchainError
from tcfuse.gpu import libcuda
from tcfuse.targets import nvrtc_library
from tests.fake_libcuda import build


def lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the checks for CUDA print, and the exit status as the last line."""
    checks = {name: doctor.CHECKS[name] for name in ("CUDA compiler", "GPUs")}
    monkeypatch.setattr(doctor, "CHECKS", checks)
    status = doctor.run()
    said = capsys.readouterr().out.splitlines()[1:]
    return [*(" ".join(line.split()) for line in said), str(status)]


def test_what_only_some_need_may_be_absent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nvrtc_library, "WHEELS", ())
    monkeypatch.setattr(libcuda, "LIBRARY", "libno_such_driver.so.1")
    compiler, gpus, status = lines(monkeypatch, capsys)
    assert compiler.startswith("CUDA compiler none NVRTC")
    assert compiler.endswith("pip install 'tcfuse[cuda]'")
    assert gpus.startswith("GPUs none there is no NVIDIA driver")
    assert status == "0"


def test_what_is_there_and_broken_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise ToolchainError("NVRTC cannot be loaded")

    monkeypatch.setattr(nvrtc_library, "locate", lambda: (tmp_path, "13.0"))
    monkeypatch.setattr(nvrtc_library, "find_nvrtc", broken)
    compiler, _, status = lines(monkeypatch, capsys)
    assert compiler == "CUDA compiler FAILS NVRTC cannot be loaded"
    assert status == "1"


@pytest.mark.cuda_build
@pytest.mark.compiler
def test_compiler_and_gpus_are_named(private_cache: Path) -> None:
    """In a process of its own: a libcuda that was loaded stays, and NVRTC would use it."""
    code = (
        "from tcfuse.commands import doctor\n"
        "doctor.CHECKS = {n: doctor.CHECKS[n] for n in ('CUDA compiler', 'GPUs')}\n"
        "raise SystemExit(doctor.run())"
    )
    variables = {**os.environ, "LD_LIBRARY_PATH": str(build(private_cache).parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True
    )
    compiler, gpus = (" ".join(line.split()) for line in done.stdout.splitlines()[1:])
    assert compiler.startswith("CUDA compiler ok NVRTC 1")
    assert ", sm_80, " in compiler
    assert " (sm_" in gpus
    assert "; the driver's CUDA is 1" in gpus
    assert done.returncode == 0
