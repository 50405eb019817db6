"""Characters to tokens, and a cursor over tokens that knows how to complain.

The kind of an operator or keyword is its own text; the others are ``name``, ``number``,
``type``, ``end`` and ``unknown``, at which the cursor complains.

Source: the lexical rules of TC.  Unlike there, ``inf`` and ``nan`` are plain names, ``3E5`` is
a float, hexadecimal integers are integers, and ``true`` and ``false`` are words.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from tcfuse.errors import Span, TcError
from tcfuse.types import DType

TYPES: dict[str, DType] = {
    **{dtype.tc: dtype for dtype in DType},
    "float32": DType.FLOAT32,
    "float64": DType.FLOAT64,
    "half": DType.FLOAT16,
}
KEYWORDS = frozenset(("def", "where", "in", "exists", "min", "max", "true", "false"))
ASSIGNMENTS = frozenset(("=", "+=", "*=", "min=", "max=", "+=!", "*=!", "min=!", "max=!"))

_KINDS = {**{word: word for word in KEYWORDS}, **dict.fromkeys(TYPES, "type")}
_TOKEN = re.compile(
    r"""(?:\s+|\#[^\n]*)*
    (?:(?P<number>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?\d+)?
      |(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<operator>(?:min|max)=!?(?!=)|[+*]=!?|->|<=>|[<>=!]=|&&|\|\||[][+*/%()?:,={}<>!-])
    |(?P<name>[A-Za-z_]\w*)
    |(?P<end>\Z)
    |(?P<unknown>.))""",
    re.VERBOSE | re.ASCII,
)


class Token(NamedTuple):
    """A word of the text and where it starts."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """First character after the token."""
        return self.start + len(self.text)


def tokenize(source: str) -> list[Token]:
    """The tokens of ``source``, closed by one of kind ``end``."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup
        assert kind is not None
        text, start = match.group(kind), match.start(kind)
        if kind == "operator":
            kind = text
        elif kind == "name":
            kind = _KINDS.get(text, kind)
        tokens.append(Token(kind, text, start))
        if kind == "end":
            break
    return tokens


class Cursor:
    """A position in a list of tokens."""

    __slots__ = ("filename", "position", "source", "tokens")

    def __init__(self, source: str, filename: str) -> None:
        self.source, self.filename = source, filename
        self.tokens = tokenize(source)
        self.position = 0

    @property
    def token(self) -> Token:
        """The token under the cursor."""
        return self.tokens[self.position]

    def at(self, kind: str) -> bool:
        """Whether the token under the cursor is of that kind."""
        return self.tokens[self.position].kind == kind

    def next(self) -> Token:
        """The token under the cursor; the cursor moves on."""
        token = self.tokens[self.position]
        self.position += 1
        return token

    def follows(self, *kinds: str) -> bool:
        """Whether tokens of these kinds come after the one under the cursor."""
        rest = self.tokens[self.position + 1 : self.position + 1 + len(kinds)]
        return [token.kind for token in rest] == list(kinds)

    def take(self, kind: str) -> bool:
        """Step over a token of that kind if there is one."""
        found = self.tokens[self.position].kind == kind
        self.position += found
        return found

    def expect(
        self, kind: str, what: str = "", hint: str | None = None, code: str = "TC02"
    ) -> Token:
        """The token under the cursor, which must be of that kind; the cursor moves on.

        Raises:
            TcError: It is another one.
        """
        if self.tokens[self.position].kind != kind:
            self.fail(what or repr(kind), hint, code)
        return self.next()

    def fail(self, expected: str, hint: str | None = None, code: str = "TC02") -> NoReturn:
        """Complain about the token under the cursor.

        Raises:
            TcError: Always.
        """
        token = self.token
        span = Span(self.source, token.start, token.end, self.filename)
        if token.kind == "unknown":
            message = f"no word of the language starts with {token.text!r}"
            raise TcError(message, span, "remove it; comments start with #", code="TC01")
        found = repr(token.text) if token.text else "the end of the text"
        raise TcError(f"expected {expected} but found {found}", span, hint, code=code)

    def span(self, start: int) -> Span:
        """From character ``start`` to the end of the last token stepped over."""
        last = self.tokens[self.position - 1] if self.position else self.tokens[0]
        return Span(self.source, start, max(last.end, start), self.filename)
