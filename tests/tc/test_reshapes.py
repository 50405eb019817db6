"""Statements that only reshape: found where they keep the order of the elements, only there."""

from __future__ import annotations

import pytest

from tcfuse.tc.lower import _lower
from tcfuse.tc.reshapes import reshapes

SIDE_BY_SIDE = "Y(i, c) = R(i, c / 3, c % 3) where i in 0:N, c in 0:6"


def found(last: str, result: str = "float(N, 6)", source: str = "X(i, j, k)") -> dict[int, str]:
    text = f"""def f(float(N, 2, 3) X) -> ({result} Y) {{
      R(i, j, k) = {source} where i in 0:N, j in 0:2, k in 0:3
      {last}
    }}"""
    lowered = _lower("f", text)
    return reshapes(lowered.body, lowered.tensors, lowered.inputs)


def test_heads_side_by_side_are_another_shape():
    assert found(SIDE_BY_SIDE) == {1: "R"}


@pytest.mark.parametrize(
    "last",
    [
        "Y(i, c) = R(i, c % 2, c / 2) where i in 0:N, c in 0:6",
        "Y(i, c) = R(i, c / 3, c % 3) + 0 * R(i, 0, 0) where i in 0:N, c in 0:6",
        "Y(i, c) = X(i, c / 3, c % 3) where i in 0:N, c in 0:6",
        "Y(i, c) = R(i, 1 - c / 3, c % 3) where i in 0:N, c in 0:6",
    ],
)
def test_another_order_or_value_is_no_reshape(last):
    assert not found(last)


def test_a_conversion_is_no_reshape():
    assert not found(SIDE_BY_SIDE, "float16(N, 6)")


def test_a_tensor_that_is_written_again_is_no_reshape():
    again = f"{SIDE_BY_SIDE}\n R(i, j, k) = 2 * X(i, j, k) where i in 0:N, j in 0:2, k in 0:3"
    assert not found(again)
