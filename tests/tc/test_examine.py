"""All there is to say about a text, whatever the text is."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.errors import TcError
from tcfuse.tc.diagnostics import DIAGNOSTICS
from tcfuse.tc.examine import examine
from tcfuse.tc.format import format_text
from tcfuse.tc.lexer import tokenize

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("op_library/papers/*.tc"))]
LISTED = """
    def where in exists min max ( ) { } , = += +=! -> <=> ? : - ! * / % && == true inf int32
    float 3 0.5 1e400 99999999999999999999 0:N 8:4 i N X X(i) O t $ #c
"""
WORDS = LISTED.split()


def codes(text: str) -> list[str]:
    return [finding.code for finding in examine(text, "f.tc")]


def mutated(text: str, rng: random.Random) -> str:
    """A text with some words deleted, inserted, replaced or swapped."""
    words = [token.text for token in tokenize(text)[:-1]]
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(words))
        match rng.randrange(4):
            case 0 if len(words) > 1:
                del words[at]
            case 1:
                words.insert(at, f" {rng.choice(WORDS)}\n")
            case 2:
                words[at] = f" {rng.choice(WORDS)}\n"
            case _:
                other = rng.randrange(len(words))
                words[at], words[other] = words[other], words[at]
    return " ".join(words)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(TEXTS), st.integers(0, 1 << 30))
def test_no_text_is_too_wrong(text: str, seed: int) -> None:
    broken = mutated(text, random.Random(seed))
    findings = examine(broken, "f.tc")
    for finding in findings:
        assert finding.code in DIAGNOSTICS
        assert str(finding).startswith("f.tc:")
    places = [finding.span.start for finding in findings if finding.span]
    assert places == sorted(places)
    try:
        once = format_text(broken)
    except TcError:
        assert any(finding.severity == "error" for finding in findings)
    else:
        assert format_text(once) == once


def test_a_definition_that_cannot_be_read_is_skipped() -> None:
    text = """
    def a(float(N) X) -> (Y) { Y(i) = X(i }
    def b(float(N) X) -> (Y) { Y(i) = X(i, i) }
    def c(float N) X) -> (Y) { Y(i) = X(i) }
    def d(float(N) X) -> (Y) { Y(i) = X(i) }
    """
    assert codes(text) == ["TC02", "TC13", "TC02"]


def test_what_follows_from_an_error_is_not_said() -> None:
    text = """
    def f(float(N) X) -> (Y, Z) {
      T(i) = X(Q)
      U(i) = T(i) + V(i)
      Y(i) = U(i)
      Z(i) = X(X(i))
    }
    """
    # T is wrong, so U and Y are not looked at; Q is a name nothing bounds.
    assert codes(text) == ["TC20", "TC09"]


def test_unknown_characters_do_not_end_it() -> None:
    text = "def f(float(N) X) -> (Y) { Y(i) = X(i) ; }\ndef g(float(N) X) -> (Y) { Y(i) = X }"
    assert codes(text) == ["TC01", "TC14"]
