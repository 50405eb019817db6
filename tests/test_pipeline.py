"""Models come out whole: fused and equal, or as they were, with the reason."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import tcfuse
from models.draft import Draft
from tcfuse import debug, kernels
from tcfuse.errors import InputError, OptionError, UnsupportedError
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session
from tcfuse.ort.manifest import read_manifest
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses
from tcfuse.ort.writer import digest_if_same
from tcfuse.pipeline import explain, optimize
from tcfuse.tc import compose

pytestmark = [pytest.mark.compiler, pytest.mark.ort]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache that knows nothing yet."""
    monkeypatch.setenv("TCFUSE_CACHE_DIR", str(tmp_path / "cache"))
    debug.current.cache_clear()
    yield
    monkeypatch.undo()
    debug.current.cache_clear()


def model(name: str, **sizes: object) -> ir.Model:
    """What a builder of ``models/`` makes."""
    built: ir.Model = importlib.import_module(f"models.{name}").build(**sizes)
    return built


def same_answers(original: ir.Model, result: tcfuse.Result) -> None:
    """Compare with the original, with the library and without."""
    inputs = model_feeds(original, next(shape_guesses(original, Wishes())))
    expected = run(open_session(original), inputs)
    for library in (result.library, None):
        found = run(open_session(result.model, library), inputs)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "name", ["gelu", "softmax", "rope", "hardswish", "chain", "attention", "bert"]
)
def test_a_fused_model_gives_the_same_answers(name: str):
    original = model(name)
    result = optimize(original, gate=False)
    assert [region.reason for region in result.report.regions if not region.kept] == []
    assert result.report.kept
    same_answers(original, result)


def test_a_recurrence_of_hundreds_of_nodes_is_one_kernel():
    original = model("scan", steps=32)
    result = optimize(original, gate=False)
    (region,) = result.report.kept
    assert len(region.nodes) > 192
    same_answers(original, result)


def test_a_region_of_too_many_statements_becomes_several(
    empty_cache: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(compose, "MOST_STATEMENTS", 12)
    original = model("scan", steps=8)
    for _ in range(2):  # made, and remembered
        result = optimize(original, gate=False)
        assert len(result.report.kept) > 1
        assert not any(region.reason for region in result.report.regions)
    same_answers(original, result)


def test_an_infinity_times_an_exponential_that_is_flushed_is_no_error():
    g = Draft("flushed")
    x, y = g.input("x", [64, 512]), g.input("y", [64, 512])
    g.output(g.op("Mul", g.op("Exp", x), y), "z", [64, 512])
    (region,) = optimize(g.model(), gate=False).report.regions
    assert region.kept, region.reason


def test_the_source_stays_as_it_is():
    original = model("gelu")
    before = ir.to_proto(original).SerializeToString(deterministic=True)
    optimize(original, gate=False)
    assert ir.to_proto(original).SerializeToString(deterministic=True) == before


def test_equal_regions_share_a_kernel():
    result = optimize(model("hardswish", blocks=3), gate=False)
    assert len(result.report.kept) == 3
    assert len({region.name for region in result.report.kept}) == 1


def test_regions_of_one_formula_with_different_operators_keep_their_fallbacks():
    g = Draft("two")
    x, z = g.input("x", [4, 6]), g.input("z", [4, 6])
    shape = g.constant([24], np.int64)
    for k, value in enumerate((x, z)):
        inner = g.op("Tanh", g.op("Mul", value, value))
        flat = g.op("Reshape", inner, shape) if k else g.op("Flatten", inner, axis=0)
        final = g.op("Exp", g.op("Add", flat, flat))
        g.output(final, f"y{k}", [24] if k else [1, 24])
    original = g.model()
    same_answers(original, optimize(original, gate=False))


def test_a_warm_run_compiles_nothing(monkeypatch: pytest.MonkeyPatch):
    cold = optimize(model("softmax"), gate=False)

    def fail(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr("tcfuse.isolation.Worker.compile", fail)
    monkeypatch.setattr("tcfuse.building.build_library", fail)
    monkeypatch.setattr("tcfuse.trial.verify_kernel", fail)
    warm = optimize(model("softmax"), gate=False)
    assert warm.report.regions == cold.report.regions
    assert warm.library == cold.library


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UnsupportedError("too hard"), "too hard"),
        (
            AssertionError("broken\ninvariant"),
            "internal error: AssertionError: broken invariant",
        ),
    ],
)
def test_a_region_that_fails_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("tcfuse.kernels.compile_cached", fail)
    original = model("gelu")
    result = optimize(original, gate=False)
    assert [region.reason for region in result.report.regions] == [reason]
    assert result.library is None
    assert result.model is original


