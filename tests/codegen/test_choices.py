"""Choices that all lanes share: one row is chosen before them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.codegen.conftest import runnable
from tests.targets.kernels import build, checked_of, functions_of, kernel_of

STACKED = """def f(float(32) A, float(32) B, float(32) C) -> (float(N, 32) Y) {
  Y(i, j) = (i < 2 ? i < 1 ? A(j) : B(j) : C(j)) + A(j) where i in 0:N, j in 0:32
}"""


def test_a_row_is_chosen_before_the_lanes() -> None:
    text = functions_of(kernel_of(STACKED).source)
    assert "tcf::select(" not in text
    assert text.count("const float* const row") == 2


def test_a_choice_in_each_lane_stays_in_the_lanes() -> None:
    text = functions_of(
        kernel_of("""def f(float(32) A, float(32) B, bool(32) M) -> (float(N, 32) Y) {
          Y(i, j) = M(j) ? A(j) : B(j) where i in 0:N, j in 0:32
        }""").source
    )
    assert "tcf::select(" in text
    assert " row" not in text


@pytest.mark.compiler
def test_every_row_is_the_one_that_was_chosen(tmp_path: Path) -> None:
    checked = checked_of(STACKED)
    arrays = {name: np.arange(32, dtype=np.float32) + 100 * k for k, name in enumerate("ABC")}
    expected = np.stack([arrays[name] + arrays["A"] for name in "ABCC"])
    for (compiled,) in build([checked], [kernel_of(checked)], runnable(), tmp_path):
        found, fault = compiled(arrays, {"N": 4})
        assert not fault
        np.testing.assert_array_equal(found["Y"], expected)
