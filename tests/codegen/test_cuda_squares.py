"""Transposes through shared memory: right, without races, with as few accesses as can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from tcfuse.codegen.device import device_header
from tcfuse.emulator import Emulated, Program, emulate
from tcfuse.errors import ToolchainError
from tcfuse.targets.base import CudaSource
from tcfuse.targets.nvrtc import compile_cuda
from tcfuse.tc.evaluate import evaluate
from tests.targets.cuda_kernels import cuda_kernel_of, plain_text
from tests.targets.kernels import checked_of
from tests.targets.test_cpu import assert_equal


@dataclass(frozen=True)
class Case:
    """A definition.

    Attributes:
        sizes: Of its names.
        ideal: Whether no access takes more than it must.
        staged: Whether it runs in squares.
    """

    text: str
    sizes: Mapping[str, int]
    ideal: bool = True
    staged: bool = True


FUSED = """def f(float(N, M) X, float(N) B) -> (float(M, N) Y) {
  Y(i, j) = exp(X(j, i)) * B(j)
}"""
CASES = {
    "float": Case("def f(float(96, 64) X) -> (float(64, 96) Y) { Y(i, j) = X(j, i) }", {}),
    "float16": Case(
        "def f(float16(64, 192) X) -> (float16(192, 64) Y) { Y(i, j) = X(j, i) }", {}
    ),
    "int8": Case("def f(int8(64, 128) X) -> (int8(128, 64) Y) { Y(i, j) = X(j, i) }", {}),
    "bool": Case("def f(bool(64, 64) X) -> (bool(64, 64) Y) { Y(i, j) = !X(j, i) }", {}),
    "double": Case("def f(double(32, 48) X) -> (double(48, 32) Y) { Y(i, j) = X(j, i) }", {}),
    "to_channels_last": Case(
        """def f(float(2, 12, 5, 40) X) -> (float(2, 5, 40, 12) Y) {
          Y(n, h, w, c) = X(n, c, h, w)
        }""",
        {},
    ),
    "to_channels_first": Case(
        """def f(float(2, 5, 40, 12) X) -> (float(2, 12, 5, 40) Y) {
          Y(n, c, h, w) = X(n, h, w, c)
        }""",
        {},
    ),
    "keys": Case(
        """def f(float16(2, 3, 64, 64) X) -> (float16(2, 3, 64, 64) Y) {
          Y(b, h, d, s) = X(b, h, s, d)
        }""",
        {},
    ),
    "rank_5": Case(
        """def f(int8(2, 3, 32, 5, 32) X) -> (int8(32, 5, 2, 3, 32) Y) {
          Y(a, b, c, d, e) = X(c, d, e, b, a)
        }""",
        {},
    ),
    "fused": Case(FUSED, {"N": 64, "M": 96}),
    "odd": Case(FUSED, {"N": 37, "M": 53}, ideal=False),
    "short": Case(FUSED, {"N": 7, "M": 53}, ideal=False, staged=False),
    "empty": Case(FUSED, {"N": 0, "M": 53}, staged=False),
    "odd_float16": Case(
        "def f(float16(3, 33, 65) X) -> (float16(3, 65, 33) Y) { Y(b, i, j) = X(b, j, i) + 1 }",
        {},
        ideal=False,
    ),
    "odd_rank_5": Case(
        """def f(int8(2, 3, 21, 5, 17) X) -> (int8(17, 5, 2, 3, 21) Y) {
          Y(a, b, c, d, e) = X(c, d, e, b, a)
        }""",
        {},
        ideal=False,
    ),
    "several_layouts": Case(
        """def f(float(64, 96) X, float(96, 64) Z, float(64, 96) W, float(96) B)
            -> (float(96, 64) Y) {
          Y(i, j) = X(j, i) * Z(i, j) + W(j, i) - B(i)
        }""",
        {},
    ),
    "several_types": Case(
        """def f(float(64, 128) X, int8(64, 128) Z) -> (float16(128, 64) Y) {
          Y(i, j) = float16(X(j, i)) * Z(j, i)
        }""",
        {},
    ),
    "wide_and_narrow": Case(
        """def f(float(32, 64) X, double(32, 64) Z) -> (double(64, 32) Y) {
          Y(i, j) = X(j, i) * Z(j, i)
        }""",
        {},
    ),
    "two_results": Case(
        """def f(float(64, 32) X) -> (float(32, 64) Y, bool(32, 64) Z) {
          Y(i, j) = X(j, i)
          Z(i, j) = X(j, i) > 0.0
        }""",
        {},
    ),
    "part": Case(
        """def f(float(64, 100) X) -> (float(90, 64) Y) {
          Y(i, j) = X(j, i + 5) where i in 0:90, j in 0:64
        }""",
        {},
        ideal=False,
    ),
    "padded": Case(
        """def f(float(40, 96) X) -> (float(108, 64) Y) {
          Y(i, j) = i >= 4 && i < 100 && j >= 12 && j < 52 ? X(j - 12, i - 4) : 0.0
            where i in 0:108, j in 0:64
        }""",
        {},
        ideal=False,
    ),
    "padded_channels": Case(
        """def f(float16(2, 6, 18, 32) X) -> (float16(2, 32, 8, 20) Y) {
          Y(n, c, h, w) = h >= 1 && h < 7 && w >= 1 && w < 19 ? X(n, h - 1, w - 1, c) : 0.0
            where n in 0:2, c in 0:32, h in 0:8, w in 0:20
        }""",
        {},
        ideal=False,
    ),
    "batch": Case(
        "def f(float(B, 32, 64) X) -> (float(B, 64, 32) Y) { Y(b, i, j) = X(b, j, i) + 1 }",
        {"B": 3},
    ),
}


@pytest.fixture(scope="module")
def sources() -> dict[str, CudaSource]:
    return {name: cuda_kernel_of(case.text).source for name, case in CASES.items()}


@pytest.fixture(scope="module")
def program(sources: Mapping[str, CudaSource], private_cache: object) -> Program:
    """All kernels together."""
    unique = {source.name: source for source in sources.values()}.values()
    symbols = [launch.symbol for source in unique for launch in source.launches]
    try:
        return Program.build([source.text for source in unique], symbols, trace=True)
    except ToolchainError as error:
        if error.output:
            raise
        pytest.skip(str(error))


@pytest.fixture
def run(sources: Mapping[str, CudaSource], program: Program) -> Callable[[str], Emulated]:
    """A case in the emulator, its results compared."""

    def call(name: str) -> Emulated:
        case, rng = CASES[name], np.random.default_rng(0)
        checked = checked_of(case.text)
        inputs = {}
        for tensor in checked.inputs:
            kind = checked.tensors[tensor]
            shape = tuple(s if isinstance(s, int) else case.sizes[s] for s in kind.shape)
            values = rng.uniform(-2, 2, shape)
            inputs[tensor] = (values > 0 if kind.dtype.tc == "bool" else values).astype(
                kind.dtype.numpy
            )
        found = emulate(
            sources[name], [inputs[n] for n in checked.inputs], program=program, seed=len(name)
        )
        assert not found.fault
        results = dict(zip(checked.outputs, found.outputs, strict=True))
        assert_equal(checked, results, evaluate(checked, inputs, case.sizes))
        return found

    return call


@pytest.mark.compiler
@pytest.mark.parametrize("name", CASES)
def test_a_transpose_is_right_and_moves_what_it_must(
    name: str, run: Callable[[str], Emulated]
) -> None:
    case, found = CASES[name], run(name)
    assert not found.reports
    assert found.moved_bytes == found.compulsory_bytes
    sites = [site for one in found.runs for site in one.sites]
    assert any(site.space == "shared" for site in sites) == case.staged
    for site in sites:
        if site.space == "shared" or case.ideal:
            assert site.factor <= 1.05, site


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(64, 96) X) -> (float(64, 96) Y) { Y(i, j) = X(i, j) }",
        "def f(float(64, 96, 4) X) -> (float(96, 64, 4) Y) { Y(i, j, k) = X(j, i, k) }",
        "def f(float(64, 3) X) -> (float(3, 64) Y) { Y(i, j) = X(j, i) }",
        # two layouts of what is written
        """def f(float(64, 96) X) -> (float(64, 96) Y, float(96, 64) Z) {
          Y(i, j) = X(i, j)
          Z(j, i) = X(i, j)
        }""",
        # other elements of what would be staged
        """def f(float(64, 96) X) -> (float(95, 64) Y) {
          Y(i, j) = X(j, i) + X(j, i + 1) where i in 0:95, j in 0:64
        }""",
        "def f(float(64, 96) X, int64(96) I) -> (Y) { Y(i, j) = X(j, int32(I(i))) }",
        # the diagonal
        "def f(float(64, 64) X) -> (Y) { Y(i, j) = X(i, i) + j where j in 0:64 }",
    ],
)
def test_what_is_not_a_transpose_is_not_staged(text: str) -> None:
    assert "_squares" not in cuda_kernel_of(text).source.text


def test_the_text_of_a_transpose(golden: Callable[[object, str], None]) -> None:
    golden(plain_text(cuda_kernel_of(CASES["several_layouts"].text)), "cu")


def test_squares_need_sizes_that_fill_them() -> None:
    launches = cuda_kernel_of(FUSED).source.phases[0].launches
    staged, others = launches[:2], launches[2:]
    assert all("(N >= 8) && (M >= 8)" in launch.when for launch in staged)
    assert "tcf_alignment % 16 == 0" in staged[0].when
    assert "M % 4 == 0" in staged[0].when
    assert "tcf_alignment" not in staged[1].when
    assert others[-1].when == "1"


@pytest.mark.cuda_build
@pytest.mark.parametrize("name", ["fused", "int8", "several_types"])
def test_squares_stay_in_registers(name: str) -> None:
    source = cuda_kernel_of(CASES[name].text).source
    images = compile_cuda(source, ("sm_80", "sm_90"), header=device_header())
    assert not images.warnings
    for needed in (r for each in images.resources.values() for r in each.values()):
        assert needed.registers <= 128  # two blocks of a multiprocessor, of many loads each
        assert needed.spill_stores == needed.spill_loads == 0
