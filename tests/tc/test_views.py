"""Views: common refinements, their limits, and that no element moves."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.tc.coalesce import coalesce
from tcfuse.tc.draft import Draft, View, draft_of
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.tc.pool import Pool
from tcfuse.tc.sema import check
from tcfuse.tc.sizes import Sizes
from tcfuse.tc.units import drop_units
from tcfuse.tc.views import ViewError, solve_views
from tcfuse.types import DType, TensorType


def draft_with_views(
    text: str, pool: Pool, **views: tuple[str, tuple[int | str, ...]]
) -> Draft:
    """The draft of a text in which ``R=("S", shape)`` makes the parameter S a view source.

    ``R`` must be a parameter of the text; it is replaced by ``S`` of the given shape.
    """
    checked = check(parse(text))
    draft = draft_of(checked.definition, checked.tensors, pool)
    tensors = dict(draft.tensors)
    inputs = list(draft.inputs)
    found = []
    for label, (result, (source, shape)) in enumerate(views.items()):
        if source not in tensors:
            tensors[source] = TensorType(DType.FLOAT32, shape)
            inputs.append(source)
        found.append(View(source, result, label))
        if result in inputs:
            inputs.remove(result)
        else:  # a view result of the text that becomes an output
            tensors.setdefault(result, TensorType(DType.FLOAT32, shape))
    return replace(draft, tensors=tensors, inputs=tuple(inputs), views=tuple(found))


def solved(
    text: str, sizes: Sizes | None = None, **views: tuple[str, tuple[int | str, ...]]
) -> str:
    pool = Pool()
    draft = draft_with_views(text, pool, **views)
    return str(solve_views(draft, pool, sizes or Sizes()).definition("f"))


def test_dimension_is_split_to_match():
    text = """
def f(float(4, 15) R) -> (float(4, 15) Y) {
  Y(i, j) = R(i, j) where i in 0:4, j in 0:15
}"""
    # the other reader of S fixes its shape
    both = """
def f(float(4, 15) R, float(4, 3, 5) S) -> (float(4, 15) Y, float(4, 3, 5) Z) {
  Y(i, j) = R(i, j) where i in 0:4, j in 0:15
  Z(i, j, k) = S(i, j, k) where i in 0:4, j in 0:3, k in 0:5
}"""
    assert "S(i, j) where" in solved(text, R=("S", (4, 3, 5)))
    assert "Y(i, j_0, j_1) = S(i, j_0, j_1)" in solved(both, R=("S", (4, 3, 5)))


def test_shapes_that_interleave_get_a_common_refinement():
    text = """
def f(float(3, 8) R, float(6, 4) S) -> (float(3, 8) Y, float(6, 4) Z) {
  Y(i, j) = R(i, j) where i in 0:3, j in 0:8
  Z(i, j) = S(i, j) where i in 0:6, j in 0:4
}"""
    found = solved(text, R=("S", (6, 4)))
    assert "float(3, 2, 4) S" in found
    assert "Y(i, j_0, j_1) = S(i, j_0, j_1)" in found
    assert "Z(i_0, i_1, j) = S(i_0, i_1, j)" in found


def test_offset_is_split_where_the_inner_factor_divides_it():
    text = """
def f(float(12) S, float(3, 2) R) -> (float(6) T, float(3, 2) Y) {
  T(i) = S(i + 6) where i in 0:6
  Y(i, j) = R(i, j) where i in 0:3, j in 0:2
}"""
    pool = Pool()
    draft = draft_with_views(text, pool, R=("T", ()))
    found = str(solve_views(draft, pool, Sizes()).definition("f"))
    assert "float(6, 2) S" in found
    assert "T(i_0, i_1) = S(i_0 + 3, i_1)" in found


def test_conflict_becomes_a_copy_with_division():
    text = """
def f(float(6, 4) S, float(24) R) -> (float(6, 4) Z, float(20) Y) {
  Z(i, j) = S(i, j) where i in 0:6, j in 0:4
  Y(i) = R(i + 3) where i in 0:20
}"""
    found = solved(text, R=("S", (6, 4)))
    assert "R(i) = S(i / 4, i % 4) where i in 0:24" in found


def test_conflict_of_symbolic_sizes_is_refused():
    text = """
