"""Squares turned in registers: what lanes stride through, and a loop inside runs along."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.codegen.conftest import runnable
from tests.targets.kernels import build, checked_of, functions_of, kernel_of

# The sums of columns keep the lanes on i, along which Y is not contiguous.
COLUMNS = """def f(float({n}, {m}) X) -> (float({m}, {n}) Y) {{
  s(i) +=! X(j, i) where i in 0:{m}, j in 0:{n}
  q(i) +=! X(j, i) * X(j, i) where i in 0:{m}, j in 0:{n}
  Y(i, j) = {value} where i in 0:{m}, j in 0:{n}
}}"""
PLAIN = "X(j, i) - s(i) + q(i)"


def text_of(n: int, m: int, value: str = PLAIN) -> str:
    text: str = functions_of(kernel_of(COLUMNS.format(n=n, m=m, value=value)).source)
    return text


def test_whole_squares_are_stored() -> None:
    text = text_of(64, 48)
    assert "tcf::store_columns<" in text
    assert "TCF_UNROLL" in text


def test_what_takes_long_is_a_loop_beside_squares() -> None:
    text = text_of(64, 48, "exp(X(j, i) - s(i)) + q(i)")
    assert "tcf::store_columns<" in text
    assert "TCF_UNROLL" not in text


def test_what_a_condition_stores_waits_for_no_square() -> None:
    text = functions_of(
        kernel_of("""def f(float(64, 48) X) -> (float(48, 64) Y) {
          s(i) +=! X(j, i) where i in 0:48, j in 0:64
          q(i) +=! X(j, i) * X(j, i) where i in 0:48, j in 0:64
          Y(i, j) = 0 where i in 0:48, j in 0:64
          Y(i, j) = X(j, i) - s(i) + q(i) where i in 0:48, j in 3:60
        }""").source
    )
    assert "tcf::store_columns<" not in text


@pytest.mark.compiler
@pytest.mark.parametrize(("n", "m"), [(64, 48), (32, 16), (67, 50), (16, 5), (96, 100)])
@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
def test_squares_hold_every_element(tmp_path: Path, n: int, m: int, dtype: str) -> None:
    text = COLUMNS.format(n=n, m=m, value=PLAIN).replace("float(", f"{dtype}(")
    checked = checked_of(text)
    numbers = np.random.default_rng(n).integers(-3, 4, (n, m))
    values = numbers.astype(checked.tensors["X"].dtype.numpy)
    expected = (numbers - numbers.sum(0) + (numbers * numbers).sum(0)).T
    for (compiled,) in build([checked], [kernel_of(checked)], runnable(), tmp_path):
        found, fault = compiled({"X": values})
        assert not fault
        np.testing.assert_array_equal(found["Y"], expected.astype(values.dtype))
