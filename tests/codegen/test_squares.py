"""Squares turned in registers: what lanes stride through, and a loop inside runs along."""

from __future__ import annotations

import re
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


def test_squares_of_a_short_loop_are_smaller_than_a_register() -> None:
    """Of 8 channels no square of 16 lanes was ever full, and every read was strided."""
    text = functions_of(
        kernel_of("""def f(float(n, 16) X) -> (float(8, n) Y) {
          Y(c, i) = X(i, c) + 1 where c in 0:8, i in 0:n
        }""").source
    )
    assert re.search(r"tcf::square_of\(L\d+, 8\)", text)


SHORT = 8  # the shortest square that is counted on
BLOCKS = """def f(float(4, {per}, {n}) X) -> (float({blocks}, {n}, 16) Y) {{
  Y(i, j, k) = X(k % 4, (16 * i + k) / 4, j) where i in 0:{whole}, j in 0:{n}, k in 0:16
  Y(i, j, k) = X(k % 4, (k + 16 * {whole}) / 4, j) where i in {whole}:{blocks}, j in 0:{n},
    k in 0:{rest}
  Y(i, j, k) = 0.0 where i in {whole}:{blocks}, j in 0:{n}, k in {rest}:16
}}"""


@pytest.mark.compiler
@pytest.mark.parametrize(("channels", "n"), [(40, 49), (24, 64), (36, 16), (44, 67), (28, 8)])
def test_channels_are_shuffled_into_blocks(tmp_path: Path, channels: int, n: int) -> None:
    """Lanes along pixels store in squares, those of the last block too."""
    whole, rest = divmod(channels, 16)
    text = BLOCKS.format(per=channels // 4, n=n, blocks=whole + 1, whole=whole, rest=rest)
    checked = checked_of(text)
    values = np.random.default_rng(n).random((4, channels // 4, n), np.float32)
    padded = np.zeros((16 * (whole + 1), n), np.float32)
    padded[:channels] = values.transpose(1, 0, 2).reshape(channels, n)
    expected = padded.reshape(whole + 1, 16, n).transpose(0, 2, 1)
    source = kernel_of(checked)
    if rest == SHORT:  # where much of the last block fills no square, channels are gathered
        assert "tcf::store_columns<" in functions_of(source.source)
    for (compiled,) in build([checked], [source], runnable(), tmp_path):
        found, fault = compiled({"X": values})
        assert not fault
        np.testing.assert_array_equal(found["Y"], expected)


@pytest.mark.compiler
@pytest.mark.parametrize("channels", [3, 5, 8, 12, 16])
@pytest.mark.parametrize("n", [5, 64, 100])
def test_few_channels_leave_their_block(tmp_path: Path, channels: int, n: int) -> None:
    checked = checked_of(f"""def f(float(n, 16) X) -> (float({channels}, n) Y) {{
      Y(c, i) = X(i, c) * (X(i, c) + 1) where c in 0:{channels}, i in 0:n
    }}""")
    values = np.random.default_rng(n).integers(-3, 4, (n, 16)).astype(np.float32)
    expected = (values * (values + 1)).T[:channels]
    for (compiled,) in build([checked], [kernel_of(checked)], runnable(), tmp_path):
        found, fault = compiled({"X": values})
        assert not fault
        np.testing.assert_array_equal(found["Y"], expected)
