from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.errors import TcError
from tcfuse.tc.binding import number
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.linear import Linear, extreme, floor_div, linear_of, nonnegative
from tcfuse.tc.parser import parse, parse_expr
from tcfuse.tc.sema import check
from tcfuse.tc.unparse import unparse_expr


def checked(params: str, body: str, returns: str = "O") -> CheckedDef:
    return check(parse(f"def f({params}) -> ({returns}) {{ {body} }}"), affine=False)


def ranges(definition: CheckedDef, statement: int = -1) -> str:
    found = definition.statements[statement].ranges
    return ", ".join(f"{r.name} in {unparse_expr(r.low)}:{unparse_expr(r.high)}" for r in found)


def preconditions(definition: CheckedDef) -> list[str]:
    return [unparse_expr(p) for p in definition.preconditions]


WINDOW = (
    "h in 0:(H - KH - 3 * ((W - KW) / 2)) / 2 + 1, w in 0:(W - KW) / 2 + 1, "
    "kh in 0:KH, kw in 0:KW"
)

# Parameters, statement, ranges: the cases of the original's range inference tests.
TABLE = {
    "copy": ("float(M, N) I", "O(i, j) = I(i, j)", "i in 0:M, j in 0:N"),
    "transpose": (
        "float(A, B, C, D) I",
        "O(i, j, k, l) = I(l, k, j, i)",
        "i in 0:D, j in 0:C, k in 0:B, l in 0:A",
    ),
    "scale": ("float(N) I", "O(i) = I(123*i)", "i in 0:(N + 122) / 123"),
    "shift_back": ("float(N) I", "O(i) = I(i - 1)", "i in 1:N + 1"),
    "shift_forth": ("float(N) I", "O(i) = I(i + 5)", "i in -5:N - 5"),
    "reverse": ("float(N) I", "O(i) = I(10 - i)", "i in 11 - N:11"),
    "stride": ("float(N) I", "O(i) = I(2*i)", "i in 0:(N + 1) / 2"),
    "pairs": ("float(N) I", "O(i) = I(2*i) + I(2*i + 1)", "i in 0:N / 2"),
    "pairs_with_range": (
        "float(N) I",
        "O(i) +=! I(2*i + k) where k in 0:2",
        "i in 0:N / 2, k in 0:2",
    ),
    "two_tensors": ("float(N) A, float(M) B", "O(i) = A(i) + B(i)", "i in 0:min(N, M)"),
    "three_tensors": (
        "float(N) A, float(M) B, float(K) C",
        "O(i) = A(i) + B(i) + C(i)",
        "i in 0:min(min(N, M), K)",
    ),
    "window": (
        "float(H, W) I, float(KH, KW) K",
        "O(h, w) +=! I(2*h + 3*w + kh, 2*w + kw) * K(kh, kw)",
        WINDOW,
    ),
    "difference": (
        "float(A, B, C) I",
        "O(i, j, k) = I(j, i + j, k)",
        "i in 0:B - A + 1, j in 0:A, k in 0:C",
    ),
    "numbers_that_fit": (
        "float(10, 19, 10) I",
        "O(i, j) = I(i, i + j, j)",
        "i in 0:10, j in 0:10",
    ),
    "part": ("float(N, M) I", "O(i, j) = I(i, j) where i in 3:N - 1", "i in 3:N - 1, j in 0:M"),
    "rotation": (
        "float(N, M) I",
        "O(i, j) = I(10 + i - j, i + j) where i in 0:10",
        "i in 0:10, j in max(20 - N, 0):min(11, M - 9)",
    ),
    "constant": ("float(N) I", "O(i, j) = 3 where i in 4:8, j in 3:20", "i in 4:8, j in 3:20"),
    "exists": ("float(N) I", "O(i) = 3 where exists I(i)", "i in 0:N"),
    "let": ("float(N) I", "O(i) = I(t) where t = i + 1", "i in -1:N - 1"),
    "let_in_range": ("float(N) I", "O(i) = 1.0 where i in 0:t, t = N - 1", "i in 0:N - 1"),
    "quotient": ("float(N) I", "O(i) = I(i / 2)", "i in 0:2 * N"),
    "data": (
        "float(N) I, int32(M) J",
        "O(i) = I(J(i))",
        "i in 0:M",
    ),
    "guarded": (
        "float(N) I",
        "O(i) = i > 0 ? I(i - 1) : 0 where i in 0:N + 1",
        "i in 0:N + 1",
    ),
    "guarded_alone": (
        "float(N, M) A, float(K, M) B",
        "O(i, k, j) = k == 0 ? A(i, j) : B(i, j) where k in 0:2",
        "i in 0:min(N, K), k in 0:2, j in 0:M",
    ),
    "guarded_beside_a_certain_read": (
        "float(N) A, float(M) B",
        "O(i) = A(i) + (i < M ? B(i) : 0)",
        "i in 0:N",
    ),
    "guarded_sum": (
        "float(N) I",
        "O(i) +=! (k <= i ? I(k) : 0) where i in 0:N",
        "i in 0:N, k in 0:N",
    ),
    "order_of_reductions": (
        "float(A, B) I, float(B, A) J",
        "O(k) +=! I(i, j) * J(j, i) where k in 0:3",
        "k in 0:3, i in 0:A, j in 0:B",
    ),
    "reductions_with_ranges_come_first": (
        "float(A, B) I",
        "O(k) +=! I(i, j) where k in 0:3, j in 0:B",
        "k in 0:3, j in 0:B, i in 0:A",
    ),
}

