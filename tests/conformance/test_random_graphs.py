"""A few random graphs as kernels, and what holds of the graphs themselves."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.conformance import random_cuda_graphs
from tests.conformance.graph_cases import difference
from tests.conformance.graph_values import tolerance
from tests.conformance.random_graphs import random_cases, random_graphs, run_cases

COUNT, SEED, SIZE = 50, 0, 8
EMULATED = 8


@pytest.mark.compiler
@pytest.mark.ort
@pytest.mark.timeout(600)
def test_random_graphs_equal_the_reference(capsys):
    outcome = run_cases(random_cases(COUNT, SEED, SIZE))
    with capsys.disabled():
        print(f"\n{outcome.summary()}")  # noqa: T201 - the counts are this test's result
    assert not outcome.failed
    assert len(outcome.equal) >= COUNT * 3 // 4


@pytest.mark.compiler
@pytest.mark.timeout(600)
def test_random_graphs_as_cuda_equal_the_reference():
    outcome = random_cuda_graphs.run_cases(random_cases(EMULATED, SEED + 7, SIZE))
    assert not outcome.failed
    assert len(outcome.equal) >= EMULATED // 2


def test_a_seed_gives_the_same_graphs_again():
    first, second = (random_cases(4, 5, 6) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert a.model.SerializeToString() == b.model.SerializeToString()
        for one, other in zip(a.runs, b.runs, strict=True):
            assert all(np.array_equal(one.given[name], other.given[name]) for name in one.given)


def test_random_graphs_are_valid_and_of_many_kinds():
    graphs = random_graphs(20, 3, 8)
    for graph in graphs:
        onnx.checker.check_model(graph.model(), full_check=True)
    assert len({value.dtype for graph in graphs for value in graph.values}) > 8
    assert any(graph.named for graph in graphs)
    assert any(value.rank > 4 for graph in graphs for value in graph.values)


def test_tolerance_grows_with_sums_numbers_and_rounding():
    usual = tolerance(1e-7, 16, 1.0, 0.0)
    assert usual < 1e-6
    assert tolerance(1e-7, 16, 1.0, 1e-3) > 1e-3
    assert tolerance(1e-7, 16, 100.0, 0.0) > 50 * usual
    assert tolerance(1e-7, 1 << 20, 1.0, 0.0) > 2 * usual
    assert tolerance(0.0, 16, 100.0, 0.0) == 0


def test_a_difference_is_told_with_its_place():
    want = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert not difference((want + 1e-7).astype(np.float32), want, 1e-6)
    text = difference(np.array([[1, 2], [4, 4]], np.float32), want, 1e-6)
    assert text.startswith("1 of 4 differ, (1, 0): 4.0 instead of 3.0")
    whole = np.array([1, 2])
    assert difference(whole, np.array([1, 3]), 0.0).startswith("1 of 2 differ, (1)")
    assert difference(whole.astype(np.int32), whole, 0.0) == "int32 instead of int64"
    assert "shape" in difference(whole, want, 0.0)
