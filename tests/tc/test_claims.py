"""What the language reference says, sentence by sentence, where no other test says it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcfuse.errors import TcError
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.parser import parse, parse_expr, parse_file
from tcfuse.tc.sema import check
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import DType

X = np.random.default_rng(11).normal(size=(4, 6)).astype(np.float32)


def checked(params: str, body: str, returns: str = "Y") -> CheckedDef:
    return check(parse(f"def f({params}) -> ({returns}) {{ {body} }}"), affine=False)


def run(params: str, body: str, **inputs: Any) -> np.ndarray:
    return evaluate(checked(params, body), inputs)["Y"]


def code(params: str, body: str, returns: str = "Y", **inputs: Any) -> str:
    with pytest.raises(TcError) as error:
        evaluate(checked(params, body, returns), inputs)
    return error.value.code


# Grammar


def test_lists_may_be_empty() -> None:
    assert parse_file("") == ()
    (definition,) = parse_file("def f() -> () {}")
    assert (definition.params, definition.returns, definition.body) == ((), (), ())
    assert checked("float() A", "Y = A").tensors["A"].shape == ()


def test_clauses_come_in_any_order_and_number() -> None:
    body = "Y(i) = s where exists X(i, 0), s = t + 1, t = 2, i in 0:N, exists X(i, 1)"
    assert code("float(N, K) X", body) == "TC24"  # s uses t, which comes later
    y = run("float(N, K) X", body.replace("s = t + 1, t = 2", "t = 2, s = t + 1"), X=X)
    assert y.tolist() == [3] * 4


@pytest.mark.parametrize(
    ("text", "bracketed"),
    [
        ("a ? b : c || d", "a ? b : (c || d)"),
        ("a || b && c", "a || (b && c)"),
        ("a && b < c", "a && (b < c)"),
        ("a < b + c", "a < (b + c)"),
        ("a < b == c >= d", "((a < b) == c) >= d"),
        ("a - b + c * d / e % f", "(a - b) + (((c * d) / e) % f)"),
        ("-a * !b", "(-a) * (!b)"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
    ],
)
def test_precedence(text: str, bracketed: str) -> None:
    assert parse_expr(text) == parse_expr(bracketed)


@pytest.mark.parametrize("left", ["Y(0)", "Y(i + 1)", "Y(2*i)", "Y(X(i))"])
def test_only_names_stand_on_the_left(left: str) -> None:
    with pytest.raises(TcError) as error:
        parse(f"def f(float(N) X) -> (Y) {{ {left} = X(i) }}")
    assert error.value.code == "TC02"


# Types


@pytest.mark.parametrize("kind", DType)
def test_every_type_can_be_cast_to_every_other(kind: DType) -> None:
    for target in DType:
        found = checked(f"{kind.tc}(N) X", f"Y(i) = {target.tc}(X(i))")
        assert found.tensors["Y"].dtype is target


def test_comparisons_are_boolean() -> None:
    assert checked("float(N) X", "Y(i) = X(i) < 1").tensors["Y"].dtype is DType.BOOL


def test_modulo_has_the_sign_of_the_divisor() -> None:
    a, b = np.array([5.5, -5.5, 5.5, -5.5, 4.0]), np.array([3.0, 3.0, -3.0, -3.0, 2.0])
    y = run("double(N) A, double(N) B", "Y(i) = A(i) % B(i)", A=a, B=b)
    assert y.tolist() == [2.5, 0.5, -0.5, -2.5, 0.0]
    y = run("int32(N) A", "Y(i) = A(i) % 3 - A(i) % (0 - 3)", A=np.array([5, -5], np.int32))
    assert y.tolist() == [2 + 1, 1 + 2]


def test_sizes_and_indices_are_values() -> None:
    y = run("float(N, K) X", "Y(i) = i * N + K / 2 where i in 0:N", X=X)
    assert y.tolist() == [3, 7, 11, 15]


def test_half_precision_is_computed_in_float() -> None:
    for kind in ("float16", "half", "bfloat16"):
        found = checked(f"{kind}(N) X", "Y(i) = X(i) Z(i) = X(i) * 2", "Y, Z")
        assert found.tensors["Y"].dtype.is_half
        assert found.tensors["Z"].dtype is DType.FLOAT32


def test_floats_of_a_byte_are_computed_in_float() -> None:
    for kind in ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"):
        params = f"{kind}(N) X, half(N) H, bool(N) C"
        found = checked(
            params, "Y(i) = X(i) Z(i) = X(i) * 2 W(i) = C(i) ? X(i) : H(i)", "Y, Z, W"
        )
        assert found.tensors["Y"].dtype.tc == kind
        assert found.tensors["Z"].dtype is DType.FLOAT32
        assert found.tensors["W"].dtype is DType.FLOAT32


def test_integers_of_less_than_a_byte_are_computed_in_int32() -> None:
    for kind in ("int4", "uint4", "int2", "uint2"):
        body = "Y(i) = X(i) Z(i) = X(i) * 2 W(i) max=! X(i) + 0 V max=! X(i)"
        found = checked(f"{kind}(N) X", body, "Y, Z, W, V")
        assert found.tensors["Y"].dtype.tc == kind
        assert {found.tensors[name].dtype for name in "ZWV"} == {DType.INT32}
        assert code(f"{kind}(N) X", "Y max=! X(i)", f"{kind} Y") == "TC17"


def test_a_float_of_a_byte_that_is_too_large_is_infinite_or_nan() -> None:
    x = np.float32([1.0625, 1e6, -1e6])
    y = run("float(N) X", "Y(i) = float8e5m2(X(i))", X=x)
    assert y.tolist() == [1, np.inf, -np.inf]
    y = run("float(N) X", "Y(i) = float8e4m3fn(X(i))", X=x)
    assert y[0] == 1
    assert np.isnan(y[1:]).all()


# Reductions


def test_the_order_of_loops() -> None:
    """Indices, then the variables of range clauses, then the others by first appearance."""
    params = "float(A, B, C, D) X"
    found = checked(params, "Y(d) +=! X(a, b, c, d) * c where b in 0:B, exists X(a, b, c, d)")
    assert [r.name for r in found.statements[0].ranges] == ["d", "b", "a", "c"]
    assert found.statements[0].reduction == ("b", "a", "c")


@pytest.mark.parametrize("operator", ["+=!", "*=!", "min=!", "max=!"])
def test_a_reset_without_a_reduction_is_an_assignment(operator: str) -> None:
    assert np.array_equal(run("float(N, K) X", f"Y(i, j) {operator} X(i, j)", X=X), X)


@pytest.mark.parametrize("kind", [d for d in DType if d is not DType.BOOL])
def test_identities(kind: DType) -> None:
    x = np.zeros((3, 0), kind.numpy)
    low, high = (-np.inf, np.inf) if kind.is_float else kind.compute.limits
    for operator, identity in {"+=!": 0, "*=!": 1, "min=!": high, "max=!": low}.items():
        y = run(f"{kind.tc}(N, K) X", f"Y(i) {operator} X(i, j)", X=x)
        assert (y == identity).all()


def test_exists_makes_reduction_variables() -> None:
    assert code("float(N, K) X", "Y(i) = 2 where exists X(i, k)") == "TC20"
    assert run("float(N, K) X", "Y(i) +=! 1 where exists X(i, k)", X=X).tolist() == [6] * 4


# Where clauses


def test_names_of_a_statement_end_with_it() -> None:
    body = "T(i) = t where t = X(i, 0) Y(i) = T(i) + t where t = X(i, 1)"
    np.testing.assert_allclose(run("float(N, K) X", body, X=X), X[:, 0] + X[:, 1], rtol=1e-6)
    assert code("float(N, K) X", "T(i) = t where t = X(i, 0) Y(i) = T(i) + t") == "TC20"


def test_a_let_is_no_tensor_and_cannot_be_assigned() -> None:
    assert code("float(N) X", "Y(i) = X(i) where Y = 2") == "TC23"
    assert code("float(N) X", "Y(i) = t where t = X(i) t(i) = X(i)") == "TC23"


def test_ranges_use_sizes_and_lets() -> None:
    y = run("float(N, K) X", "Y(i) = X(0, i) where i in n - 1:K - n, n = N - 2", X=X)
    assert np.array_equal(y, X[0, 1:4])


# Accesses


def test_any_integer_is_a_subscript() -> None:
    index = np.array([2.7, 0.2, 3.9], np.float32)
    table = {"X": X, "B": index}
    y = run("float(N, K) X, float(M) B", "Y(i) = X(int32(B(i)), i % 2 + i / 2)", **table)
    assert np.array_equal(y, X[[2, 0, 3], [0, 1, 1]])
    y = run("float(N, K) X", "Y(i) = X(i > 2 ? 0 : i, max(i - 3, 0)) where i in 0:5", X=X)
    assert np.array_equal(y, X[[0, 1, 2, 0, 0], [0, 0, 0, 0, 1]])


def test_a_look_up() -> None:
    rows = np.array([[1, 3], [0, 0]], np.int32)
    body = "Y(b, d) +=! X(I(b, k), d)"
    y = run("float(E, D) X, int32(B, L) I", body, X=X, I=rows)
    np.testing.assert_allclose(y, X[rows].sum(1), rtol=1e-6)
    assert code("float(E, D) X, int32(B, L) I", body, X=X, I=rows + 2) == "TC47"


def test_strides_are_honoured() -> None:
    spread = np.repeat(np.repeat(X, 2, 0), 3, 1)[::2, ::3]
    for x in (spread, X[::-1], np.asfortranarray(X), np.broadcast_to(X[0], (4, 6))):
        y = run("float(N, K) X", "Y(j, i) = X(i, j) * 2", X=x)
        assert np.array_equal(y, x.T * 2)


# Ranges


def test_the_variables_of_one_round_do_not_see_each_other() -> None:
    """``i`` from A and ``j`` from D at once, so that C is left to be checked."""
    for body in ("Y(i) +=! A(i) * C(i + j) * D(j)", "Y(i) +=! C(i + j) * D(j) * A(i)"):
        found = checked("float(N) A, float(M) C, float(K) D", body)
        shown = [f"{r.name} {unparse_expr(r.high)}" for r in found.statements[0].ranges]
        assert sorted(shown) == ["i N", "j K"]
        assert [unparse_expr(c) for c in found.preconditions] == ["K + N <= M + 1"]


def test_a_range_that_may_be_negative_is_looked_at_in_a_call() -> None:
    body = "Y(i) = X(i, 0) where i in 3:N"
    assert run("float(N, K) X", body, X=X).shape == (1,)
    assert run("float(N, K) X", body, X=X[:3]).shape == (0,)
    assert code("float(N, K) X", body, X=X[:2]) == "TC30"


def test_an_empty_sum_is_no_negative_extent() -> None:
    y = run("float(N, K) X", "Y(i) +=! X(i, j) where j in 8:K", X=X)
    assert y.tolist() == [0] * 4


@pytest.mark.parametrize(
    ("high", "value"),
    [
        ("N * K", 24),
        ("(N + 1) * (K - 1)", 25),
        ("K / N", 1),
        ("K % N + 1", 3),
        ("min(N, K) * 2", 8),
        ("(K - 1) / 2 + max(N, 3)", 6),
        ("n where n = N * N", 16),
    ],
)
def test_extents_are_anything_computed_from_sizes(high: str, value: int) -> None:
    high, _, let = high.partition(" where ")
    body = f"Y(i) = i * 2 where i in 0:{high}{', ' if let else ''}{let}"
    assert run("float(N, K) X", body, X=X).tolist() == list(range(0, 2 * value, 2))


def test_a_division_of_sizes_by_zero_is_an_error() -> None:
    body = "Y(i) = 1 where i in 0:N / K"
    assert code("float(N, K) X", body, X=X[:, :0]) == "TC46"
    assert code("float(N, K) X", "Y(i) = 1 where i in 0:N / 0", X=X) == "TC46"


# Calls


def test_sizes_are_bound_from_the_left() -> None:
    params, body = "float(N) A, float(N) B", "Y(i) = A(i) + B(i)"
    with pytest.raises(TcError, match="dimension 0 of 'B' is 3, but N is 2 by dimension 0 of"):
        run(params, body, A=np.ones(2), B=np.ones(3))


def test_a_size_that_is_a_sum_is_solved() -> None:
    y = run("float(N + 2) A", "Y(i) = A(i + 2) where i in 0:N", A=np.arange(5.0))
    assert y.tolist() == [2, 3, 4]


def test_a_given_size_has_to_agree() -> None:
    found = checked("float(N) A", "Y(i) = A(i)")
    with pytest.raises(TcError, match="dimension 0 of 'A' is 2, but N is 3 as given"):
        evaluate(found, {"A": np.ones(2)}, {"N": 3})


# Files


def test_the_statement_before_may_be_a_definition() -> None:
    text = "def f(float A) -> (Y) { Y = A }\n# between\ndef g(float A) -> (Y) { Y = A * 2 }"
    assert [d.name for d in parse_file(text)] == ["f", "g"]
