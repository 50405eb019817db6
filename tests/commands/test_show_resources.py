"""``tcfuse show --stage resources`` on files of definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tcfuse.commands import show_resources
from tcfuse.targets.base import CudaPhase
from tcfuse.targets.cuda_archs import default_archs
from tcfuse.targets.nvrtc import CudaImages
from tcfuse.targets.nvrtc_library import find_nvrtc
from tcfuse.targets.resources import Resources, warnings
from tests.targets.cuda_sources import ELEMENTWISE

Command = Callable[..., tuple[int, str, str]]

LAYERS = """
def scale(float(N, M) x, float(M) s) -> (float(N, M) y) { y(i, j) = x(i, j) * s(j) }
def total(float(N, M) x) -> (float(N) y) { y(i) +=! x(i, j) }
"""


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    path = tmp_path / "layers.tc"
    path.write_text(LAYERS)
    return path


@pytest.mark.cuda_build
def test_every_launch_has_a_line_for_each_common_architecture(
    layers: Path, tcfuse: Command
) -> None:
    status, out, _ = tcfuse("show", layers, "--stage", "resources")
    assert status == 0
    head, *lines = out.splitlines()
    assert head.split()[:5] == ["kernel", "launch", "arch", "threads", "registers"]
    cells = [line.split() for line in lines]
    assert {kernel.rpartition("_")[0] for kernel, *_ in cells} == {"scale", "total"}
    archs = default_archs(find_nvrtc().archs)
    assert [arch for _, _, arch, *_ in cells] == [*archs] * (len(cells) // len(archs))
    assert all(cell[5] == "0/0" for cell in cells)


@pytest.mark.cuda_build
def test_one_kernel_may_be_chosen(layers: Path, tcfuse: Command) -> None:
    status, out, _ = tcfuse("show", layers, "--stage", "resources", "--kernel", "total")
    assert status == 0
    assert all(line.startswith("total_") for line in out.splitlines()[1:])


def test_the_cpu_has_none(layers: Path, tcfuse: Command) -> None:
    status, _, err = tcfuse("show", layers, "--stage", "resources", "--target", "cpu")
    assert status == 2
    assert "is about kernels for GPUs" in err


def test_warnings_stand_below_the_table(
    layers: Path, tcfuse: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = Resources(255, 8, 4, 8, 0, 1024, 4, 4)
    launch = replace(ELEMENTWISE.launches[0], when="tcf_alignment % 16 == 0")
    given = replace(ELEMENTWISE, phases=(CudaPhase((launch,)),))
    told = tuple(warnings(launch, "sm_80", needs))
    images = CudaImages((), {launch.symbol: {"sm_80": needs}}, told)
    monkeypatch.setattr(show_resources, "compile_cuda", lambda source, cache: images)
    monkeypatch.setattr(
        show_resources, "compile_cuda_definition", lambda *_: SimpleNamespace(source=given)
    )
    _, out, _ = tcfuse("show", layers, "--stage", "resources", "--kernel", "scale")
    assert out.splitlines()[-2:] == [f"warning: {text}" for text in told]
    assert len(told) == 2
