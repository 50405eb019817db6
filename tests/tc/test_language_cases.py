"""The parser and sema tests of the 2019 language; what lexes is in ``test_lexer``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tcfuse.tc.ast import (
    Access,
    AssignKind,
    Binary,
    Call,
    Cast,
    Comprehension,
    Const,
    Expr,
    Param,
    Select,
    Var,
    walk,
)
from tcfuse.tc.canonical import canonical
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.examine import examine
from tcfuse.tc.format import comments, format_text
from tcfuse.tc.parser import parse, parse_expr, parse_file
from tcfuse.tc.sema import check
from tcfuse.tc.typing import Weak, type_of
from tcfuse.tc.unparse import unparse
from tcfuse.types import DType, TensorType

Test = Callable[[], None]
CASES: dict[str, Test] = {}

CONVOLUTION = """
def conv(float(B, IP, H, W) I, float(OP, IP, KH, KW) W1, float(OP) bias) -> (O) {
  O(b, op, h, w) +=! I(b, ip, h + kh, w + kw) * W1(op, ip, kh, kw)
  O(b, op, h, w) = O(b, op, h, w) + bias(op)
}
"""


def case(test: Test) -> Test:
    CASES[test.__name__] = test
    return test


def statement(text: str) -> Comprehension:
    (found,) = parse(f"def f(float(N) X) -> (O) {{ {text} }}").body
    return found


def checked(body: str, returns: str = "O", params: str = "float(N, K) X") -> CheckedDef:
    return check(parse(f"def f({params}) -> ({returns}) {{ {body} }}"), affine=False)


def codes(text: str) -> list[str]:
    return [finding.code for finding in examine(text) if finding.severity != "note"]


@case
def precedence() -> None:
    def binary(operator: str, left: Expr, right: Expr) -> Expr:
        return Binary(operator, left, right)

    modulo = binary("%", Const(-3), Const(2))
    product = binary("*", Const(4), Const(5))
    total = binary("+", binary("+", modulo, product), Const(7))
    assert parse_expr("-3%2+4*5+7-a") == binary("-", total, Var("a"))


@case
def a_call_of_four_arguments() -> None:
    found = parse_expr("f(0, 1, 2 + 3, 4)")
    three = Binary("+", Const(2), Const(3))
    assert found == Access("f", (Const(0), Const(1), three, Const(4)))


@case
def a_ternary_nests_to_the_right() -> None:
    a, b, c, d, e = map(Var, "abcde")
    assert parse_expr("a ? b : c ? d : e") == Select(a, b, Select(c, d, e))


@case
def sums_associate_to_the_left_and_know_their_place() -> None:
    text = "a+b+c"
    found = parse_expr(text)
    assert found == Binary("+", Binary("+", Var("a"), Var("b")), Var("c"))
    places = [(n.span.start, n.span.end) for n in walk(found) if n.span]
    assert [text[a:b] for a, b in places] == ["a+b+c", "a+b", "a", "b", "c"]


@case
def a_comprehension_with_a_reset() -> None:
    found = statement("fun(m, n) +=! X(m, k) * X(k, n)")
    assert (found.tensor, found.indices) == ("fun", ("m", "n"))
    assert found.assign is AssignKind.ADD_RESET


@case
def the_statement_of_a_convolution() -> None:
    text = "O(b, op, h, w) +=! I(b, ip, h + kh, w + kw) * W1(op, ip, kh, kw)"
    found = statement(text)
    assert isinstance(found.value, Binary)
    assert found.value.left == Access("I", tuple(map(parse_expr, ("b", "ip", "h+kh", "w+kw"))))


@case
def the_definition_of_a_convolution() -> None:
    found = parse(CONVOLUTION)
    assert unparse(found) == CONVOLUTION.lstrip()
    first = TensorType(DType.FLOAT32, ("B", "IP", "H", "W"))
    assert found.params[0] == Param("I", first)
    assert found.returns == (Param("O", None),)


@case
def an_output_without_dimensions() -> None:
    found = checked("O +=! X(i, j)")
    assert found.tensors["O"] == TensorType(DType.FLOAT32, ())
    assert checked("O() +=! X(i, j)").definition == found.definition


@case
def what_is_known_of_a_convolution() -> None:
    found = check(parse(CONVOLUTION))
    assert found.sizes == ("B", "IP", "H", "W", "OP", "KH", "KW")
    assert {name: str(kind) for name, kind in found.tensors.items()} == {
        "I": "float(B, IP, H, W)",
        "W1": "float(OP, IP, KH, KW)",
        "bias": "float(OP)",
        "O": "float(B, OP, H - KH + 1, W - KW + 1)",
    }
    assert [s.reduction for s in found.statements] == [("ip", "kh", "kw"), ()]
    value = found.definition.body[0].value
    assert type_of(value, found.tensors) is DType.FLOAT32
    # An index has no type of its own: it takes that of what it meets.
    assert type_of(Var("b"), found.tensors) is Weak.INT
    assert not found.inout


@case
def functions_of_functions() -> None:
    found = checked("O(i, j) = pow(exp(X(i, j)), fmax(X(i, j), 2)) + sqrt(double(X(i, j)))")
    assert found.tensors["O"].dtype is DType.FLOAT64
    (value,) = (s.value for s in found.definition.body)
    assert sum(isinstance(node, Call) for node in walk(value)) == 4


@case
def a_subscript_that_is_cast() -> None:
    found = checked("O(i) = X(int32(B(i)), 0)", params="float(N, K) X, float(M) B")
    assert found.tensors["O"].shape == ("M",)
    (value,) = (s.value for s in found.definition.body)
    assert isinstance(value, Access)
    assert isinstance(value.subscripts[0], Cast)


@case
def a_maximum_over_what_an_index_array_names() -> None:
    found = checked("O(i) max=! X(I(i, j), j)", params="float(N, K) X, int32(M, K) I")
    assert found.statements[0].reduction == ("j",)
    assert str(found.tensors["O"]) == "float(M)"


@case
def an_equivalent_statement() -> None:
    text = "O(i) +=! X(i, j) <=> gemv(X, i) where j in 0:K"
    found = checked(text)
    (body,) = found.definition.body
    assert body.equivalent == Access("gemv", (Access("X", ()), Var("i")))
    assert text.replace("(X, i)", "(X(), i)") in unparse(found.definition)
    plain = checked(text.replace(" <=> gemv(X, i)", ""))
    assert [s.ranges for s in plain.statements] == [s.ranges for s in found.statements]


@case
def a_reduction_variable_without_a_reduction() -> None:
    assert codes("def f(float(N, K) X) -> (O) { O(i) = X(i, j) }") == ["TC20"]


def uninitialised(operator: str) -> None:
    text = f"def f(float(N, K) X) -> (O) {{ O(i) {operator} X(i, j) }}"
    (finding,) = examine(text)
    assert (finding.code, finding.severity) == ("TC19", "warning")
    assert finding.hint == f"write '{operator}!' to start from the neutral element"
    assert check(parse(text), affine=False).inout == ("O",)


@case
def an_uninitialised_sum() -> None:
    uninitialised("+=")


@case
def an_uninitialised_product() -> None:
    uninitialised("*=")


@case
def an_uninitialised_maximum() -> None:
    uninitialised("max=")


@case
def an_uninitialised_minimum() -> None:
    uninitialised("min=")


def initialised(body: str) -> None:
    text = f"def f(float(N, K) X) -> (O) {{ {body} }}"
    assert codes(text) == []
    assert check(parse(text), affine=False).inout == ()


@case
def initialised_by_a_reset() -> None:
    initialised("O(i) +=! X(i, j)")


@case
def initialised_by_an_assignment() -> None:
    initialised("O(i) = 0.0 where exists X(i, 0) O(i) += X(i, j)")


@case
def initialised_by_another_reset() -> None:
    initialised("O(i) +=! X(i, j) O(i) max= X(i, j)")


@case
def canonical_texts_of_matrix_products() -> None:
    texts = (
        "def matmul(float(M, N) A, float(N, K) B) -> (O) { O(m, k) +=! A(m, n) * B(n, k) }",
        "def mm(float(X1, X2) I, float(X2, X3) J) -> (C) {\n C(i, j) +=! I(i, r) * J(r, j)\n}",
    )
    first, second = (canonical(parse(text)) for text in texts)
    assert first == second


@case
def a_formatted_text_means_the_same() -> None:
    once = format_text(CONVOLUTION.replace("\n  ", " "))
    assert once == CONVOLUTION.lstrip()
    assert parse_file(once) == parse_file(CONVOLUTION)


@case
def comments_are_no_words_and_survive() -> None:
    text = CONVOLUTION.replace("{\n", "{  # a\n  # b\n").replace("+ bias", "# c\n + bias")
    assert parse_file(text) == parse_file(CONVOLUTION)
    assert comments(format_text(text)) == ["# a", "# b", "# c"]


def test_every_case_of_the_original_is_here() -> None:
    in_test_lexer = 3  # the words of a line, each of them shown, a range of several lines
    assert len(CASES) + in_test_lexer == 27


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    CASES[name]()


def test_numbers_in_a_definition_are_float32_where_they_meet_one() -> None:
    found = checked("O(i) = X(i, 0) * 1e-3")
    assert found.tensors["O"].dtype is DType.FLOAT32