# Extents that may be negative are looked at when the sizes are known.
NONEMPTY = {
    "window": ["0 <= (H - KH - 3 * ((W - KW) / 2)) / 2 + 1", "0 <= (W - KW) / 2 + 1"],
    "difference": ["A <= B + 1"],
    "part": ["4 <= N"],
    "rotation": ["max(20 - N, 0) <= min(11, M - 9)"],
    "let_in_range": ["1 <= N"],
}


@pytest.mark.parametrize("name", TABLE)
def test_inferred_ranges(name: str) -> None:
    params, body, expected = TABLE[name]
    found = checked(params, body)
    assert ranges(found) == expected
    assert preconditions(found) == NONEMPTY.get(name, [])


def test_convolution_and_its_use() -> None:
    found = checked(
        "float(N, C, H, W) I, float(M, C, KH, KW) W1, float(M) B",
        "T(n, m, h, w) +=! I(n, c, h + kh, w + kw) * W1(m, c, kh, kw) "
        "O(n, m, h, w) = T(n, m, h, w) + B(m)",
    )
    assert ranges(found) == "n in 0:N, m in 0:M, h in 0:H - KH + 1, w in 0:W - KW + 1"
    assert str(found.tensors["O"]) == "float(N, M, H - KH + 1, W - KW + 1)"
    assert found.temporaries == ("T",)


def test_gradient_of_a_convolution() -> None:
    found = checked(
        "float(M, OH) G, float(C, H) I, float(M, C, KH) W",
        "DI(c, h) +=! G(m, h - kh) * W(m, c, kh) DW(m, c, kh) +=! G(m, h - kh) * I(c, h)",
        "DI, DW",
    )
    assert ranges(found, 0) == "c in 0:C, h in KH - 1:OH, m in 0:M, kh in 0:KH"
    assert ranges(found, 1) == "m in 0:M, c in 0:C, kh in H - OH:1, h in 0:H"
    assert str(found.tensors["DI"]) == "float(C, OH - KH + 1)"
    assert [unparse_expr(e) for e in found.origins["DI"]] == ["0", "KH - 1"]


def test_a_tensor_keeps_its_origin() -> None:
    found = checked(
        "float(H) I, float(KH) W",
        "P(h) = I(h - 5) O(h) +=! P(2*h + k) * W(k)",
        "O, P",
    )
    assert ranges(found, 0) == "h in 5:H + 5"
    assert ranges(found, 1) == "h in 3:(H - KH + 1) / 2 + 3, k in 0:KH"
    assert str(found.tensors["O"]) == "float((H - KH + 1) / 2)"


def test_minima_pass_through_a_chain() -> None:
    found = checked(
        "float(A, A1) A0, float(B, B1) B0, float(C, C1) C0",
        "T(i, j) = A0(i, j) + B0(i, j) O(i, j) = T(i, j) + C0(i, j)",
    )
    assert ranges(found) == "i in 0:min(min(A, B), C), j in 0:min(min(A1, B1), C1)"


def test_what_cannot_be_proved_is_a_precondition() -> None:
    found = checked("float(N) B, float(M) C, float(K) D", "O(i) +=! B(i) * C(i + j) * D(j)")
    assert ranges(found) == "i in 0:N, j in 0:K"
    assert preconditions(found) == ["K + N <= M + 1"]
    assert preconditions(checked("float(N) X", "O(i) = X(i) + X(0)")) == ["1 <= N"]


