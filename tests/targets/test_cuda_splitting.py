"""Reductions in two stages on a GPU: two launches, right, and everything read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from tcfuse.emulator import Program, emulate
from tcfuse.errors import ToolchainError
from tcfuse.targets.base import CudaSource
from tcfuse.tc.evaluate import evaluate
from tests.targets.cuda_kernels import cuda_kernel_of
from tests.targets.kernels import checked_of
from tests.targets.test_cpu import assert_equal

pytestmark = pytest.mark.compiler


@dataclass(frozen=True)
class Case:
    """A definition, the sizes of its names, its launches and the option ``split``."""

    text: str
    sizes: Mapping[str, int]
    launches: int
    split: int = 0


TOTAL = "def f(float(K) X) -> (float Y) { Y +=! X(k) }"
CASES = {
    "long": Case(TOTAL, {"K": 20_000}, 2),
    "odd": Case(TOTAL, {"K": 20_011}, 2),
    "short": Case(TOTAL, {"K": 900}, 1),
    "empty": Case(TOTAL, {"K": 0}, 1),
    "columns": Case(
        "def f(float16(4001, 64) X) -> (float16(64) Y) { Y(j) max=! X(i, j) }", {}, 2
    ),
    "rows": Case("def f(float(3, 4096) X) -> (float(3) Y) { Y(i) +=! X(i, k) }", {}, 2, 16),
    "bytes": Case("def f(int8(4099) X) -> (int8 Y) { Y *=! X(k) }", {}, 2, 8),
    "softmax": Case(
        """def f(float(2, 4096) X) -> (float(2, 4096) Y) {
          M(i) max=! X(i, k)
          S(i) +=! exp(X(i, k) - M(i))
          Y(i, k) = exp(X(i, k) - M(i)) / S(i)
        }""",
        {},
        5,
        8,
    ),
    "moments": Case(
        """def f(float(8, 16, 256) X) -> (float(16) S, float(16) Q) {
          S(c) +=! X(n, c, h)
          Q(c) +=! X(n, c, h) * X(n, c, h)
        }""",
        {},
        3,  # one for the parts of both
        8,
    ),
}


@pytest.fixture(scope="module")
def sources() -> dict[str, CudaSource]:
    return {n: cuda_kernel_of(c.text, split=c.split).source for n, c in CASES.items()}


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


@pytest.mark.parametrize("name", CASES)
def test_two_stages_are_right_and_read_once(
    name: str, sources: Mapping[str, CudaSource], program: Program
) -> None:
    case = CASES[name]
    checked = checked_of(case.text)
    kind = checked.tensors["X"]
    shape = tuple(s if isinstance(s, int) else case.sizes[s] for s in kind.shape)
    inputs = {"X": np.random.default_rng(0).uniform(-2, 2, shape).astype(kind.dtype.numpy)}
    found = emulate(sources[name], [inputs["X"]], program=program)
    assert not found.reports
    assert len(found.runs) == case.launches
    results = dict(zip(checked.outputs, found.outputs, strict=True))
    assert_equal(checked, results, evaluate(checked, inputs, case.sizes))
    for run in found.runs:
        (x,) = (b for b in run.buffers if b.buffer == "X")
        assert x.read <= kind.dtype.bytes * np.prod(shape) + 64


def test_a_split_that_is_not_wanted_is_not_made() -> None:
    for case in CASES.values():
        assert "_part" not in cuda_kernel_of(case.text, split=1).source.text
