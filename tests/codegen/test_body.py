from __future__ import annotations

import pytest

from tcfuse.errors import UnsupportedError
from tests.codegen.test_lower import text_of
from tests.poly.definitions import GATHER, PAD


def test_a_position_for_all_lanes_is_checked_once() -> None:
    text = text_of(GATHER)
    assert text.count("*fault = 1; return;") == 1
    assert text.index("*fault = 1") < text.index("int64_t base")


def test_a_position_of_each_lane_is_checked_in_lanes() -> None:
    text = text_of("""def f(float(7) X, int64(n0) I) -> (float(n0) Y) {
      Y(i) = X(I(i)) where i in 0:n0
    }""")
    assert "tcf::checked<" in text
    assert "tcf::gather_if<float" in text


def test_a_ternary_guards_its_reads() -> None:
    text = text_of(PAD)
    assert "tcf::inside<" in text
    assert "fault = 1" not in text  # nothing depends on data


def test_a_guard_for_all_lanes_is_one_condition() -> None:
    text = text_of("""def f(float(9, 64) X) -> (float(12, 64) Y) {
      Y(i, j) = i >= 2 && i - 2 < 9 ? X(i - 2, j) : 0.0 where i in 0:12, j in 0:64
    }""")
    assert "tcf::and_(" in text


def test_lets_are_computed_once() -> None:
    text = text_of("""def f(float(n0, 64) X) -> (float(n0, 64) Y) {
      Y(i, j) = t * t + t where i in 0:n0, j in 0:64, t = exp(X(i, j))
    }""")
    assert text.count("tcf::exp(") == 1


def test_what_all_lanes_share_is_computed_before_them() -> None:
    text = text_of("""def f(float(n0, 64) X, float(n0) B) -> (float(n0, 64) Y) {
      Y(i, j) = X(i, j) * exp(sqrt(tanh(B(i)))) where i in 0:n0, j in 0:64
    }""")
    assert text.index("tcf::exp(") < text.index("int64_t base")


def test_halves_are_stored_as_bits() -> None:
    text = text_of("""def f(float16(64) X) -> (float16(64) Y, bfloat16(64) Z) {
      Y(i) = X(i) * 2 where i in 0:64
      Z(i) = X(i) where i in 0:64
    }""")
    assert "tcf::from_half(tcf::load<uint16_t" in text
    assert "tcf::to_half(" in text
    assert "tcf::bfloat_bits(" in text


def test_an_access_that_nothing_guards_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="an access of X may leave the tensor"):
        text_of("""def f(float(9) X) -> (float(9) Y) {
          Y(i) = X(i) + X((i * 3) % 10) where i in 0:9
        }""")


def test_guarded_neighbours_are_loaded_at_once() -> None:
    text = text_of("""def f(float(n0) X) -> (float(n0) Y) {
      Y(i) = i >= 2 ? X(i - 2) : 0.0 where i in 0:n0
    }""")
    assert "tcf::load_where<float" in text
    assert "gather_if" not in text
