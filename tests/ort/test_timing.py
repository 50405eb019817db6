"""How far a measured ratio may be from the true one."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from tcfuse.ort.timing import standard_error


def test_equal_rounds_have_no_error():
    assert standard_error([[1.25] * 30, [1.25] * 30]) == 0.0


def test_a_single_round_has_no_error_that_is_known():
    assert standard_error([[1.25]]) == 0.0


def test_the_error_of_independent_rounds_is_that_of_their_median():
    rng = np.random.default_rng(0)
    found = [standard_error([*rng.normal(1.0, 0.1, (4, 300))]) for _ in range(100)]
    true = np.std([np.median(rng.normal(1.0, 0.1, 1200)) for _ in range(1000)])
    assert median(found) == pytest.approx(true, rel=0.5)


def test_rounds_that_are_alike_in_a_run_count_as_few():
    rng = np.random.default_rng(0)
    shifts = [0.97, 1.0, 1.01, 1.04]
    found = standard_error([shift + rng.normal(0, 0.001, 300) for shift in shifts])
    assert found == pytest.approx(np.std(shifts, ddof=1) / 2, rel=0.1)


def test_the_error_is_relative():
    rounds = [[1.0, 1.1, 0.9, 1.2, 1.0], [1.1, 1.0, 0.9, 1.0, 1.2]]
    doubled = [[2 * ratio for ratio in run] for run in rounds]
    assert standard_error(doubled) == pytest.approx(standard_error(rounds))
