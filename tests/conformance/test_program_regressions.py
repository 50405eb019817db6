"""Programs that random ones showed to go wrong, each named for its symptom."""

from __future__ import annotations

from pathlib import Path

import pytest

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