def test_a_declared_shape_is_the_range_of_its_first_statement() -> None:
    found = checked("float(N) X, float(K) W", "O(i) +=! X(i + k) * W(k)", "float(M) O")
    assert ranges(found) == "i in 0:M, k in 0:K"
    assert preconditions(found) == ["K + M <= N + 1"]
    found = checked("float(N) X", "O(i, j) = X(i)", "float(N, 8) O")
    assert ranges(found) == "i in 0:N, j in 0:8"


def test_a_later_statement_stays_inside_the_tensor() -> None:
    found = checked("float(N) X", "O(i) = X(i) O(i) = O(i - 1) + O(i + 1)")
    assert ranges(found) == "i in 1:N - 1"
    assert str(found.tensors["O"]) == "float(N)"


def test_extents_that_are_not_affine_are_refused_on_demand(golden) -> None:
    definition = parse("def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) + B(i) }")
    with pytest.raises(TcError) as error:
        check(definition)
    golden(error.value, "txt")


def test_explicit_ranges_need_no_inference() -> None:
    found = checked("float(N) X", "O(i) = X(5*i*i) where i in 0:N")
    assert ranges(found) == "i in 0:N"


UNSOLVED = {
    "missing_index": ("float(N) I", "O(i, m) = I(i)"),
    "sum": ("float(A, B, C) I", "O(i, j) = I(i + j, i + j, i + j)"),
    "rotation": ("float(N, M) I", "O(i, j) = I(10 + i - j, i + j)"),
    "constant": ("float(N) I", "O(i, j) = 3"),
    "scaled_by_data": ("int32(M) S, float(N) I", "O(i) = I(S(0) * i)"),
}


@pytest.mark.parametrize("name", UNSOLVED)
def test_unsolved(name: str, golden) -> None:
    with pytest.raises(TcError) as error:
        checked(*UNSOLVED[name])
    golden(error.value, "txt")


def test_an_empty_range_is_an_error() -> None:
    with pytest.raises(TcError, match="the range of 'i' is empty: 5 to 3"):
        checked("float(3) A, float(10) B", "O(i) = A(i) + B(i - 5)")


def test_a_read_that_never_fits_is_an_error() -> None:
    with pytest.raises(TcError, match="the subscript i - 1 of 'X' is out of bounds"):
        checked("float(N) X", "O(i) +=! X(i - 1) + X(j) where i in 0:N")


NAMES = ("A", "B", "C")
forms = st.builds(
    lambda factors, constant: sum(
        (Linear.of(n) * f for n, f in zip(NAMES, factors, strict=True)), Linear.of(constant)
    ),
    st.tuples(*[st.integers(-4, 4)] * 3),
    st.integers(-9, 9),
)
compound = st.recursive(
    forms,
    lambda inner: st.one_of(
        st.builds(floor_div, inner, st.integers(1, 6)),
        st.builds(extreme, st.sampled_from(["min", "max"]), st.tuples(inner, inner)),
        st.builds(lambda a, b, f: a + b * f, inner, inner, st.integers(-2, 2)),
    ),
    max_leaves=4,
)
values = st.fixed_dictionaries({name: st.integers(0, 12) for name in NAMES})


def value(form: Linear, sizes: Mapping[str, int]) -> int:
    return number(form.expr, sizes)


@settings(deadline=None, max_examples=100)
@given(compound, values)
def test_printing_and_reading_keep_the_value(form: Linear, sizes: Mapping[str, int]) -> None:
    again = linear_of(parse_expr(str(form)), {})
    assert again is not None
    assert value(again, sizes) == value(form, sizes)


@settings(deadline=None, max_examples=100)
@given(compound)
def test_nothing_false_is_proved(form: Linear) -> None:
    if nonnegative(form):
        for sizes in itertools.product(range(7), repeat=3):
            assert value(form, dict(zip(NAMES, sizes, strict=True))) >= 0


@settings(deadline=None, max_examples=60)
@given(forms, forms, st.integers(1, 5), values)
def test_arithmetic_agrees_with_integers(
    a: Linear, b: Linear, divisor: int, sizes: Mapping[str, int]
) -> None:
    left, right = value(a, sizes), value(b, sizes)
    assert value(a - b, sizes) == left - right
    assert value(floor_div(a, divisor), sizes) == left // divisor
    assert value(extreme("min", (a, b)), sizes) == min(left, right)
    assert value(extreme("max", (a, b)), sizes) == max(left, right)
