from __future__ import annotations

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.errors import TcError
from tcfuse.tc.ast import (
    Access,
    AssignKind,
    Binary,
    Call,
    Cast,
    Comprehension,
    Const,
    Def,
    Expr,
    Let,
    Param,
    Range,
    Select,
    Unary,
    Var,
    walk,
)
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.lexer import KEYWORDS, TYPES, tokenize
from tcfuse.tc.parser import parse, parse_expr, parse_file
from tcfuse.tc.unparse import unparse, unparse_expr
from tcfuse.types import DType, TensorType

SOFTMAX = """
def Softmax(float(N, 2*K + 1) X) -> (Y, Max, float16(N) Sum) {
  Max(i) max=! X(i, j)
  Sum(i) +=! exp(X(i, j) - Max(i))
  Y(i, j) = e / Sum(i) where i in 0:N, e = exp(X(i, j) - Max(i)), exists X(i, j)
}
"""

RESERVED = {*BUILTINS, *KEYWORDS, *TYPES}
names = st.from_regex(r"[a-z_][a-z0-9_]{0,3}", fullmatch=True).filter(
    lambda name: name not in RESERVED
)
tensor_names = st.from_regex(r"[A-Z][a-z0-9]{0,2}", fullmatch=True)
literals = st.one_of(
    st.integers(-(2**64), 2**64),
    st.booleans(),
    st.floats(allow_nan=False),
    st.just(math.nan),
).map(Const)


def operations(operands: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    binary = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||"]
    calls = [name for name, builtin in BUILTINS.items() if builtin.arity]
    return st.one_of(
        st.builds(Access, tensor_names, st.lists(operands, max_size=3).map(tuple)),
        st.builds(Unary, st.sampled_from("-!"), operands),
        st.builds(Binary, st.sampled_from([*binary, "min", "max"]), operands, operands),
        st.builds(Cast, st.sampled_from(DType), operands),
        st.builds(Select, operands, operands, operands),
        st.sampled_from(calls).flatmap(
            lambda name: st.tuples(*[operands] * BUILTINS[name].arity).map(
                lambda arguments: Call(name, arguments)
            )
        ),
    )


expressions = st.recursive(st.one_of(names.map(Var), literals), operations, max_leaves=8)
sizes = st.one_of(st.integers(0, 99), names, st.builds("{} + 2*{}".format, names, names))
types = st.builds(TensorType, st.sampled_from(DType), st.lists(sizes, max_size=3).map(tuple))
statements = st.builds(
    Comprehension,
    tensor_names,
    st.lists(names, max_size=3).map(tuple),
    st.sampled_from(AssignKind),
    expressions,
    st.lists(st.builds(Range, names, expressions, expressions), max_size=2).map(tuple),
    st.lists(st.builds(Let, names, expressions), max_size=2).map(tuple),
    st.lists(expressions, max_size=1).map(tuple),
    st.none() | st.builds(Access, names, st.lists(expressions, max_size=2).map(tuple)),
)
definitions = st.builds(
    Def,
    names,
    st.lists(st.builds(Param, tensor_names, types), max_size=3).map(tuple),
    st.lists(st.builds(Param, tensor_names, st.none() | types), max_size=3).map(tuple),
    st.lists(statements, max_size=3).map(tuple),
)


@settings(deadline=None, max_examples=60)
@given(definitions)
def test_parse_reads_what_unparse_prints(definition: Def) -> None:
    assert parse(unparse(definition)) == definition


@settings(deadline=None, max_examples=60)
@given(expressions)
def test_parse_expr_reads_what_unparse_expr_prints(expr: Expr) -> None:
    assert parse_expr(unparse_expr(expr)) == expr


def test_softmax(golden) -> None:
    golden(unparse(parse(SOFTMAX)), "tc")


def test_long_where_clauses_get_a_line_each(golden) -> None:
    lets = ", ".join(f"t{k} = exp(X(i)) * {k}" for k in range(6))
    text = f"def f(float(N) X) -> (Y) {{ Y(i) = t5 where {lets}, i in 0:N }}"
    golden(unparse(parse(text)), "tc")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("-3%2+4*5+7-a", "-3 % 2 + 4 * 5 + 7 - a"),
        ("a+(b+c)", "a + (b + c)"),
        ("(a+b)+c", "a + b + c"),
        ("a-(b-c)*d", "a - (b - c) * d"),
        ("(a?b:c)?d:(e?f:g)", "(a ? b : c) ? d : e ? f : g"),
        ("a?b?c:d:e", "a ? b ? c : d : e"),
        ("!(a&&b)||c==d", "!(a && b) || c == d"),
        ("(a<b)==(c<d)", "a < b == (c < d)"),
        ("-(-a)", "--a"),
        ("-(3)+-3", "-(3) + -3"),
        ("min(a,max(b,c+1))", "min(a, max(b, c + 1))"),
        ("-inf()+nan()", "-inf() + nan()"),
        ("float32(half(x))", "float(float16(x))"),
        ("0x10+1e3+.5+3.+3E-5", "16 + 1000.0 + 0.5 + 3.0 + 3e-05"),
        ("true?C():false", "true ? C() : false"),
    ],
)
def test_expressions_print_with_the_fewest_brackets(text: str, printed: str) -> None:
    assert unparse_expr(parse_expr(text)) == printed


