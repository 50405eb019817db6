"""Laid out text means the same, keeps its comments, and is laid out already."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.errors import TcError
from tcfuse.tc.format import comments, format_text
from tcfuse.tc.lexer import tokenize
from tcfuse.tc.parser import parse, parse_file
from tcfuse.tc.unparse import unparse

MESSY = """

# A licence


# softmax
def   softmax(float(N,K) X)->(Y)   {  # body

  # the maximum
  M(i) max=! X(i,j)   # of a row
  # two


  S(i)+=! exp(X(i,j)-M(i)) Y(i,j) = exp( X(i,j) - M(i) )/   # inner
     S(i)   # last

  # at the end

}   # closed
# of the gate
def g(float(N) A,float B) -> (float(N) O, P) { O(i) = i<N&&!(A(i)>0.)?-A(i):- -0x1p3 where
 i in 0:N-1, # a clause
 t=-3e-3,exists A(i)
P = B <=> h(A,(B)) }



def empty() -> () {


}
# the end
"""


def test_messy(golden) -> None:
    golden(format_text(MESSY), "tc")


def test_long_statements_are_broken_at_operators_and_commas(golden) -> None:
    terms = " + ".join(f"X(i + {k}) * W({k})" for k in range(12))
    clauses = ", ".join(f"t{k} = exp(X(i)) * {k}" for k in range(6))
    params = ", ".join(f"float(N, {k}) P{k}" for k in range(9))
    text = f"""def f(float(N) X, float(12) W, {params}) -> (Y, Z, V) {{
      Y(i) = {terms}
      Z(i) = t5 where {clauses}, i in 0:N
      V(i) = t0 where i in 0:N, t0 = {terms}, t1 = max({terms}, 0)
    }}"""
    golden(format_text(text), "tc")


@pytest.mark.parametrize("text", ["", "# only a comment\n", "def f() -> () {\n}\n"])
def test_little_is_left_alone(text: str) -> None:
    assert format_text(text) == text


def test_line_ends_of_other_systems_are_replaced() -> None:
    text = "def f(float(N) X) -> (Y) {\r\n  Y(i) = X(i)  # c\r\n}\r\n"
    assert format_text(text) == text.replace("\r", "")


def test_literals_and_brackets_stay_as_written() -> None:
    text = "def f(float(N) X) -> (Y) {\n  Y(i) = ((X(i)) + 3. - 0x10 * 1e3)\n}\n"
    assert format_text(text) == text


def test_sizes_are_laid_out_like_expressions() -> None:
    text = "def f(float(2*N+1,  N -1) X) -> (Y) {\n  Y(i) = X(2*i, 0 *i)\n}\n"
    expected = text.replace("2*N+1,  N -1", "2*N + 1, N - 1").replace("0 *i", "0 * i")
    assert format_text(text) == expected


def test_a_broken_text_is_an_error_with_its_place() -> None:
    with pytest.raises(TcError, match=r"f\.tc:1:5: error"):
        format_text("def {", "f.tc")


# Statements of every form, to be put together at random.
STATEMENTS = (
    "Y(i) = X(i)",
    "Y(i) += X(i)",
    "S +=! X(i)",
    "S() max=! X(i) where i in 1:N-1",
    "Y(i) = i > 0 && !(X(i) < 0.5) ? -X(i - 1) : float(3) where i in 0:N, exists X(i)",
    "Y(i) = -(-3) - -3. * t % 2 <=> g(X, N) where t = min(i, (N + 1) / 2), u = t",
    "Y(i) = exp(" + "X(i) + " * 20 + "X(i)) where i in 0:N, " + ", ".join(
        f"t{k} = {k}" for k in range(15)
    ),
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Definitions with comments and line breaks in every place where they may stand."""
    statements = draw(st.lists(st.sampled_from(STATEMENTS), max_size=4))
    source = f"def f(float(N) X) -> (Y) {{ {' '.join(statements)} }} def g() -> () {{}}"
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    spaces = (
        " ",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\n\n\n",
        "  # c\n",
        "\n# d\n",
        "\n\n # e \n\n",
        "#\n",
    )
    pieces = [rng.choice(spaces) if rng.random() < 0.3 else ""]
    for token in tokenize(source):
        pieces += [token.text, rng.choice(spaces) if rng.random() < 0.3 else " "]
    return "".join(pieces)


@settings(deadline=None, max_examples=80)
@given(texts())
def test_meaning_and_comments_survive_and_twice_is_once(text: str) -> None:
    once = format_text(text)
    assert parse_file(once) == parse_file(text)
    assert sorted(comments(once)) == sorted(comments(text))
    assert format_text(once) == once
    assert "\n\n\n" not in once
    assert all(line == line.rstrip() for line in once.splitlines())


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(STATEMENTS[:-1]), max_size=4))
def test_printed_definitions_are_laid_out_already(statements: list[str]) -> None:
    body = " ".join(s for s in statements)
    printed = unparse(parse(f"def f(float(N) X) -> (Y) {{ {body} }}"))
    assert format_text(printed) == printed
