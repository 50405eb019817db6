"""Short reductions that choose by index, written out."""

from __future__ import annotations

import numpy as np
import pytest

from tcfuse.tc.draft import draft_of
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.tc.pool import Pool
from tcfuse.tc.sema import check
from tcfuse.tc.unroll import unroll


@pytest.mark.parametrize("assign", ["+=!", "*=!", "min=!", "max=!"])
def test_choice_between_two_is_written_out(assign):
    before = check(
        parse(f"""
def f(float(5) a, float(5) b) -> (float(5) y) {{
  y(i) {assign} (k < 1 ? a(i) * a(i) : b(i)) where i in 0:5, k in 0:2
}}""")
    )
    pool = Pool()
    after = unroll(draft_of(before.definition, before.tensors, pool), pool).definition("f")
    assert after.body[0].assign.value == "="
    assert "?" not in str(after)
    arguments = {x: np.arange(5, dtype=np.float32) - k for k, x in enumerate("ab")}
    np.testing.assert_array_equal(
        evaluate(check(after), arguments)["y"], evaluate(before, arguments)["y"]
    )


def test_other_reductions_stay():
    before = check(
        parse("""
def f(float(5, 2) a) -> (float(5) y) {
  y(i) +=! a(i, k) where i in 0:5, k in 0:2
}""")
    )
    pool = Pool()
    draft = draft_of(before.definition, before.tensors, pool)
    assert unroll(draft, pool) is draft
