"""Kernels called without ONNX Runtime: plans, complaints, parts, and the cache of libraries."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tcfuse import debug
from tcfuse.ort.direct import DirectBuild, DirectKernel, machine_level
from tcfuse.targets.base import Interface, KernelSource, Phase, Port
from tcfuse.types import DType, Size, TensorType

pytestmark = pytest.mark.compiler

ARGUMENTS = (
    "(char* const* t, const int64_t* n, char* shared, char* local,"
    " int64_t begin, int64_t end, int32_t* fault)"
)


def port(name: str, *shape: Size) -> Port:
    return Port(name, TensorType(DType.FLOAT32, shape))


def center() -> KernelSource:
    """``Y(i, j) = X(i, j) - mean of X(., j)``: two phases, both kinds of scratch."""
    text = f"""
TCF_KERNEL(center_0){ARGUMENTS} {{
  const float* x = (const float*)t[0];
  double* column = (double*)local;
  for (int64_t j = begin; j < end; j++) {{
    double sum = 0;
    for (int64_t i = 0; i < n[0]; i++) column[i] = x[i * n[1] + j];
    for (int64_t i = 0; i < n[0]; i++) sum += column[i];
    ((double*)shared)[j] = sum / n[0];
  }}
}}
TCF_KERNEL(center_1){ARGUMENTS} {{
  const float* x = (const float*)t[0];
  for (int64_t i = begin; i < end; i++) {{
    if (x[i * n[1]] == 99) {{ *fault = 1; return; }}
    for (int64_t j = 0; j < n[1]; j++)
      ((float*)t[2])[i * n[1] + j] = x[i * n[1] + j] - ((double*)shared)[j];
  }}
}}"""
    interface = Interface(
        (port("x", "N", "M"), port("w", "N + 1")),
        (port("y", "N", "M"), port("z", "K")),
        ("N", "M", "K"),
        (("K", "N * M"),),
        (("M != 7", "seven columns are too many"),),
    )
    phases = (Phase("center_0", "M", "300 * N"), Phase("center_1", "N", "100 * M"))
    return KernelSource("center", text, interface, phases, "8 * M", "8 * N")


@pytest.fixture(scope="module")
def kernel() -> DirectKernel:
    return DirectBuild(center()).load()[0]


def run(kernel: DirectKernel, x: np.ndarray, parts: int) -> tuple[np.ndarray, int]:
    """The first output, and the number of parts that found a fault."""
    dims = (*x.shape, x.shape[0] + 1)
    plan = kernel.plan(dims)
    assert plan is not None
    assert plan.shapes == (x.shape, (x.size,))
    y, z = (np.zeros(shape, np.float32) for shape in plan.shapes)
    w = np.zeros(len(x) + 1, np.float32)
    call = kernel.runner(dims, [array.ctypes.data for array in (x, w, y, z)])
    shared = np.empty(plan.shared_bytes, np.uint8)
    local = np.empty(plan.local_bytes, np.uint8)
    faults = 0
    for phase in range(2):
        for part in reversed(range(parts)):
            memory = shared.ctypes.data, local.ctypes.data
            faults += call(*memory, phase, phase + 1, part, parts)
    return y, faults


@pytest.mark.parametrize("parts", [1, 3, 50])
@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (400, 3000)])
def test_parts_of_a_phase_make_the_whole(kernel: DirectKernel, shape, parts) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    y, faults = run(kernel, x, parts)
    np.testing.assert_allclose(y, x - x.mean(axis=0, dtype=np.float64), rtol=1e-4, atol=1e-5)
    assert faults == 0


def test_a_fault_is_told(kernel: DirectKernel) -> None:
    x = np.zeros((40, 3), np.float32)
    x[30, 0] = 99
    assert run(kernel, x, 4)[1] == 1


def test_plans(kernel: DirectKernel) -> None:
    small, large = kernel.plan((2, 3, 3)), kernel.plan((4000, 3000, 4001))
    assert small is not None
    assert large is not None
    assert (small.shared_bytes, small.local_bytes, small.parts) == (24, 16, (1, 1))
    assert large.parts == (64, 64)
    empty = kernel.plan((0, 3, 1))
    assert empty is not None
    assert empty.empty


def test_complaints(kernel: DirectKernel) -> None:
    rule = "it equals N + 1 (N is dimension 0 of 'x'), which is 3"
    for dims, sentence in (
        ((2, 3, 9), f"dimension 0 of 'w' is 9; the model says {rule}"),
        ((2, 7, 3), "seven columns are too many"),
    ):
        assert kernel.plan(dims) is None
        assert kernel.complaint(dims) == sentence


def test_the_machine_runs_the_level_that_was_chosen(kernel: DirectKernel) -> None:
    assert kernel.level == machine_level().position


def test_libraries_are_kept_and_damaged_ones_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCFUSE_CACHE_DIR", str(tmp_path))
    debug.current.cache_clear()
    try:
        build = DirectBuild(center())
        assert build.load()[1]
        assert not build.load()[1]
        (path,) = tmp_path.glob(f"layers/*/{build.key}.*.so")
        loaded = ctypes.CDLL(str(path))
        assert loaded.tcf_direct_level() >= 0
        other = path.with_name("moved")
        path.rename(other)  # what is mapped is not overwritten
        path.write_bytes(other.read_bytes()[:-1])
        assert build.load()[1]
        assert path.read_bytes() == other.read_bytes()
    finally:
        monkeypatch.undo()
        debug.current.cache_clear()


def test_a_cache_that_cannot_be_written_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TCFUSE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    debug.current.cache_clear()
    try:
        kernel, fresh = DirectBuild(center()).load()
        assert fresh
        assert kernel.plan((2, 3, 3)) is not None
    finally:
        monkeypatch.undo()
        debug.current.cache_clear()
