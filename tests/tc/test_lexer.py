"""Words of the language, and how the place of each is shown."""

from __future__ import annotations

import pytest

from tcfuse.errors import Span, TcError
from tcfuse.tc.ast import Const
from tcfuse.tc.lexer import ASSIGNMENTS, KEYWORDS, TYPES, tokenize
from tcfuse.tc.parser import parse, parse_expr

MIXED = "min min+max 1.4 .3 3 3.\n3e-3 .5e-7 3E-5 foobar"


def kinds(text: str) -> list[str]:
    return [token.kind for token in tokenize(text)[:-1]]


def test_a_mixed_line() -> None:
    assert [(t.kind, t.text) for t in tokenize(MIXED)] == [
        *[("min", "min"), ("min", "min"), ("+", "+"), ("max", "max")],
        *[("number", text) for text in ("1.4", ".3", "3", "3.", "3e-3", ".5e-7", "3E-5")],
        *[("name", "foobar"), ("end", "")],
    ]


def test_each_word_of_it_is_underlined(golden) -> None:
    spans = [Span(MIXED, token.start, token.end, "f.tc") for token in tokenize(MIXED)]
    golden("\n".join(span.excerpt() for span in spans), "txt")


def test_a_range_of_several_lines_is_underlined(golden) -> None:
    text = "def f(float(N) X) -> (Y) {\n  Y(i) = X(i) +\n    1 +\n    2\n}"
    (statement,) = parse(text, "f.tc").body
    assert statement.span is not None
    golden(statement.span.excerpt(), "txt")


def test_the_longest_word_wins_and_keywords_before_names() -> None:
    assert kinds("max maximum maxi=min=min=!max=! minim") == [
        *["max", "name", "name", "=", "min=", "min=!", "max=!", "name"],
    ]
    assert kinds("a+=!b") == ["name", "+=!", "name"]
    assert kinds("a+= !b") == ["name", "+=", "!", "name"]
    assert kinds("a<=>b<=c<d>=e==f!=!g") == [
        *["name", "<=>", "name", "<=", "name", "<", "name", ">=", "name", "==", "name"],
        *["!=", "!", "name"],
    ]


@pytest.mark.parametrize(
    "text", [*"+-*/%()[]?:,={}><!", "->", "<=>", "&&", "||", *sorted(ASSIGNMENTS)]
)
def test_every_operator_is_a_word(text: str) -> None:
    assert kinds(text) == [text]


@pytest.mark.parametrize("word", ["def", "where", "in", "exists", "min", "max"])
def test_every_keyword_is_one(word: str) -> None:
    assert word in KEYWORDS
    assert kinds(f"{word} {word}_ x{word}") == [word, "name", "name"]


INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64", "float", "double", "half", "bfloat16"]


@pytest.mark.parametrize("name", ["bool", *INTEGERS, *FLOATS])
def test_every_type_is_one(name: str) -> None:
    assert name in TYPES
    assert kinds(name) == ["type"]
    assert kinds(f"{name}_t") == ["name"]


@pytest.mark.parametrize("name", ["byte", "int", "short", "Float", "infinity", "nano", "info"])
def test_these_are_names(name: str) -> None:
    assert kinds(name) == ["name"]


def test_space_and_comments_only_separate() -> None:
    assert kinds("a # b c\n\t\r\n  d#\n#e") == ["name", "name"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("0", 0), ("007", 7), ("18446744073709551616", 1 << 64), ("0x1F", 31)],
        *[(".3", 0.3), ("3.", 3.0), ("3e-3", 0.003), ("3E5", 3e5), ("1e400", float("inf"))],
        *[("0x1.8p3", 12.0), ("0x.8", 0.5), ("0x1p-2", 0.25), ("0X1.P+1", 2.0)],
        *[("0x1p99999", float("inf")), ("0x10.", 16.0)],
    ],
)
def test_numbers(text: str, value: float) -> None:
    assert kinds(text) == ["number"]
    assert parse_expr(text) == Const(value)


def test_a_sign_is_no_part_of_a_number() -> None:
    assert kinds("-3+4") == ["-", "number", "+", "number"]


@pytest.mark.parametrize("text", ["@", "$x", "a ; b", "`", "é", "a & b", "a | b", ".", '"x"'])
def test_any_other_character_is_an_error(text: str) -> None:
    with pytest.raises(TcError, match="no word of the language starts with") as error:
        parse_expr(text if text[0] in "ab" else f"a + {text}")
    assert error.value.code == "TC01"
