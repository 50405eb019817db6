from __future__ import annotations

import pytest

from tcfuse.mapping.storage import place_temporaries
from tests.mapping.mapped import mapped
from tests.poly.definitions import (
    BROADCAST,
    COLUMN_SUM,
    GATHER,
    LAYER_NORM,
    POOL,
    ROW_SUM,
    SOFTMAX,
    SOFTMAX_OUTER,
)


def placed(text: str, *, fusion: str = "preserve") -> set[str]:
    found = place_temporaries(*mapped(text, fusion=fusion))
    assert all(name == buffer.tensor for name, buffer in found.items())
    return {str(buffer) for buffer in found.values()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            SOFTMAX,
            {
                "M: register, dimensions []",
                "S: register, dimensions []",
                "E: row buffer, dimensions [1]",
            },
        ),
        (
            SOFTMAX_OUTER,
            {
                "M: register per lane, dimensions []",
                "S: register per lane, dimensions []",
                "E: row buffer per lane, dimensions [1]",
            },
        ),
        (LAYER_NORM, {f"{name}: register, dimensions []" for name in "SMVD"}),
        (POOL, {"S: register, dimensions []"}),
        (BROADCAST, {"E: whole tensor, dimensions [0]"}),
        (GATHER, set()),
        (ROW_SUM, {"Y_acc: register, dimensions []"}),
        (COLUMN_SUM, {"Y_acc: register per lane, dimensions []"}),
    ],
    ids=[
        "softmax",
        "softmax_outer",
        "layer_norm",
        "pool",
        "broadcast",
        "gather",
        "row_sum",
        "column_sum",
    ],
)
def test_placement(text: str, expected: set[str]) -> None:
    assert placed(text) == expected


def test_what_crosses_phases_is_whole() -> None:
    assert placed(SOFTMAX, fusion="min") == {
        "M: whole tensor, dimensions [0]",
        "S: whole tensor, dimensions [0]",
        "E: whole tensor, dimensions [0, 1]",
    }


def test_a_value_used_at_once_is_a_register_of_each_lane() -> None:
    text = """def f(float(n0, n1) X) -> (float(n0, n1) Y, float(n0, n1) Z) {
      T(i, j) = exp(X(i, j)) where i in 0:n0, j in 0:n1
      Y(i, j) = T(i, j) + 1 where i in 0:n0, j in 0:n1
      Z(i, j) = T(i, j) * 2 where i in 0:n0, j in 0:n1
    }"""
    assert placed(text) == {"T: register per lane, dimensions []"}


def test_a_value_read_at_another_place_is_a_row() -> None:
    text = """def f(float(n0, 64) X) -> (float(n0, 64) Y) {
      T(i, j) = exp(X(i, j)) where i in 0:n0, j in 0:64
      Y(i, j) = T(i, 63 - j) where i in 0:n0, j in 0:64
    }"""
    assert placed(text, fusion="max") == {"T: row buffer, dimensions [1]"}
    # joined, its loops would not all stay parallel
    assert placed(text) == {"T: whole tensor, dimensions [0, 1]"}


def test_a_value_gathered_from_anywhere_is_whole() -> None:
    text = """def f(float(n0, 64) X, int64(n1) I) -> (float(n1, 64) Y) {
      T(i, j) = exp(X(i, j)) where i in 0:n0, j in 0:64
      Y(i, j) = T(I(i), j) where i in 0:n1, j in 0:64
    }"""
    assert placed(text) == {"T: whole tensor, dimensions [0, 1]"}


def test_a_total_of_everything_in_one_thread() -> None:
    text = """def f(float(n0, n1) X) -> (float Y) {
      S() +=! X(i, j) where i in 0:n0, j in 0:n1
      Y() = S() / 2
    }"""
    assert placed(text) <= {"S: register, dimensions []", "S: whole tensor, dimensions []"}
