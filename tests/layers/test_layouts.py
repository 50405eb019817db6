"""Whatever memory the arrays of a call share, and however they lie in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcfuse

pytestmark = pytest.mark.compiler

TEXT = """
def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }
def both(float(N) A, float(N) B) -> (S, D) {
  S(i) = A(i) + B(i)
  D(i) = A(i) - B(i)
}
def accumulate(float(N, M) X) -> (float(M) T) { T(j) += X(i, j) }
"""
OPS = tcfuse.define(TEXT, quiet=True)
WHOLE = 24
DTYPES = st.sampled_from(["<f4", ">f4"])


@st.composite
def views(draw: st.DrawFn, count: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """A buffer and so many views of one length in it."""
    n = draw(st.integers(0, 6))
    buffer = np.zeros(4 * WHOLE, np.uint8)
    buffer[:] = np.random.default_rng(0).integers(60, 66, 4 * WHOLE)
    found = []
    for _ in range(count):
        step = draw(st.sampled_from([1, 2, 3, -1, -2]))
        start = draw(st.integers(0, WHOLE - 2 - max(n - 1, 0) * abs(step)))
        shift = draw(st.sampled_from([0, 0, 0, 1]))
        line = buffer[shift : shift + 4 * (WHOLE - 1)].view(draw(DTYPES))
        stop = start + max(n - 1, 0) * abs(step)
        view = line[start : stop + 1][:: abs(step)][:n]
        found.append(view[::-1] if step < 0 else view)
    return buffer, found


def outside(buffer: np.ndarray, outputs: list[np.ndarray]) -> np.ndarray:
    """Which bytes of the buffer belong to no output."""
    marks = np.ones(len(buffer), bool)
    start = buffer.ctypes.data
    for output in outputs:
        for element in range(len(output)):
            first = output[element:].ctypes.data - start
            marks[first : first + 4] = False
    return marks


@settings(deadline=None, max_examples=150)
@given(drawn=views(3))
def test_one_output_anywhere(drawn: tuple[np.ndarray, list[np.ndarray]]):
    buffer, (a, b, c) = drawn
    expected = a.astype(np.float32) + b.astype(np.float32)
    before, rest = buffer.copy(), outside(buffer, [c])
    assert OPS.add(a, b, out=c) is c
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(buffer[rest], before[rest])


@settings(deadline=None, max_examples=100)
@given(drawn=views(4))
def test_two_outputs_that_do_not_overlap(drawn: tuple[np.ndarray, list[np.ndarray]]):
    _, (a, b, s, d) = drawn
    if np.shares_memory(s, d):
        d = np.zeros(len(s), np.float32)
    x, y = a.astype(np.float32), b.astype(np.float32)
    OPS.both(a, b, out=(s, d))
    np.testing.assert_array_equal(s, x + y)
    np.testing.assert_array_equal(d, x - y)


@settings(deadline=None, max_examples=50)
@given(drawn=views(2))
def test_an_updated_output_that_is_the_input(drawn: tuple[np.ndarray, list[np.ndarray]]):
    _, (x, total) = drawn
    expected = total.astype(np.float32) + x.astype(np.float32)
    OPS.accumulate(x[None, :], out=total)
    np.testing.assert_array_equal(total, expected)
