"""Estimates of how long loops take."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tcfuse.ort.direct import DirectBuild
from tests.targets.kernels import kernel_of

N = 1 << 16


def seconds(definition: str) -> float:
    """The estimate of a kernel whose sizes are numbers."""
    phases = kernel_of(definition).source.phases
    return sum(int(p.extent) * int(p.cost) for p in phases) * 1e-12


def pointwise(value: str) -> str:
    return f"def f(float({N}) X, float(1) A) -> (Y) {{ Y(i) = {value} where i in 0:{N} }}"


def test_functions_take_longer_than_arithmetic() -> None:
    texts = ("X(i) + 1", "X(i) / (X(i) + 2)", "exp(X(i))", "exp(X(i)) + tanh(X(i))")
    found = [seconds(pointwise(text)) for text in texts]
    assert found == sorted(found)
    assert found[2] > 1.5 * found[0]


def test_what_all_lanes_share_is_read_for_nothing() -> None:
    assert seconds(pointwise("X(i) + A(0)")) == seconds(pointwise("X(i) + 2"))
    assert seconds(pointwise("X(i) + X(i)")) > seconds(pointwise("X(i) + A(0)"))


def test_elements_that_lie_apart_take_longer() -> None:
    assert seconds(
        f"def f(float({2 * N}) X) -> (Y) {{ Y(i) = X(2 * i) where i in 0:{N} }}"
    ) > 2 * seconds(pointwise("X(i)"))
    assert seconds(
        f"def f(float({N}) X, int64({N}) I) -> (Y) {{ Y(i) = X(I(i)) where i in 0:{N} }}"
    ) > 2 * seconds(pointwise("X(i)"))


def test_numbers_that_are_not_in_vectors_take_longer() -> None:
    (phase,) = kernel_of("def f(float(1) X) -> (Y) { Y(i) = exp(X(i)) }").source.phases
    assert int(phase.cost) * N * 1e-12 > 4 * seconds(pointwise("exp(X(i))"))


def test_loops_of_unknown_length_are_polynomials_of_the_sizes() -> None:
    (phase,) = kernel_of("def f(float(N, M) X) -> (Y) { Y(i) +=! X(i, j) }").source.phases
    assert phase.extent == "N"
    longer, shorter = (eval(phase.cost, {}, {"M": n}) for n in (100_000, 1000))
    assert 50 * shorter < longer <= 100 * shorter


@pytest.mark.compiler
@pytest.mark.parametrize("value", ["X(i) * 2 + 1", "exp(X(i))", "1 / (1 + X(i) * X(i))"])
def test_estimates_are_of_the_right_order(value: str) -> None:
    """Within a factor of ten, whatever this machine is and does besides."""
    source = kernel_of(pointwise(value)).source
    kernel, _ = DirectBuild(source).load()
    arrays = [np.ones(n, np.float32) for n in (N, 1, N)]
    call = kernel.runner((N, 1), [array.ctypes.data for array in arrays])
    taken = []
    for _ in range(200):
        start = time.perf_counter()
        call(None, None, 0, len(source.phases), 0, 1)
        taken.append(time.perf_counter() - start)
    assert min(taken) / 10 < seconds(pointwise(value)) < min(taken) * 10