@pytest.mark.usefixtures("empty_cache")
def test_a_kernel_that_does_not_compile_costs_its_region_only(monkeypatch: pytest.MonkeyPatch):
    from tcfuse.kernels import CompiledKernel, compile_cached

    def damage(*arguments: object) -> CompiledKernel:
        kernel = compile_cached(*arguments)
        if "softmax" not in kernel.name:
            return kernel
        damaged = replace(kernel.source, text="this is no C++")
        return replace(kernel, source=damaged, key=f"damaged {kernel.key}")

    monkeypatch.setattr("tcfuse.kernels.compile_cached", damage)
    original = model("attention")
    result = optimize(original, gate=False)
    reasons = {region.reason.partition(":")[0] for region in result.report.regions}
    assert reasons == {"", "does not compile"}
    same_answers(original, result)


@pytest.mark.usefixtures("empty_cache")
def test_a_refusal_is_remembered(monkeypatch: pytest.MonkeyPatch):
    calls = []

    def refuse(*_: object) -> None:
        calls.append(1)
        raise UnsupportedError("not today")

    monkeypatch.setattr("tcfuse.isolation.Worker.compile", refuse)
    for _ in range(2):
        report = explain(model("gelu"))
        assert [region.reason for region in report.regions] == ["not today"]
    assert len(calls) == 1


def test_the_gate_gives_back_what_does_not_pay(monkeypatch: pytest.MonkeyPatch):
    from tcfuse.ort.stage import GateResult

    def lose(stage: object) -> GateResult:
        return GateResult(frozenset(), dict.fromkeys(stage.kernels, "slow"), note="no gain")

    monkeypatch.setattr("tcfuse.trial.gate", lose)
    result = optimize(model("gelu", features=77), dim={"N": 300}, target="cpu")
    assert [region.reason for region in result.report.regions] == ["slow"]
    assert result.report.notes == ("no gain",)
    assert result.library is None


def test_explain_gives_a_reason_for_each_node_left_alone():
    report = explain(model("attention"))
    left = dict(report.rejections)
    assert any(label.startswith("MatMul") for label in left)
    assert all(left.values())
    n_nodes = sum(len(region.nodes) for region in report.regions) + len(left)
    assert n_nodes == len(model("attention").graph)


def test_options_are_checked():
    with pytest.raises(OptionError, match="no option 'gates'"):
        optimize(model("gelu"), gates=False)
    with pytest.raises(OptionError, match="no size 'Z'"):
        optimize(model("gelu"), dim={"Z": 1})


