"""Models optimized for GPUs where there is none: what is built, what runs, what is reported."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import tcfuse
from tcfuse.errors import OptionError, ToolchainError, UnsupportedError
from tcfuse.kernels import CompiledKernel, compile_cuda_cached
from tcfuse.options import OptimizeOptions
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session, ort_errors
from tcfuse.ort.manifest import read_manifest
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses
from tcfuse.ort.stage import GateResult
from tcfuse.pipeline import optimize
from tcfuse.targeting import resolved
from tcfuse.targets.base import CudaSource
from tcfuse.targets.cuda_archs import arch_number, default_archs
from tcfuse.targets.nvrtc_library import find_nvrtc

pytestmark = [pytest.mark.compiler, pytest.mark.ort, pytest.mark.cuda_build]

ARCH = {"cuda_arch": "sm_80"}


def model() -> ir.Model:
    built: ir.Model = importlib.import_module("models.gelu").build()
    return built


def same_answers(original: ir.Model, result: tcfuse.Result) -> None:
    inputs = model_feeds(original, next(shape_guesses(original, Wishes())))
    expected = run(open_session(original), inputs)
    for library in (result.library, None):
        found = run(open_session(result.model, library), inputs)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def test_both_targets_are_in_one_library(
    tmp_path: Path, tcfuse: Callable[..., tuple[int, str, str]]
):
    original = model()
    result = optimize(original, gate=False, target="cuda,cpu", **ARCH)
    (region,) = result.report.kept
    assert region.targets == ("cpu", "cuda")
    assert region.left_out == {}
    assert region.cuda is not None
    images = [(image["arch"], image["kind"]) for image in region.cuda["images"]]
    assert images == [("sm_80", "cubin"), ("sm_80", "ptx")]
    for launch in region.cuda["launches"]:
        assert launch["arch"] == "sm_80"
        assert launch["registers"] > 0
    assert result.report.options["target"] == "cpu,cuda"
    assert "kernels for GPUs were neither run nor timed" in result.report.notes
    same_answers(original, result)
    path = result.save(tmp_path / "out.onnx")
    assert read_manifest(path).kept == result.report.kept
    cuda = tcfuse("show", path, "--stage", "source", "--target", "cuda")
    cpu = tcfuse("show", path, "--stage", "source")
    assert (cuda[0], cpu[0]) == (0, 0)
    assert '#include "tcf_device.hpp"' in cuda[1]
    assert "TCF_KERNEL" in cpu[1]
    status, out, _ = tcfuse("show", path, "--stage", "resources")
    assert status == 0
    assert len(out.splitlines()) == 1 + len(region.cuda["launches"])
    assert tcfuse("verify", path)[0] == 0


def test_what_does_not_pay_on_the_cpu_stays_for_gpus(monkeypatch: pytest.MonkeyPatch):
    def lose(stage: object) -> GateResult:
        return GateResult(frozenset(), dict.fromkeys(stage.kernels, "slow"), note="no gain")

    monkeypatch.setattr("tcfuse.trial.gate", lose)
    original = model()
    result = optimize(original, dim={"N": 5}, target="cpu,cuda", **ARCH)
    (region,) = result.report.kept
    assert region.targets == ("cuda",)
    assert region.left_out == {"cpu": "slow"}
    same_answers(original, result)
    without_original = ir.to_proto(result.model)
    del without_original.functions[:]
    with pytest.raises(ort_errors(), match="is not a registered function/op"):
        open_session(ir.from_proto(without_original), result.library)


def test_a_region_without_a_kernel_for_gpus_stays_on_the_cpu(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise UnsupportedError("too many teams")

    monkeypatch.setattr("tcfuse.kernels.compile_cuda_cached", refuse)
    original: ir.Model = importlib.import_module("models.gelu").build(features=72)
    result = optimize(original, gate=False, target="cpu,cuda", **ARCH)
    (region,) = result.report.kept
    assert region.targets == ("cpu",)
    assert region.left_out == {"cuda": "too many teams"}
    assert region.cuda is None
    same_answers(original, result)
    alone = optimize(original, gate=False, target="cuda", **ARCH)
    assert [region.reason for region in alone.report.regions] == ["too many teams"]
    assert alone.library is None


def test_kernels_for_gpus_alone_leave_the_cpu_as_it_was(
    tmp_path: Path, tcfuse: Callable[..., tuple[int, str, str]]
):
    original = model()
    result = optimize(original, target="cuda", **ARCH)
    (region,) = result.report.kept
    assert region.targets == ("cuda",)
    assert "error" not in region.measured
    same_answers(original, result)
    path = result.save(tmp_path / "out.onnx")
    status, out, _ = tcfuse("verify", path)
    assert status == 0
    assert "1 kernels for GPUs were not run" in out
    status, out, _ = tcfuse("show", path, "--stage", "source")
    assert '#include "tcf_device.hpp"' in out
    assert tcfuse("show", path, "--stage", "source", "--target", "cpu")[0] == 1


def test_a_kernel_for_gpus_that_is_wrong_in_the_emulator_goes(monkeypatch: pytest.MonkeyPatch):
    def damage(*arguments: object) -> CompiledKernel[CudaSource]:
        kernel = compile_cuda_cached(*arguments)
        text = kernel.source.text
        head, code = text.split("#include", 1)
        assert "tcf::erf" in code
        text = f"{head}#include{code.replace('tcf::erf', 'tcf::tanh')}"
        damaged = replace(kernel.source, text=text)
        return replace(kernel, source=damaged, key=f"damaged {kernel.key}")

    monkeypatch.setattr("tcfuse.kernels.compile_cuda_cached", damage)
    monkeypatch.setattr(
        "tcfuse.compiling.remembered", lambda _s, _k, _g, compile_, _ask: compile_()
    )
    original = model()
    for target, kept in (("cpu,cuda", [("cpu",)]), ("cuda", [])):
        result = optimize(original, gate=False, emulate=True, target=target, **ARCH)
        assert [region.targets for region in result.report.kept] == kept
        (region,) = result.report.regions
        reason = region.left_out["cuda"] if kept else region.reason
        assert reason.startswith("in the emulator, verification failed: ")


def test_knobs_reach_the_kernels_for_gpus(
    tmp_path: Path, tcfuse: Callable[..., tuple[int, str, str]]
):
    source, path = tmp_path / "in.onnx", tmp_path / "out.onnx"
    ir.save(model(), source)
    arguments = ("optimize", source, "-o", path, "--target", "cuda", "--cuda-arch", "sm_80")
    status, _, error = tcfuse(*arguments, "--cuda-block", "3")
    assert status == 2
    assert "--cuda-block 3" in error or "block is 3" in error
    assert tcfuse(*arguments, "--cuda-block", "512", "--block", "4", "-q")[0] == 0
    options = read_manifest(path).options
    assert (options["cuda"]["block"], options["mapping"]["block"]) == (512, 4)


def test_a_kernel_for_gpus_that_is_right_in_the_emulator_stays():
    result = optimize(model(), gate=False, emulate=True, target="cpu,cuda", **ARCH)
    assert [region.targets for region in result.report.kept] == [("cpu", "cuda")]
    assert "kernels for GPUs were run in the emulator, and not timed" in result.report.notes


# --------------------------------------------------------------------- which machines are meant


def missing() -> None:
    raise ToolchainError("not installed")


@pytest.mark.parametrize(
    ("gpus", "compiler", "target", "more"),
    [
        ((), True, "cpu", None),
        (("sm_90",), False, "cpu", None),
        (("sm_90",), True, "cpu,cuda", set()),
        (("sm_120", "sm_87"), True, "cpu,cuda", {"sm_87", "sm_120"}),
        (("sm_61",), True, "cpu,cuda", set()),
    ],
)
def test_auto_wants_a_gpu_and_a_compiler(
    monkeypatch: pytest.MonkeyPatch, gpus, compiler, target, more
):
    usual = default_archs(find_nvrtc().archs)
    monkeypatch.setattr("tcfuse.targeting.gpus", lambda: gpus)
    if not compiler:
        monkeypatch.setattr("tcfuse.targeting.find_nvrtc", missing)
    found = resolved(OptimizeOptions())
    assert found.target == target
    archs = [] if more is None else sorted({*usual, *more}, key=arch_number)
    assert found.cuda_arch == ",".join(archs)


def test_what_is_asked_for_must_be_possible(monkeypatch: pytest.MonkeyPatch):
    assert resolved(OptimizeOptions(target="cuda", cuda_arch="sm_90, sm_80")).cuda_arch == (
        "sm_80,sm_90"
    )
    with pytest.raises(OptionError, match="no architecture 'sm_10'"):
        resolved(OptimizeOptions(target="cuda", cuda_arch="sm_10"))
    monkeypatch.setattr("tcfuse.targeting.find_nvrtc", missing)
    with pytest.raises(ToolchainError, match="not installed"):
        resolved(OptimizeOptions(target="cpu,cuda"))
    assert resolved(OptimizeOptions(target="cpu")).target == "cpu"
