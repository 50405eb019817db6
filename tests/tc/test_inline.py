"""Inlining: what moves, what stays, and that values do not change."""

from __future__ import annotations

import numpy as np

from tcfuse.tc.ast import Def
from tcfuse.tc.draft import draft_of
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.inline import inline
from tcfuse.tc.lets import name_shared
from tcfuse.tc.parser import parse
from tcfuse.tc.pool import Pool
from tcfuse.tc.sema import check
from tcfuse.tc.simplify import Simplifier


def inlined(text: str, numerics: str = "default") -> Def:
    """``text`` after inlining; evaluates like before on random arguments."""
    before = check(parse(text))
    pool = Pool()
    draft = inline(draft_of(before.definition, before.tensors, pool), pool, numerics)
    types = ExprTypes(draft.tensors)
    body = tuple(
        name_shared(
            s, types, Simplifier(pool, types, s.ranges), declared=s.tensor in draft.outputs
        )
        for s in draft.body
    )
    definition = Def("f", draft.definition("f").params, draft.definition("f").returns, body)
    after = check(parse(str(definition)))
    stream = np.random.default_rng(0)
    arguments = {
        p.name: stream.integers(0, 5, p.type.shape).astype(p.type.dtype.numpy)
        for p in before.definition.params
        if p.type is not None
    }
    expected = evaluate(before, arguments)
    found = evaluate(after, {x: a for x, a in arguments.items() if x in after.inputs})
    for name in before.outputs:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)
    return definition


def test_chain_becomes_one_statement():
    definition = inlined("""
def f(float(8) x) -> (float(8) y) {
  a(i) = exp(x(i)) where i in 0:8
  b(i) = a(i) + 1.0 where i in 0:8
  y(i) = b(i) * a(i) where i in 0:8
}""")
    assert len(definition.body) == 1
    assert str(definition).count("exp") == 1


def test_expensive_value_with_two_consumers_stays():
    definition = inlined("""
def f(float(4, 8) x) -> (float(4, 8) y, float(4) s) {
  a(i, j) = exp(x(i, j)) where i in 0:4, j in 0:8
  s(i) +=! a(i, j) where i in 0:4, j in 0:8
  y(i, j) = a(i, j) * 2.0 where i in 0:4, j in 0:8
}""")
    assert [s.tensor for s in definition.body] == ["a", "s", "y"]


def test_cheap_value_is_computed_again_in_each_consumer():
    definition = inlined("""
def f(float(4, 8) x, float(4) m) -> (float(4, 8) y, float(4) s) {
  a(i, j) = x(i, j) - m(i) where i in 0:4, j in 0:8
  s(i) +=! a(i, j) * a(i, j) where i in 0:4, j in 0:8
  y(i, j) = exp(a(i, j)) where i in 0:4, j in 0:8
}""")
    assert [s.tensor for s in definition.body] == ["s", "y"]


def test_expensive_value_is_not_computed_in_a_larger_loop():
    definition = inlined("""
def f(float(4, 8) x, float(4) v) -> (float(4, 8) y) {
  d(i) = sqrt(v(i)) where i in 0:4
  y(i, j) = x(i, j) / d(i) where i in 0:4, j in 0:8
}""")
    assert [s.tensor for s in definition.body] == ["d", "y"]


def test_operations_are_not_repeated_in_a_matrix_product():
    definition = inlined("""
def f(float(4, 8) x, float(8, 3) w, float(8) b) -> (float(4, 3) y) {
  a(i, k) = x(i, k) + b(k) where i in 0:4, k in 0:8
  y(i, j) +=! a(i, k) * w(k, j) where i in 0:4, j in 0:3, k in 0:8
}""")
    assert [s.tensor for s in definition.body] == ["a", "y"]


def test_transposition_moves_into_a_matrix_product():
    definition = inlined("""
def f(float(8, 4) x, float(8, 3) w) -> (float(4, 3) y) {
  a(i, k) = x(k, i) where i in 0:4, k in 0:8
  y(i, j) +=! a(i, k) * w(k, j) where i in 0:4, j in 0:3, k in 0:8
}""")
    assert len(definition.body) == 1


def test_result_of_a_reduction_stays():
    definition = inlined("""
def f(float(4, 8) x) -> (float(4) y) {
  s(i) +=! x(i, j) where i in 0:4, j in 0:8
  y(i) = s(i) * 2.0 where i in 0:4
}""")
    assert [s.tensor for s in definition.body] == ["s", "y"]


def test_value_is_not_moved_past_a_change_of_what_it_reads():
    definition = inlined("""
def f(float(4, 8) x) -> (float(4) y) {
  s(i) +=! x(i, j) where i in 0:4, j in 0:8
  a(i) = s(i) + 1.0 where i in 0:4
  s(i) += x(i, j) where i in 0:4, j in 0:8
  y(i) = a(i) * s(i) where i in 0:4
}""")
    assert [s.tensor for s in definition.body] == ["s", "a", "s", "y"]


