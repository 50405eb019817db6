"""Programs that random ones showed to go wrong, each named for its symptom."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcfuse
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tests.conformance.program_grammar import Program
from tests.conformance.random_programs import Summary
from tests.conformance.test_random_programs import outcome

pytestmark = pytest.mark.compiler


def right(text: str, folder: Path) -> Summary:
    """A program, compiled and found equal to the evaluator."""
    check(parse(text), affine=False)
    found = outcome([Program(text, {}, {})], folder)
    assert not found.wrong, found.wrong[0]
    assert not found.refused
    return found


def test_a_guarded_read_of_a_register_did_not_compile(tmp_path: Path) -> None:
    text = """def f(float(N) A, float(M) B, float(3) X) -> (float(1) O, float(1, M) P) {
      T(i) = X(i) * 0.5 where i in 0:1
      O(i) +=! (r + 1 >= 0 && r + 1 < 1 ? T(r + 1) : X(r)) where i in 0:1, r in 0:1
      P(i, j) = j >= 1 && i - 1 >= 0 ? T(i - 1) : B(j) where i in 0:1, j in 0:M
    }"""
    assert right(text, tmp_path).equal > 2


def test_register_blocks_below_a_lanes_loop_that_runs_once_did_not_compile(
    tmp_path: Path,
) -> None:
    text = """def f(float(N) A, float(M) B, uint32(N, N, N) X, int64(N) Y) -> (uint8(N, N) O) {
      O(i, j) min=! uint8(X(i, r, s)) where j in 0:N, r in 1:N, i in 0:N, s in 1:N
      O(i, j) = uint8(Y(j / 2)) where i in 0:N - 1, j in 0:N
    }"""
    assert right(text, tmp_path).equal > 2


def test_an_index_that_some_rows_need_was_read_and_tested_in_all_rows() -> None:
    text = """def f(int32(K) I, int32(5) X, int32(N) Z, int32(N + M) Y)
        -> (int32(N + M, 20) O) {
      O(i, j) = X(I(i)) where i in 0:N, j in 0:20
      O(i, j) = Y(j) where i in N:N + M, j in 0:20
      O(i, j) = Y(i) where i in 1:N + M, j in 0:20
    }"""
    index, x, y = (
        np.array([3, 1, 99, 99], np.int32),
        np.arange(5, dtype=np.int32),
        np.arange(20),
    )
    out = tcfuse.define(text, quiet=True).f(index, x, x[:2].copy(), y.astype(np.int32))
    assert out[0].tolist() == [3] * 20
    assert out[1:].tolist() == [[i] * 20 for i in range(1, 20)]


def test_a_read_that_never_happens_named_a_register_of_other_loops(tmp_path: Path) -> None:
    text = """def f(float(N) A, float(M) B, float(N) X, float(1) Y)
        -> (bool O, bool(1, 3, N) P) {
      T(i, j) min=! Y(i) + X(2*j + 1) where i in 0:1
      O max=! X(r) > 0.5 where r in 0:N
      P(i, j, k) max=! isnan(i + 1 >= 0 && i + 1 < 1 ? T(i + 1, k) : 0.5)
        where r in -2:min(N, M), j in 0:3, i in 0:1, k in 0:N
    }"""
    assert right(text, tmp_path).equal > 2


def test_two_serial_loops_in_blocks_had_the_same_iterator(tmp_path: Path) -> None:
    text = """def f(float(N) A, float(M) B, float(3) X, double(N + M, N + M) Y,
        bfloat16(3, N + M) Z, double(3) V, bfloat16(N + M, M) W) -> (O, P) {
      O(i, j) min=! float(u)
        where u = Y(r, j) + Z(i - 1, j), j in 0:N + M, r in 0:N + M, exists X(i - 1)
      P(i, j) max=! float(O(j, r))
        where r in 0:N + M, j in 1:3 + 1, i in 0:M / 2, t = V((r + 1) % 3) * W(r, i)
    }"""
    assert right(text, tmp_path).equal > 2


def test_a_transposing_loop_read_what_it_had_not_written_yet(tmp_path: Path) -> None:
    text = """def f(float(2, 9, 4, 8) Q, float(2, 3, 6, 8) K, float(2, 3, 6, 8) V,
        float(4, 6) B) -> (float(2, 9, 4, 8) Y) {
      S(b, h, q, t) +=! Q(b, h, q, c) * K(b, h / 3, t, c)
      O(q) max=! B(q, t)
      L(b, h, q) max=! S(b, h, q, t) + B(q, t)
      E(b, h, q, t) = exp(S(b, h, q, t) + B(q, t) - L(b, h, q))
      T(b, h, q) +=! E(b, h, q, t)
      W(b, h, q, t) = O(q) > 9 ? 0 : E(b, h, q, t) / T(b, h, q)
      Y(b, h, q, c) +=! W(b, h, q, t) * V(b, h / 3, t, c)
    }"""
    assert right(text, tmp_path).equal


def test_a_row_that_each_lane_has_of_its_own_was_not_read_at_computed_places() -> None:
    text = """def f(float(3, 5, 180) X, int64(3, 180) I) -> (float(3, 180) O) {
      S(i, j) +=! X(i, k, j) where i in 0:3, j in 0:180, k in 0:5
      T(i, j, k) = X(i, k, j) - S(i, j) where i in 0:3, j in 0:180, k in 0:5
      O(i, j) = I(i, j) == -5 ? 0 : T(i, j, I(i, j)) where i in 0:3, j in 0:180
    }"""
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, (3, 5, 180)).astype(np.float32)
    at = rng.integers(0, 5, (3, 180))
    want = np.take_along_axis(x - x.sum(1, keepdims=True), at[:, None], 1)[:, 0]
    at[0, ::7], want[0, ::7] = -5, 0
    np.testing.assert_array_equal(tcfuse.define(text, quiet=True).f(x, at), want)
