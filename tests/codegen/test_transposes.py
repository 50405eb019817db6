"""Transposes whose rows meet in one set of the cache."""

from __future__ import annotations

import numpy as np
import pytest

from tcfuse.codegen.transposes import LANES, LEAST_LANES
from tcfuse.ort.direct import DirectBuild
from tests.targets.kernels import kernel_of


def blocked(text: str) -> bool:
    return "const bool meet" in kernel_of(text).source.text


def transpose(n: int | str, m: int | str, value: str = "X(j, i)") -> str:
    where = f"where i in 0:{m}, j in 0:{n}"
    return f"def f(float({n}, {m}) X) -> (float({m}, {n}) Y) {{ Y(i, j) = {value} {where} }}"


def test_rows_that_meet_are_written_few_at_a_time() -> None:
    assert blocked(transpose(1024, 320, "X(j, i) * 2 + 1"))
    assert blocked(transpose("N", "M"))


def test_rows_that_do_not_meet_are_left_as_they_are() -> None:
    assert not blocked(transpose(1008, 320))
    assert not blocked(transpose(LEAST_LANES // 2, 320))
    assert not blocked("def f(float(1024, 1024) X) -> (Y) { Y(i, j) = X(i, j) + X(i, j) }")


def test_a_sum_keeps_its_order() -> None:
    assert not blocked("def f(float(1024, 512) X) -> (Y) { Y(j) +=! X(j, i) }")


@pytest.mark.compiler
@pytest.mark.parametrize("tc", ["float", "double", "uint8"])
def test_every_shape_is_transposed(tc: str) -> None:
    """Whole blocks and rests of them, rows that meet and that do not, in two parts."""
    dtype = np.dtype({"float": "float32"}.get(tc, "float64" if tc == "double" else tc))
    text = transpose("N", "M", "X(j, i) + X(j, i)").replace("float", tc)
    kernel, _ = DirectBuild(kernel_of(text).source).load()
    rng = np.random.default_rng(0)
    for n in (1, 5, 512, 2 * LANES + 512, 1024, 2048, 600, 1536):
        for m in (1, 3, 16, 17, 64, 131, 200):
            x = rng.integers(0, 100, (n, m)).astype(dtype)
            y = np.zeros((m, n), dtype)
            call = kernel.runner((n, m), [x.ctypes.data, y.ctypes.data])
            for part in (1, 0):
                call(None, None, 0, 1, part, 2)
            np.testing.assert_array_equal(y, (x + x).T, str((n, m)))


@pytest.mark.compiler
@pytest.mark.parametrize("shape", [(1024, 70), (512, 128), (2048, 33)])
def test_known_shapes_are_transposed(shape: tuple[int, int]) -> None:
    source = kernel_of(transpose(*shape, "X(j, i) * 3")).source
    kernel, _ = DirectBuild(source).load()
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    y = np.zeros(shape[::-1], np.float32)
    call = kernel.runner(shape, [x.ctypes.data, y.ctypes.data])
    call(None, None, 0, len(source.phases), 0, 1)
    np.testing.assert_array_equal(y, x.T * 3)