def test_tokens_of_a_mixed_line() -> None:
    tokens = tokenize("min min+max 1.4 .3 3 3. # comment\n3e-3 .5e-7 3E-5 foobar maximum max=!")
    assert [t.text for t in tokens] == [
        *["min", "min", "+", "max", "1.4", ".3", "3", "3."],
        *["3e-3", ".5e-7", "3E-5", "foobar", "maximum", "max=!", ""],
    ]
    assert [t.kind for t in tokens[-4:]] == ["name", "name", "max=!", "end"]


def test_names_may_begin_like_literals_and_keywords() -> None:
    assert parse_expr("infinity + nano + inner + truest") == parse_expr(
        "((infinity + nano) + inner) + truest"
    )


def test_newlines_mean_nothing() -> None:
    assert parse(SOFTMAX.replace(" ", "\n")) == parse(SOFTMAX)


def test_statements_need_no_separator() -> None:
    body = parse("def f(float A) -> (B, C) { B = A C = B + A() C += 1 }").body
    assert [s.tensor for s in body] == ["B", "C", "C"]
    assert body[1].value == Binary("+", Access("B", ()), Access("A", ()))


def test_an_index_hides_a_tensor_of_the_same_name() -> None:
    (statement,) = parse("def f(float(N) X, float i) -> (Y) { Y(i) = X(i) }").body
    assert statement.value == Access("X", (Var("i"),))


def test_an_equivalent_statement_is_kept_and_printed() -> None:
    text = "def f(float(N) X) -> (Y) { Y(i) = X(i) <=> g(X, i + 1) where i in 0:N }"
    (statement,) = parse(text).body
    assert statement.equivalent == parse_expr("g(X(), i + 1)")
    assert "Y(i) = X(i) <=> g(X(), i + 1) where i in 0:N" in unparse(parse(text))


def test_spans_cover_their_text() -> None:
    text = "a + F(b * (c - 1), d) ? -(e) : -3 < (x) || float(y) == exp(inf())"
    for node in walk(parse_expr(text)):
        assert node.span is not None
        assert parse_expr(text[node.span.start : node.span.end]) == node


@pytest.mark.parametrize(
    "text",
    [
        " + ".join(["x"] * 5000),
        "exp(" * 5000 + "x" + ")" * 5000,
        "a ? b : " * 5000 + "c",
        "-" * 5000 + "x",
        "x + (" * 5000 + "x + x" + ")" * 5000,
    ],
    ids=["left", "calls", "ternaries", "signs", "right"],
)
def test_depth_is_no_limit(text: str) -> None:
    assert unparse_expr(parse_expr(text)) == text


def test_parsing_is_fast() -> None:
    start = time.process_time()
    for _ in range(200):
        parse(SOFTMAX)
    # 600 statements; a quarter of a second where this was written.
    assert time.process_time() - start < 2.0


def test_a_file_holds_several_definitions() -> None:
    assert [d.name for d in parse_file("def f() -> () {} def g() -> () {}")] == ["f", "g"]


def test_literals_differ_from_equal_python_values() -> None:
    assert len({Const(1), Const(1.0), Const(True), Const(-0.0), Const(0.0), Const(0)}) == 6
    assert Const(math.nan) == Const(float("nan"))


ERRORS = {
    "braces_without_parameters": "def f{}",
    "unknown_character": "def f(float(N) X) -> (Y) {\n  Y(i) = X(i $ 2)\n}",
    "no_assignment": "def f(float(N) X) -> (Y) { Y(i) X(i) }",
    "unknown_type": "def f(foo(N) X) -> (Y) {}",
    "float_size": "def f(float(1.5) X) -> (Y) {}",
    "quotient_size": "def f(float(N/2) X) -> (Y) {}",
    "type_as_size": "def f(float(float) X) -> (Y) {}",
    "expression_on_the_left": "def f(float(N) X) -> (Y) { Y(i+1) = X(i) }",
    "number_on_the_left": "def f(float(N) X) -> (Y) { Y(0) = X(0) }",
    "text_ends": "def f(float(N) X) -> (Y) { Y(i) = X(i",
    "tuple": "def f(float(N) X) -> (Y) { Y(i) = (X(i), 3) }",
    "ternary_without_other": "def f(float(N) X) -> (Y) { Y(i) = i ? X(i) }",
    "range_without_end": "def f(float(N) X) -> (Y) { Y(i) = X(i) where i in 0 }",
    "clause": "def f(float(N) X) -> (Y) { Y(i) = X(i) where 3 }",
    "min_of_three": "def f(float(N) X) -> (Y) { Y(i) = min(X(i), 1, 2) }",
    "call_arity": "def f(float(N) X) -> (Y) { Y(i) = atan2(X(i)) }",
    "call_without_arguments": "def f(float(N) X) -> (Y) { Y(i) = exp() }",
    "bare_infinity": "def f(float(N) X) -> (Y) { Y(i) = X(i) + inf }",
    "two_definitions": "def f() -> () {} def g() -> () {}",
    "untyped_parameter": "def f(X) -> (Y) {}",
    "missing_operand": "def f(float(N) X) -> (Y) { Y(i) = X(i) * * 2 }",
    "keyword_as_name": "def f(float(N) min) -> (Y) {}",
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str, golden) -> None:
    with pytest.raises(TcError) as error:
        parse(ERRORS[name], "f.tc")
    golden(error.value, "txt")


def test_a_name_is_defined_once_in_a_file() -> None:
    with pytest.raises(TcError, match="'f' is defined twice"):
        parse_file("def f() -> () {} def f() -> () {}")