class TestSave:
    def test_a_build_that_is_repeated_does_not_write_the_model_again(self, tmp_path: Path):
        result, target = optimize(model("gelu"), gate=False), tmp_path / "out.onnx"
        result.save(target)
        first, manifest = target.stat(), read_manifest(target)
        os.utime(target, ns=(0, 0))
        result.save(target)
        assert target.stat().st_ino == first.st_ino
        assert target.stat().st_mtime_ns >= first.st_mtime_ns  # as new as its library
        assert read_manifest(target) == manifest
        target.write_bytes(target.read_bytes()[:-1])
        result.save(target)
        assert target.stat().st_size == first.st_size
        assert read_manifest(target) == manifest

    def test_a_model_that_nobody_has_touched_is_not_hashed_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        known: list[str | None] = []

        def spied(model: ir.Model, path: Path, digest: str | None) -> str | None:
            known.append(digest)
            return digest_if_same(model, path, digest)

        monkeypatch.setattr("tcfuse.result.digest_if_same", spied)
        result, target = optimize(model("gelu"), gate=False), tmp_path / "out.onnx"
        digest = hashlib.sha256(result.save(target).read_bytes()).hexdigest()
        result.save(target)
        os.utime(target, ns=(0, 0))
        for _ in range(2):
            result.save(target)
        assert known == [None, digest, None, digest]
        assert read_manifest(target).sha256["model"] == digest

    def test_writes_model_library_and_manifest(self, tmp_path: Path):
        result = optimize(model("gelu"), gate=False)
        result.save(tmp_path / "out.onnx")
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"out.onnx", "out.so", "out.tcfuse.json"}
        report = read_manifest(tmp_path / "out.onnx")
        assert report.kept == result.report.kept
        assert report.sha256.keys() == {"model", "library"}

    def test_a_stale_library_goes(self, tmp_path: Path):
        (tmp_path / "out.so").write_bytes(b"old")
        optimize(Path(write(tmp_path / "in.onnx", nothing_to_fuse()))).save(
            tmp_path / "out.onnx"
        )
        assert not (tmp_path / "out.so").exists()
        assert (tmp_path / "out.onnx").read_bytes() == (tmp_path / "in.onnx").read_bytes()

    @pytest.mark.parametrize("folder", [".", "elsewhere"])
    def test_external_data_stays_beside_the_model(self, tmp_path: Path, folder: str):
        source = tmp_path / "in.onnx"
        original = model("bert", layers=1)
        ir.save(original, source, external_data="in.data", size_threshold_bytes=64)
        target = optimize(source, gate=False).save(tmp_path / folder / "out.onnx")
        assert (target.parent / "out.onnx.data").exists() == (folder != ".")
        assert target.stat().st_size < (tmp_path / "in.data").stat().st_size
        inputs = model_feeds(original, next(shape_guesses(original, Wishes())))
        expected = run(open_session(original), inputs)
        (found,) = tcfuse.session(target).run(None, inputs)
        np.testing.assert_allclose(found, expected[0], rtol=1e-4, atol=1e-5)

    def test_a_failure_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        result = optimize(model("gelu"), gate=False)

        def fail(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("shutil.copyfile", fail)
        with pytest.raises(InputError, match="No space left on device"):
            result.save(tmp_path / "out.onnx")
        assert list(tmp_path.iterdir()) == []

    def test_the_name_must_end_in_onnx(self, tmp_path: Path):
        with pytest.raises(InputError, match=re.escape("must end in .onnx")):
            optimize(nothing_to_fuse()).save(tmp_path / "out.so")


def nothing_to_fuse() -> ir.Model:
    g = Draft("alone")
    g.output(g.op("MatMul", g.input("x", [2, 2]), g.input("w", [2, 2])), "y", [2, 2])
    return g.model()


def write(path: Path, built: ir.Model) -> str:
    ir.save(built, path)
    return str(path)


def test_the_kernel_cache_tells_options_apart():
    keys = {
        region.name
        for numerics in ("strict", "default")
        for region in explain(model("gelu"), numerics=numerics).regions
    }
    assert "" not in keys
    assert kernels.KIND == "kernels"


def test_every_module_loads_without_what_only_gpus_need() -> None:
    """An installation of ``tcfuse[cpu]`` has neither NVRTC nor pyelftools."""
    program = """
import importlib, pkgutil, sys
for name in ("elftools", "nvidia", "pycuda"):
    sys.modules[name] = None
import tcfuse
for module in pkgutil.walk_packages(tcfuse.__path__, "tcfuse."):
    if module.name != "tcfuse.__main__":
        importlib.import_module(module.name)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
