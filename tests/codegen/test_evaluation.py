from __future__ import annotations

import pytest

from tests.targets.kernels import functions_of, kernel_of


def text_of(value: str) -> str:
    text = f"""def f(float(N, K) X, bool(N, K) M) -> (float(N, K) Y) {{
      Y(i, j) = {value} where i in 0:N, j in 0:K
    }}"""
    return functions_of(kernel_of(text).source)


@pytest.mark.parametrize(
    "value",
    [
        "i >= 1 ? X(i - 1, j) : 0",
        "j >= 1 && j - 1 < K ? X(i, j - 1) : 0",
        "i >= 2 && i - 2 < N && j + 1 < K ? X(i - 2, j + 1) : 0",
    ],
)
def test_padding_costs_no_test_for_faults(value: str) -> None:
    text = text_of(value)
    assert "fault = 1" not in text
    assert "checked<" not in text


@pytest.mark.parametrize(
    ("value", "test"),
    [
        ("M(i, j) ? X(i, j + 1) : 0", "checked<"),
        ("M(i, 0) ? X(i + 1, 0) : 0", "fault = 1"),
        ("j >= 0 ? X(i, j - 1) : 0", "checked<"),
    ],
)
def test_a_guard_that_may_hold_outside_is_tested(value: str, test: str) -> None:
    assert test in text_of(value)
