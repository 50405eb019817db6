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


def sums_of_rows(rows: str, *, index: str = "I(i, k)") -> str:
    text = f"""def f(float({rows}, 64) X, int64(N, K) I) -> (float(N, 64) Y) {{
      Y(i, j) +=! X({index}, j) where i in 0:N, j in 0:64, k in 0:K
    }}"""
    return functions_of(kernel_of(text).source)


def test_rows_of_a_large_table_are_asked_for_ahead() -> None:
    text = sums_of_rows("100000")
    asked = text.index("tcf::prefetch<float")
    assert "tcf_min(" in text[:asked]
    assert text.count("fault = 1") == 1  # what is asked for may be anywhere


@pytest.mark.parametrize("rows", ["100", "I0"])
def test_rows_are_asked_for_unless_the_table_is_known_to_be_small(rows: str) -> None:
    assert ("tcf::prefetch" in sums_of_rows(rows)) is (rows != "100")


def test_a_row_that_stays_is_not_asked_for() -> None:
    assert "tcf::prefetch" not in sums_of_rows("100000", index="I(i, 0)")


def test_an_index_of_an_index_is_computed_as_it_will_be() -> None:
    text = sums_of_rows("100000", index="I(i, k) < 0 ? I(i, k) + 100000 : I(i, k)")
    ahead = text[: text.index("tcf::prefetch")].rsplit("const int64_t", 1)[1]
    assert "100000LL" in ahead  # computed from the later iterator, not taken over


def test_a_divisor_that_is_a_root_needs_one_product() -> None:
    text = """def f(float(N, K) X) -> (float(N, K) Y) {
      S(i) +=! X(i, j) * X(i, j) where i in 0:N, j in 0:K
      Y(i, j) = X(i, j) / sqrt(S(i)) where i in 0:N, j in 0:K
    }"""
    assert "tcf::divided" not in functions_of(kernel_of(text).source)
    by_sum = functions_of(kernel_of(text.replace("sqrt(S(i))", "S(i)")).source)
    assert "tcf::divided" in by_sum


@pytest.mark.parametrize(("divisor", "kept"), [("10", False), ("0.5", True), ("X(i, 0)", True)])
def test_constants_divide_by_products(divisor: str, kept: bool) -> None:
    text = text_of(f"X(i, j) / {divisor}")
    assert ("tcf::quotient_by" in text) is not kept
