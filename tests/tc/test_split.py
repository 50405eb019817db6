"""Index-set splitting: choices disappear and results stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.tc.ast import Def
from tcfuse.tc.draft import draft_of
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.tc.pool import Pool
from tcfuse.tc.sema import check
from tcfuse.tc.split import MOST_PIECES, split


def pieces(text: str, **sizes: int) -> Def:
    """``text`` after splitting; evaluates like before on random arguments."""
    before = check(parse(text))
    pool = Pool()
    draft = split(draft_of(before.definition, before.tensors, pool), pool)
    after = check(parse(str(draft.definition("f"))))
    stream = np.random.default_rng(0)
    arguments = {
        name: stream.integers(
            -4, 5, [sizes.get(str(n), n) for n in before.tensors[name].shape]
        ).astype(before.tensors[name].dtype.numpy)
        for name in before.inputs
    }
    expected, found = evaluate(before, arguments), evaluate(after, arguments)
    for name in before.outputs:
        np.testing.assert_array_equal(found[name], expected[name])
    return after.definition


def test_concatenation_becomes_a_statement_per_part():
    definition = pieces("""
def f(float(3) a, float(4) b) -> (float(7) y) {
  y(i) = (i < 3 ? a(i) : b(i - 3)) * 2.0 where i in 0:7
}""")
    assert len(definition.body) == 2
    assert "?" not in str(definition)


@pytest.mark.parametrize("size", [3, 8, 24, 40, 47])
def test_a_choice_by_two_digits_is_decided_by_the_outer_one_but_for_one_block(size: int):
    definition = pieces(f"""
def f(float({size}) x) -> (float(6, 8) y) {{
  y(k, l) = 8 * k + l < {size} ? x(8 * k + l) : 0.0 where k in 0:6, l in 0:8
}}""")
    assert "?" not in str(definition)
    whole, rest, empty = size >= 8, size % 8 > 0, size <= 40
    assert len(definition.body) == whole + 2 * rest + empty


def test_digits_that_do_not_fit_together_stay_a_choice():
    definition = pieces("""
def f(float(40) x) -> (float(4, 8) y) {
  y(k, l) = 9 * k + l < 20 ? x(9 * k + l) : 0.0 where k in 0:4, l in 0:8
}""")
    assert "?" in str(definition)


def test_padding_of_two_dimensions_becomes_five_statements():
    definition = pieces("""
def f(float(3, 3) x) -> (float(5, 5) y) {
  y(i, j) = i >= 1 && i < 4 && j >= 1 && j < 4 ? x(i - 1, j - 1) : 0.0 where i in 0:5, j in 0:5
}""")
    assert len(definition.body) == 5


def test_symbolic_parts_are_split():
    definition = pieces(
        """
def f(float(P) a, float(S) b) -> (float(P + S) y) {
  y(i) = i < P ? a(i) : b(i - P) where i in 0:P + S
}""",
        P=3,
        S=2,
    )
    assert len(definition.body) == 2
    assert "?" not in str(definition)


def test_sum_over_padding_starts_once_and_skips_zeros():
    definition = pieces("""
def f(float(2, 5) x) -> (float(2) y) {
  y(i) +=! (j >= 1 && j < 6 ? x(i, j - 1) : 0.0) where i in 0:2, j in 0:7
}""")
    assert [s.assign.value for s in definition.body] == ["=", "+="]
    assert "?" not in str(definition)


def test_maximum_over_two_parts_starts_from_the_identity():
    definition = pieces("""
def f(float(2, 3) a, float(2, 4) b) -> (float(2) y) {
  y(i) max=! (j < 3 ? a(i, j) : b(i, j - 3)) where i in 0:2, j in 0:7
}""")
    assert [s.assign.value for s in definition.body] == ["=", "max=", "max="]


def test_half_sum_is_rounded_once():
    definition = pieces("""
def f(float16(2, 3) a, float16(2, 4) b) -> (float16(2) y) {
  y(i) +=! (j < 3 ? a(i, j) : b(i, j - 3)) where i in 0:2, j in 0:7
}""")
    assert len(definition.body) == 1


def test_reduced_temporary_keeps_its_whole_shape():
    definition = pieces("""
def f(float(3, 4) a, float(2, 4) b) -> (float(5) y) {
  t(i) +=! (i < 3 ? a(i, j) : b(i - 3, j)) where i in 0:5, j in 0:4
  y(i) = t(i) + 1.0 where i in 0:5
}""")
    assert [s.tensor for s in definition.body] == ["t", "t", "t", "y"]


def test_temporary_in_parts_is_first_written_as_a_whole():
    definition = pieces("""
def f(float(4) a, float(3) b) -> (float(7) y) {
  t(i) = i >= 2 && i < 6 ? a(i - 2) : 1.5 where i in 0:7
  y(i) = t(6 - i) where i in 0:7
}""")
    assert [str(s.value) for s in definition.body[:1]] == ["Const(value=1.5)"]
    assert [s.tensor for s in definition.body] == ["t", "t", "y"]


def test_condition_on_two_variables_stays():
    definition = pieces("""
def f(float(4, 4) x) -> (float(4, 4) y) {
  y(i, j) = j <= i ? x(i, j) : 0.0 where i in 0:4, j in 0:4
}""")
    assert len(definition.body) == 1


def test_number_of_pieces_is_bounded():
    value = "a(i - 19)"
    for k in range(19, 0, -1):
        value = f"i < {k} ? a(i - {k - 1}) : ({value})"
    definition = pieces(f"""
def f(float(1) a) -> (float(20) y) {{
  y(i) = {value} where i in 0:20
}}""")
    assert len(definition.body) == MOST_PIECES
    assert str(definition).count("?") == 19 - (MOST_PIECES - 1)


@pytest.mark.parametrize("assign", ["=", "+=!", "max=!", "min=!", "*=!"])
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_any_choice_keeps_its_result(assign, data):
    sign = st.sampled_from(["<", "<=", ">", ">="])
    conditions = [
        f"{data.draw(st.sampled_from('ij'))} {data.draw(sign)} {data.draw(st.integers(-1, 7))}"
        for _ in range(3)
    ]
    join = [data.draw(st.sampled_from(["&&", "||"])) for _ in range(2)]
    head = "y(i, j)" if assign == "=" else "y(i)"
    pieces(f"""
def f(float(6, 5) x) -> (float({"6, 5" if assign == "=" else "6"}) y) {{
  {head} {assign} ({conditions[0]} {join[0]} {conditions[1]}) ? x(i, j)
      : (!({conditions[2]}) ? x(5 - i, j) : 2.0) where i in 0:6, j in 0:5
}}""")
