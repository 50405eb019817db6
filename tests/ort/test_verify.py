"""Wrong kernels are found, right ones pass."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tcfuse.ort.accuracy import compare, tolerance
from tcfuse.ort.feeds import FILLS, PERIOD, feeds
from tcfuse.ort.sizes import MOST_ELEMENTS, bind_sizes, choose_sizes, evaluate_size
from tcfuse.ort.verify import verify_kernel
from tcfuse.targets.base import Interface, Port
from tcfuse.types import DType, TensorType
from tests.ort.handmade import handmade

FLOAT = DType.FLOAT32


def port(name: str, *shape: int | str, dtype: DType = FLOAT) -> Port:
    return Port(name, TensorType(dtype, shape))


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_equal_answers_pass():
    x = f32(1, 2, math.inf, math.nan, -0.0)
    found = compare(x, x, x.astype(np.float64), FLOAT, 1)
    assert (found.verdict, found.error) == ("", 0.0)


def test_twice_the_originals_error_is_accepted_and_more_is_not():
    exact = np.array([1.0, 0.5])
    original = f32(1.0, 0.501)
    assert not compare(f32(1.0, 0.5019), original, exact, FLOAT, 1).verdict
    problem = compare(f32(1.0, 0.503), original, exact, FLOAT, 1).verdict
    assert "error 0.003 relative to the largest value, the original has 0.001" in problem


def test_scalars_are_compared():
    nan = np.array(math.nan, np.float32)
    assert not compare(nan, nan, np.array(math.nan), FLOAT, 1).verdict


@pytest.mark.parametrize("ours", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_where_the_original_is_fails(ours):
    assert compare(f32(ours), f32(1), np.ones(1), FLOAT, 1).problem


def test_a_finite_value_where_float64_and_the_original_are_nan_fails():
    assert compare(f32(1), f32(math.nan), np.array([math.nan]), FLOAT, 1).problem


def test_an_overflow_of_the_original_may_be_avoided():
    half, exact = DType.FLOAT16, np.array([300.0])
    ours, theirs = np.array([300], np.float16), np.array([math.inf], np.float16)
    assert not compare(ours, theirs, exact, half, 1).problem


def test_a_difference_of_squares_that_overflow_in_the_original_may_be_any_number():
    exact, theirs = np.array([2.5, 1.0]), f32(math.nan, 1.0)
    assert not compare(f32(1e-45, 1.0), theirs, exact, FLOAT, 1).verdict
    assert compare(f32(1e-45, 1.1), theirs, exact, FLOAT, 1).verdict


def test_luck_of_the_original_in_one_run_does_not_count():
    exact = np.array([1.0])
    lucky = compare(f32(1.00001), f32(1.0), exact, FLOAT, 1)
    other = compare(f32(1.0), f32(1.00001), exact, FLOAT, 1)
    assert lucky.verdict
    assert not lucky.worst(other).verdict


def test_integers_must_be_equal():
    good, bad = np.array([3, 4]), np.array([3, 5])
    assert not compare(good, good, good, DType.INT64, 1).problem
    problem = compare(bad, good, good, DType.INT64, 1).problem
    assert problem == "1 of 2 elements differ, at (1,): 5 instead of 4"


def test_tolerance_grows_with_the_length_of_a_sum():
    assert tolerance(FLOAT, 1024) > tolerance(FLOAT, 1) > tolerance(DType.FLOAT64, 1024)
    assert tolerance(DType.FLOAT16, 1) > tolerance(FLOAT, 1)


def test_sizes_are_evaluated():
    assert evaluate_size("2*H + (W - 1) / 2", {"H": 3, "W": 6}) == 8
    interface = Interface(
        (port("x", "n0", "n1"),), (), ("n0", "n1", "n2"), (("n2", "n0 * n1"),)
    )
    assert bind_sizes(interface, [(4, 5)]) == {"n0": 4, "n1": 5, "n2": 20}


def test_feeds_cover_every_fill_and_sizes_of_zero_and_one():
    interface = Interface((port("x", "n0", 8), port("m", 8, dtype=DType.BOOL)), (), ("n0",))
    made = list(feeds(interface))
    assert {feed.label.split()[0] for feed in made} == set(FILLS)
    assert {0, 1} < {feed.sizes["n0"] for feed in made}
    assert all(feed.arrays[1].dtype == np.bool_ for feed in made)
    edge = np.concatenate([f.arrays[0].ravel() for f in made if f.label.startswith("edge")])
    assert np.isnan(edge).any()
    assert np.isinf(edge).any()


def test_large_kernels_are_run_with_few_sizes():
    small = Interface((port("x", "n0", 8),), (port("y", "n0", 8),), ("n0",))
    large = Interface((port("x", "n0", 8),), (port("y", "n0", 2_000_000),), ("n0",))
    assert [chosen.values["n0"] for chosen in choose_sizes(small, (), 5)] == [3, 1, 19, 0, 64]
    assert [chosen.values["n0"] for chosen in choose_sizes(large, (), 5)] == [1, 0]
    assert choose_sizes(small, [(MOST_ELEMENTS,)], 5) == []
    table = Interface((port("x", 2 * MOST_ELEMENTS),), (port("y", 1),), ())
    assert choose_sizes(table, (), 5) == []
    assert len(choose_sizes(table, (), 5, {0})) == 1


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT8, DType.BOOL])
def test_a_large_input_repeats_itself_but_not_from_row_to_row(dtype: DType):
    table = Port("x", TensorType(dtype, (4096, 512)))
    made = {feed.fill: feed.arrays[0] for feed in feeds(Interface((table,), (), ()))}
    assert {array.shape for array in made.values()} == {(4096, 512)}
    values = made["normal"]
    assert values.dtype == dtype.numpy
    flat = values.reshape(-1)
    np.testing.assert_array_equal(flat[PERIOD:], flat[: flat.size - PERIOD])
    assert len(np.unique(values, axis=0)) == len(values)


def test_feeds_are_the_same_every_time():
    interface = Interface((port("x", "n0"),), (), ("n0",))
    for one, other in zip(feeds(interface), feeds(interface), strict=True):
        np.testing.assert_array_equal(one.arrays[0], other.arrays[0])


def test_constants_keep_their_value():
    interface = Interface((port("x", "n0", 3), port("w", 3)), (), ("n0",))
    weight = f32(5, 6, 7)
    assert all(feed.arrays[1] is weight for feed in feeds(interface, None, {1: weight}))


@pytest.mark.compiler
@pytest.mark.ort
class TestKernels:
    def test_a_right_kernel_passes(self, tmp_path: Path):
        found = verify_kernel(handmade(tmp_path).subject)
        assert found.problem == ""
        assert found.runs > len(FILLS)
        assert found.error <= found.original_error

    @pytest.mark.parametrize(
        ("expression", "complaint"),
        [
            ("x * 2.001f > 0.0f || x != x ? x * 2.001f : 0.0f", "relative to the largest"),
            ("x > 0.0f ? x * 2.0f : 0.0f", "0.0 instead of nan"),
            ("x * 2.0f", "inf instead of 0.0"),
        ],
    )
    def test_a_wrong_kernel_is_found(self, tmp_path: Path, expression: str, complaint: str):
        assert complaint in verify_kernel(handmade(tmp_path, expression).subject).problem

    def test_a_kernel_that_refuses_is_found(self, tmp_path: Path):
        found = verify_kernel(handmade(tmp_path, loop="*fault = 1;").subject)
        assert found.problem
