"""Indices split into groups, and padded copies of what sums read inside bounds only."""

from __future__ import annotations

import pytest

from tcfuse.mapping.groups import with_groups
from tcfuse.mapping.padding import with_padding
from tcfuse.mapping.plan import plan_kernel
from tcfuse.mapping_options import MappingOptions
from tcfuse.tc.unparse import unparse_statement
from tests.poly.definitions import checked_of

GROUPED = """
def f(float(2, 32, 12, 12) X, float(24, 4, 3, 3) W, float(24) B) -> (float(2, 24, 12, 12) O) {
  T(n, f, h, w) +=! h + y - 1 >= 0 && h + y - 1 < 12 && w + x - 1 >= 0 && w + x - 1 < 12
    ? X(n, f / 3 * 4 + c, h + y - 1, w + x - 1) * W(f, c, y, x) : 0
    where n in 0:2, f in 0:24, h in 0:12, w in 0:12, c in 0:4, y in 0:3, x in 0:3
  O(n, f, h, w) = T(n, f, h, w) + B(f) where n in 0:2, f in 0:24, h in 0:12, w in 0:12
}
"""


def statements(checked) -> list[str]:
    return [unparse_statement(s.comprehension) for s in checked.statements]


def test_an_index_and_all_that_is_tied_to_it_become_a_group_and_a_place():
    grouped = with_groups(checked_of(GROUPED))
    shapes = {name: kind.shape for name, kind in grouped.tensors.items()}
    assert shapes["X"] == (2, 8, 4, 12, 12)
    assert shapes["W"] == (8, 3, 4, 3, 3)
    assert shapes["B"] == (8, 3)
    assert shapes["O"] == shapes["T"] == (2, 8, 3, 12, 12)
    assert not any("/" in text for text in statements(grouped))


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(8) X) -> (float(8) Y) { Y(i) = X(i / 3) where i in 0:8 }",
        """def f(float(12) X) -> (float(8) Y) {
          Y(i) = X(i / 2) + X(i + 4) where i in 0:8
        }""",
        "def f(float(8) X) -> (float(8) Y) { Y(i) = X(i / 2) * i where i in 0:8 }",
        "def f(float(N) X) -> (float(N) Y) { Y(i) = X(i / 2) where i in 0:N }",
    ],
    ids=["does not divide", "offset", "used as a number", "symbolic"],
)
def test_other_quotients_stay(text):
    checked = checked_of(text)
    assert with_groups(checked) is checked


def test_a_guarded_sum_reads_a_padded_copy_without_its_guard():
    padded = with_padding(with_groups(checked_of(GROUPED)))
    copy, summed, _ = statements(padded)
    assert padded.tensors["X_padded"].shape == (2, 8, 4, 14, 14)
    assert "?" in copy
    assert "?" not in summed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "X(n, f / 3 * 4 + c, h + y - 1, w + x - 1) *",
            "(1.0 + X(n, f / 3 * 4 + c, h + y - 1, w + x - 1)) *",
        ),
        ("h + y - 1 >= 0 &&", "h + y - 1 >= 0 && n < 1 &&"),
        (": 0\n", ": 1\n"),
        ("w + x - 1 < 12", "w + x - 1 < 11"),
    ],
    ids=["not zero outside", "asks more", "not a sum of zeros", "other bounds"],
)
def test_a_guard_that_is_more_than_padding_stays(old, new):
    assert old in GROUPED
    checked = with_groups(checked_of(GROUPED.replace(old, new)))
    assert with_padding(checked) is checked


def test_the_padded_copy_is_a_slab_of_a_group():
    buffer = plan_kernel(checked_of(GROUPED), (), MappingOptions()).buffers["X_padded"]
    assert buffer.kept == (2, 3, 4)


def test_strict_numerics_multiply_nothing_outside():
    plan = plan_kernel(checked_of(GROUPED), (), MappingOptions(numerics="strict"))
    assert "X_padded" not in plan.buffers