def test_output_is_written_once_and_read_by_others():
    definition = inlined("""
def f(float(8) x) -> (float(8) a, float(8) y) {
  a(i) = exp(x(i)) where i in 0:8
  y(i) = a(i) / 3.0 where i in 0:8
}""")
    assert str(definition).count("exp") == 1


def test_subscripts_are_composed():
    definition = inlined("""
def f(float(10, 4) x) -> (float(3, 5) y) {
  a(i, j) = x(j + 2, i) where i in 0:4, j in 0:8
  y(i, j) = a(i + 1, j + 3) where i in 0:3, j in 0:5
}""")
    assert "x(j + 5, i + 1)" in str(definition)


def test_narrow_integers_still_wrap():
    definition = inlined("""
def f(int8(8) x) -> (int32(8) y) {
  a(i) = int8(int32(x(i)) * 100) where i in 0:8
  y(i) = a(i) * 2 where i in 0:8
}""")
    assert "int8(" in str(definition)


def test_guarded_read_is_not_moved_out_of_its_branch():
    definition = inlined("""
def f(float(8) x) -> (float(9) y) {
  y(i) = i < 1 ? 0.0 : exp(x(i - 1)) * exp(x(i - 1)) where i in 0:9
}""")
    assert not definition.body[0].lets


def test_shared_value_that_is_in_range_is_named():
    definition = inlined("""
def f(float(8) x, float(8) c) -> (float(8) y) {
  y(i) = c(i) < 1.0 ? 0.0 : exp(x(i)) * exp(x(i)) where i in 0:8
}""")
    assert len(definition.body[0].lets) == 1


def test_large_values_are_cut_into_several_statements():
    terms = " + ".join(["exp(a(i))", *(f"x(i) * {k}.5" for k in range(150))])
    more = " + ".join(["b(i)", *(f"x(i) * {k}.5" for k in range(150))])
    definition = inlined(f"""
def f(float(8) x) -> (float(8) y) {{
  a(i) = exp(x(i)) where i in 0:8
  b(i) = {terms} where i in 0:8
  y(i) = {more} where i in 0:8
}}""")
    assert len(definition.body) == 2


def test_a_matrix_whose_rows_are_read_by_one_step_each_is_computed_in_the_steps():
    definition = inlined("""
def f(float(3, 8) x) -> (float(8) y) {
  a(k, i) = exp(x(k, i)) where k in 0:3, i in 0:8
  s(i) = a(0, i) * x(1, i) where i in 0:8
  t(i) = a(1, i) * s(i) + s(i) * s(i) where i in 0:8
  y(i) = a(2, i) * t(i) + t(i) where i in 0:8
}""")
    assert "a(" not in str(definition)
    assert str(definition).count("exp") == 3


def test_a_matrix_whose_rows_are_read_twice_stays():
    definition = inlined("""
def f(float(3, 8) x) -> (float(8) y, float(8) z) {
  a(k, i) = exp(x(k, i)) where k in 0:3, i in 0:8
  y(i) = a(0, i) * x(1, i) where i in 0:8
  z(i) = a(1, i) + a(0, i) where i in 0:8
}""")
    assert str(definition).count("exp") == 1


def test_pieces_that_do_not_overlap_are_computed_where_they_are_read():
    definition = inlined("""
def f(float(12) x) -> (float(8) y, float(4) z) {
  a(i) = exp(x(i)) where i in 0:12
  y(i) = a(i) + 1 where i in 0:8
  z(i) = a(i + 8) + 2 where i in 0:4
}""")
    assert "a(" not in str(definition)


def test_pieces_that_overlap_are_computed_once():
    definition = inlined("""
def f(float(12) x) -> (float(8) y, float(5) z) {
  a(i) = exp(x(i)) where i in 0:12
  y(i) = a(i) + 1 where i in 0:8
  z(i) = a(i + 7) + 2 where i in 0:5
}""")
    assert str(definition).count("exp") == 1


def test_what_turns_out_to_be_a_copy_is_read_where_it_lies():
    twice = "roundeven((int32(x(i, j)) - 3) * 0.25 / 0.25) + 3"
    again = "roundeven(b(i, j) / 0.5) + 3"
    definition = inlined(f"""
def f(uint8(4, 8) x) -> (float(4) s, float(4) m) {{
  a(i, j) = uint8(int32(min(max({twice}, 0), 255))) where i in 0:4, j in 0:8
  b(i, j) = (int32(a(i, j)) - 3) * 0.5 where i in 0:4, j in 0:8
  c(i, j) = uint8(int32(min(max({again}, 0), 255))) where i in 0:4, j in 0:8
  s(i) +=! exp(float(c(i, j)) * 0.1) where i in 0:4, j in 0:8
  m(i) max=! float(c(i, j)) where i in 0:4, j in 0:8
}}""")
    assert [s.tensor for s in definition.body] == ["s", "m"]