def f(float(N, 4) S, float(M) R) -> (float(N, 4) Z, float(M) Y) {
  Z(i, j) = S(i, j) where i in 0:N, j in 0:4
  Y(i) = R(i % 3) where i in 0:M
}"""
    sizes = Sizes()
    sizes.names += ["N", "M"]
    with pytest.raises(ViewError, match="no common refinement") as caught:
        solved(text, sizes, R=("S", ("N", 4)))
    assert caught.value.label == 0


def test_output_that_is_a_view_of_an_input_is_copied():
    pool = Pool()
    tensors = {"S": TensorType(DType.FLOAT32, (2, 3)), "Y": TensorType(DType.FLOAT32, (6,))}
    draft = Draft(("S",), ("Y",), tensors, (), (View("S", "Y"),))
    found = str(solve_views(draft, pool, Sizes()).definition("f"))
    assert "def f(float(6) S) -> (float(6) Y)" in found
    assert "Y(i) = S(i) where i in 0:6" in found


def test_units_are_dropped_and_dimensions_merged():
    text = """
def f(float(1, 8, 3, 3) X, float(8, 1, 1) B) -> (float(1, 8, 3, 3) Y) {
  Y(i, j, k, l) = X(i, j, k, l) + B(j, 0, 0) where i in 0:1, j in 0:8, k in 0:3, l in 0:3
}"""
    pool = Pool()
    checked = check(parse(text))
    draft = draft_of(checked.definition, checked.tensors, pool)
    found = coalesce(drop_units(draft, pool), pool, Sizes()).definition("f")
    assert "Y(j, k) = X(j, k) + B(j) where j in 0:8, k in 0:9" in str(found)


def test_dimensions_walked_apart_are_not_merged():
    text = """
def f(float(3, 4) X) -> (float(3, 4) Y, float(3) S) {
  Y(i, j) = X(i, j) where i in 0:3, j in 0:4
  S(i) +=! X(i, j) where i in 0:3, j in 0:4
}"""
    pool = Pool()
    checked = check(parse(text))
    draft = draft_of(checked.definition, checked.tensors, pool)
    assert coalesce(draft, pool, Sizes()) is draft


def random_factors(random: Random, product: int) -> tuple[int, ...]:
    found = []
    while product > 1:
        found.append(random.choice([d for d in range(2, product + 1) if product % d == 0]))
        product //= found[-1]
    random.shuffle(found)
    return tuple(found)


@settings(deadline=None, max_examples=60)
@given(random=st.randoms(use_true_random=False), product=st.sampled_from([12, 24, 36, 48]))
def test_no_element_moves(random, product):
    source, result = random_factors(random, product), random_factors(random, product)
    shift = random.randint(0, result[0] - 1)

    def point(shape):
        return ", ".join("ijklmn"[: len(shape)])

    def ranges(shape):
        return ", ".join(f"{v} in 0:{n}" for v, n in zip("ijklmn", shape, strict=False))

    shorter = (result[0] - shift, *result[1:])
    shifted = point(result).replace("i", f"i + {shift}", 1) if shift else point(result)
    text = f"""
def f(float({", ".join(map(str, source))}) S, float({", ".join(map(str, result))}) R)
    -> (float({", ".join(map(str, source))}) Z, float({", ".join(map(str, shorter))}) Y) {{
  Z({point(source)}) = S({point(source)}) * 2.0 where {ranges(source)}
  Y({point(result)}) = R({shifted}) + 1.0 where {ranges(shorter)}
}}"""
    pool = Pool()
    draft = draft_with_views(text, pool, R=("S", source))
    definition = solve_views(drop_units(draft, pool), pool, Sizes()).definition("f")
    x = np.arange(product, dtype=np.float32)
    checked = check(parse(str(definition)))
    made = evaluate(checked, {"S": x.reshape(checked.tensors["S"].shape)})
    np.testing.assert_array_equal(made["Z"].ravel(), x * 2)
    np.testing.assert_array_equal(made["Y"].ravel(), x.reshape(result)[shift:].ravel() + 1)
