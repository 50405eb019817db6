"""Outputs that start from what the caller's buffer holds."""

from __future__ import annotations

import numpy as np
import pytest

from tcfuse.errors import TcError
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

RANDOM = np.random.default_rng(5)


def checked(text: str) -> CheckedDef:
    return check(parse(f"def f{text}"), affine=False)


def warned(found: CheckedDef) -> list[str]:
    return [w.code for w in found.warnings if w.severity == "warning"]


def test_a_matrix_product_in_place() -> None:
    found = checked("(float(M, K) A, float(K, N) B) -> (C) { C(m, n) += A(m, k) * B(k, n) }")
    assert (found.inout, warned(found)) == (("C",), ["TC19"])
    a, b, c = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(4, 2)), RANDOM.normal(size=(3, 2))
    before = c.copy()
    result = evaluate(found, {"A": a, "B": b, "C": c})["C"]
    np.testing.assert_allclose(result, before + a @ b, rtol=1e-12)
    np.testing.assert_array_equal(c, before)


@pytest.mark.parametrize(
    ("operator", "combine"),
    [("+=", np.add), ("*=", np.multiply), ("min=", np.minimum), ("max=", np.maximum)],
)
def test_every_reduction_starts_from_the_old_value(operator: str, combine: np.ufunc) -> None:
    x, y = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=3)
    found = evaluate(
        checked(f"(float(N, K) X) -> (Y) {{ Y(i) {operator} X(i, j) }}"), {"X": x, "Y": y}
    )
    np.testing.assert_allclose(found["Y"], combine(y, combine.reduce(x, 1)), rtol=1e-12)


def test_a_declared_output_may_be_read_before_it_is_written() -> None:
    found = checked("(float(N) X) -> (float(N) Y) { Y(i) = 0.5 * Y(i) + X(i) }")
    assert (found.inout, warned(found)) == (("Y",), ["TC19"])
    x, y = RANDOM.normal(size=(2, 4))
    np.testing.assert_allclose(evaluate(found, {"X": x, "Y": y})["Y"], 0.5 * y + x)


def test_an_output_without_a_type_may_not() -> None:
    with pytest.raises(TcError, match="give it a type in the returns") as error:
        checked("(float(N) X) -> (Y) { Y(i) = 0.5 * Y(i) + X(i) }")
    assert error.value.code == "TC24"


def test_what_no_statement_writes_keeps_its_value() -> None:
    found = checked("(float(N) X) -> (float(N) Y) { Y(i) = Y(i) + X(i) where i in 1:3 }")
    x, y = RANDOM.normal(size=(2, 5))
    expected = np.where([False, True, True, False, False], x + y, y)
    np.testing.assert_array_equal(evaluate(found, {"X": x, "Y": y})["Y"], expected)


def test_another_output_may_read_the_old_value() -> None:
    text = "(float(N) X) -> (float(N) Y, Z) { Z(i) = Y(i) * 2 Y(i) = X(i) }"
    found = evaluate(checked(text), {"X": np.ones(3), "Y": np.arange(3.0)})
    np.testing.assert_array_equal(found["Z"], [0, 2, 4])
    np.testing.assert_array_equal(found["Y"], np.ones(3))


def test_an_output_that_starts_elsewhere() -> None:
    found = checked("(float(N) X) -> (Y) { Y(i) += X(i - 3) }")
    x, y = RANDOM.normal(size=(2, 4))
    np.testing.assert_array_equal(evaluate(found, {"X": x, "Y": y})["Y"], x + y)


def test_only_an_output_gives_the_size() -> None:
    found = checked("(float X) -> (float(N) Y) { Y(i) += X * i }")
    y = evaluate(found, {"X": np.float32(2), "Y": np.ones(3)})["Y"]
    np.testing.assert_array_equal(y, [1, 3, 5])


def test_a_reset_needs_no_old_value() -> None:
    found = checked("(float(N, K) X) -> (Y) { Y(i) +=! X(i, j) Y(i) += X(i, j) }")
    assert (found.inout, warned(found)) == ((), [])


def test_a_temporary_has_no_old_value() -> None:
    with pytest.raises(TcError, match="reduced into before it is written") as error:
        checked("(float(N) X) -> (Y) { T(i) += X(i) Y(i) = T(i) }")
    assert error.value.code == "TC19"


@pytest.mark.parametrize(
    ("y", "code"),
    [
        (None, "TC32"),
        (np.ones(4), "TC36"),
        (np.ones((3, 1)), "TC34"),
        (np.ones(3, int), "TC33"),
    ],
)
def test_the_old_value_has_to_fit(y: np.ndarray | None, code: str) -> None:
    found = checked("(float(N) X) -> (float(N) Y) { Y(i) += X(i) }")
    inputs = {"X": np.ones(3)} if y is None else {"X": np.ones(3), "Y": y}
    with pytest.raises(TcError) as error:
        evaluate(found, inputs)
    assert error.value.code == code


def test_old_values_of_inferred_extents_have_to_fit() -> None:
    found = checked("(float(A) X, float(B) Z) -> (Y) { Y(i) += X(i) + Z(i) }")
    inputs = {"X": np.ones(3), "Z": np.ones(5)}
    assert evaluate(found, {**inputs, "Y": np.ones(3)})["Y"].tolist() == [3, 3, 3]
    with pytest.raises(TcError, match=r"dimension 0 of 'Y' is 5, but min\(A, B\) is 3"):
        evaluate(found, {**inputs, "Y": np.ones(5)})


def test_the_polyhedral_stages_take_none() -> None:
    with pytest.raises(TcError):
        check(parse("def f(float(N) X) -> (Y) { Y(i) += X(i) }"))
