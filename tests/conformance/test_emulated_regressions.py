"""Kernels for GPUs that random ones showed to go wrong, each named for its symptom."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tcfuse.cuda_options import CudaOptions
from tcfuse.mapping_options import MappingOptions
from tests.conformance.program_grammar import Program
from tests.conformance.random_programs import Summary, run
from tests.targets.emulated import EmulatedKernel, cuda_source, emulated
from tests.targets.language import Ready

pytestmark = pytest.mark.compiler


def assert_right(folder: Path, *texts: str, options: MappingOptions | None = None) -> None:
    """Programs are equal to the evaluator, and the emulator finds nothing."""
    found, given = Summary(), (options or MappingOptions(), CudaOptions())

    def build(made: Sequence[Ready], _: Path) -> list[EmulatedKernel]:
        return emulated([cuda_source(one, f"k{k}", given) for k, one in enumerate(made)])

    run([Program(text, {}, {}) for text in texts], build, folder, found)
    assert not found.wrong, found.wrong[0]
    assert not found.refused
    assert found.equal > 2 * len(texts)


def test_a_register_of_a_lane_that_is_alone_was_not_declared(tmp_path: Path) -> None:
    assert_right(
        tmp_path,
        """def f(float(N) A, float(M) B, float(M, N + 1) X, float Y) -> (float(N + 1) O) {
          T(i) min=! X(r, i) where i in 0:N + 1, r in 0:M
          T(i) = Y where i in 1:N + 1
          O(i) = A(0) + T(i) where i in 0:N + 1
        }""",
    )


def test_registers_did_not_outlive_the_parts_of_a_loop_over_one_lane(tmp_path: Path) -> None:
    text = """def f(float(N) A, float(M, N) X) -> (float(N, N) O) {
      O(i, j) max=! X(s, i) + A(j) + r where i in 0:N, j in 0:N, s in 0:M, r in 0:2
    }"""
    tiled = MappingOptions(tile=(1, 1, 64, 2), inner_fusion="min", positive=False)
    assert_right(tmp_path, text, options=tiled)


def test_loops_of_twice_a_size_ran_as_often_as_the_size_squared(tmp_path: Path) -> None:
    assert_right(
        tmp_path,
        """def f(float(N) A, float(2*N, N, M) X) -> (float(N, 2*N) O) {
          O(i, j) +=! X(j, i, r) where i in 0:N, j in 0:2*N, r in 0:M
        }""",
        """def f(float(N) A, float(2*N, M, 2*N) X, float(M) B)
            -> (float(2*N, 2*N, M) O) {
          O(b, i, j) = X(b, j, i) + B(j) where b in 0:2*N, i in 0:2*N, j in 0:M
        }""",
        """def f(float(N) A, float(2*N, 2*N, M) X, float(2*N, M, 3*N) Y)
            -> (float(2*N, 2*N, 3*N) O) {
          O(b, i, j) +=! X(b, i, k) * Y(b, k, j) where b in 0:2*N, i in 0:2*N, j in 0:3*N,
            k in 0:M
        }""",
    )
