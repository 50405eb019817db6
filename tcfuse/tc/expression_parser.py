"""Expressions, by operator precedence and without recursion.

Composed kernels hold expressions that are thousands of operators deep, so the pending operators
and open parentheses live on a list instead of the call stack.  The list's entries are frames:
an operator waiting for its right operand, or a bracket waiting for its end.

Source: Pratt, "Top Down Operator Precedence", POPL 1973, section 2, with the calls unrolled.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from tcfuse.errors import Span, TcError
from tcfuse.tc.ast import Access, Binary, Call, Cast, Const, Expr, Select, Unary, Var
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.lexer import TYPES, Cursor, Token

TERNARY, UNARY = 1, 7
PRECEDENCE: dict[str, int] = {
    "||": 2,
    "&&": 3,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 4),
    **dict.fromkeys("+-", 5),
    **dict.fromkeys("*/%", 6),
}
_BRACKET = 0
_LITERALS: dict[str, float] = {"inf": math.inf, "nan": math.nan}


class Frame(NamedTuple):
    """An operator that waits for its right operand, or a bracket that waits for its end.

    Attributes:
        precedence: Of the operator; zero for brackets.
        kind: The operator; ``unary``; ``(``, ``access``, ``call``, ``cast``, ``min``.
        token: The operator, or the name in front of the bracket.
        operands: Number of operands on the stack when the frame was pushed.
    """

    precedence: int
    kind: str
    token: Token
    operands: int


class ExpressionParser:
    """Reads one expression at the cursor.

    Args:
        cursor: Where; stops on the first token that cannot continue the expression.
        scalars: Names that mean a tensor without dimensions when they stand alone.
    """

    def __init__(self, cursor: Cursor, scalars: AbstractSet[str] = frozenset()) -> None:
        self.cursor, self.scalars = cursor, scalars
        self.operands: list[Expr] = []
        self.frames: list[Frame] = []
        self.extents: list[tuple[int, int]] = []

    def parse(self) -> Expr:
        """The expression."""
        self.operand()
        while self.operator():
            self.operand()
        assert len(self.operands) == 1
        return self.operands[0]

    def push(self, expr: Expr, start: int, end: int) -> None:
        """Add an operand whose text, brackets included, goes from ``start`` to ``end``."""
        self.operands.append(expr)
        self.extents.append((start, end))

    def operand(self) -> None:
        """Read prefixes and opening brackets up to and with the first complete operand."""
        cursor = self.cursor
        while True:
            token = cursor.next()
            kind = token.kind
            if kind == "name":
                if not cursor.at("("):
                    self.push(self.bare_name(token), token.start, token.end)
                    return
                if not self.open_name(token):
                    return
            elif kind == "number":
                span = self.span(token.start, token.end)
                self.push(Const(number(token.text), span), token.start, token.end)
                return
            elif kind == "(":
                self.frames.append(Frame(_BRACKET, "(", token, len(self.operands)))
            elif self.other_operand(token):
                return

    def bare_name(self, token: Token) -> Expr:
        """A name without an argument list."""
        span = self.cursor.span(token.start)
        if token.text in self.scalars:
            return Access(token.text, (), span)
        if token.text in _LITERALS:
            hint = f"write {token.text}()"
            raise TcError(f"{token.text!r} is a function", span, hint, code="TC02")
        return Var(token.text, span)

    def open_name(self, token: Token) -> bool:
        """Start an access or a call; ``False`` when its argument list is empty."""
        cursor = self.cursor
        kind = "call" if token.text in BUILTINS else "access"
        self.frames.append(Frame(_BRACKET, kind, token, len(self.operands)))
        cursor.next()
        if cursor.take(")"):
            self.close(self.frames.pop())
            return False
        return True

    def other_operand(self, token: Token) -> bool:
        """Casts, ``min``/``max``, booleans and prefixes; whether an operand is complete."""
        cursor, kind = self.cursor, token.kind
        if kind in ("type", "min", "max"):
            cursor.expect("(")
            kind = "cast" if kind == "type" else "min"
            self.frames.append(Frame(_BRACKET, kind, token, len(self.operands)))
            return False
        if kind in ("true", "false"):
            span = self.span(token.start, token.end)
            self.push(Const(kind == "true", span), token.start, token.end)
            return True
        if kind == "-" and self.negative_literal(token):
            return True
        if kind in ("-", "!"):
            self.frames.append(Frame(UNARY, "unary", token, len(self.operands)))
            return False
        cursor.position -= 1
        return cursor.fail("an expression")

    def negative_literal(self, minus: Token) -> bool:
        """Read the literal after ``minus`` as one negative literal, if there is one."""
        cursor = self.cursor
        token = cursor.token
        if token.kind == "number":
            cursor.next()
            value = -number(token.text)
        elif token.text in _LITERALS and cursor.follows("(", ")"):
            cursor.position += 3
            value = -_LITERALS[token.text] if token.text == "inf" else math.nan
        else:
            return False
        span = cursor.span(minus.start)
        self.push(Const(value, span), minus.start, span.end)
        return True

    def operator(self) -> bool:
        """Read closing brackets and one operator; ``False`` when the expression has ended."""
        cursor = self.cursor
        while True:
            token = cursor.token
            kind = token.kind
            if (level := PRECEDENCE.get(kind)) is not None:
                self.reduce(level)
                self.frames.append(Frame(level, kind, token, len(self.operands)))
                cursor.next()
                return True
            if kind == "?":
                self.reduce(TERNARY + 1)
                self.frames.append(Frame(TERNARY, "?", token, len(self.operands)))
                cursor.next()
                return True
            if kind == ":" and self.otherwise():
                return True
            self.reduce(TERNARY)
            if not self.frames:
                return False
            frame = self.frames[-1]
            if kind == "," and frame.kind != "(":
                cursor.next()
                return True
            cursor.expect(")", "')'" if frame.kind == "(" else "',' or ')'")
            self.close(self.frames.pop())

    def otherwise(self) -> bool:
        """Turn the innermost open ``?`` into one that waits for its last operand."""
        for frame in reversed(self.frames):
            if frame.kind == "?":
                break
            if frame.precedence == _BRACKET:
                return False
        else:
            return False
        while self.frames[-1].kind != "?":
            self.combine(self.frames.pop())
        question = self.frames.pop()
        self.frames.append(Frame(TERNARY, ":", question.token, len(self.operands)))
        self.cursor.next()
        return True

    def reduce(self, level: int) -> None:
        """Complete every waiting operator that binds at least as tightly as ``level``."""
        frames = self.frames
        while frames and frames[-1].precedence >= level:
            self.combine(frames.pop())

    def combine(self, frame: Frame) -> None:
        """Give a waiting operator its right operand."""
        operands, extents = self.operands, self.extents
        if frame.kind == "?":
            self.cursor.fail("':' and the other branch")
        right = operands.pop()
        start, end = extents.pop()
        if frame.kind == "unary":
            start = frame.token.start
            self.push(Unary(frame.token.text, right, self.span(start, end)), start, end)
            return
        left = operands.pop()
        start, _ = extents.pop()
        if frame.kind == ":":
            condition = operands.pop()
            start, _ = extents.pop()
            self.push(Select(condition, left, right, self.span(start, end)), start, end)
        else:
            self.push(Binary(frame.kind, left, right, self.span(start, end)), start, end)

    def span(self, start: int, end: int) -> Span:
        """The characters from ``start`` to ``end``."""
        return Span(self.cursor.source, start, end, self.cursor.filename)

    def close(self, frame: Frame) -> None:
        """Build what stands in front of a bracket that has just been closed."""
        arguments = tuple(self.operands[frame.operands :])
        del self.operands[frame.operands :], self.extents[frame.operands :]
        token = frame.token
        span = self.cursor.span(token.start)
        if frame.kind == "(":
            expr = arguments[0]
        elif frame.kind == "access":
            expr = Access(token.text, arguments, span)
        elif frame.kind == "call":
            expr = self.call(token.text, arguments, span)
        elif frame.kind == "cast":
            self.check_arity(token.text, len(arguments), 1, span)
            expr = Cast(TYPES[token.text], arguments[0], span)
        else:
            self.check_arity(token.text, len(arguments), 2, span)
            left, right = arguments
            expr = Binary(token.text, left, right, span)
        self.push(expr, token.start, span.end)

    def call(self, name: str, arguments: tuple[Expr, ...], span: Span) -> Expr:
        """A call of a built-in; ``inf()`` and ``nan()`` are literals."""
        self.check_arity(name, len(arguments), BUILTINS[name].arity, span)
        if name in _LITERALS:
            return Const(_LITERALS[name], span)
        return Call(name, arguments, span)

    @staticmethod
    def check_arity(name: str, found: int, expected: int, span: Span) -> None:
        """Raise unless a call of ``name`` has the number of arguments it must have."""
        if found != expected:
            plural = "" if expected == 1 else "s"
            message = f"{name!r} takes {expected} argument{plural} but found {found}"
            hint = f"write {name}({', '.join('abcd'[:expected])})"
            raise TcError(message, span, hint, code="TC12")


def number(text: str) -> int | float:
    """The value of a numeric literal: an ``int`` unless it has a point or an exponent."""
    if text.isdecimal():
        return int(text)
    if text[:2] not in ("0x", "0X"):
        return float(text)
    return (
        int(text, 16) if text[2:].isalnum() and "p" not in text.lower() else hexadecimal(text)
    )


def hexadecimal(text: str) -> float:
    """The value of a hexadecimal float; infinite when it is too large, as of decimal ones."""
    try:
        return float.fromhex(text)
    except OverflowError:
        return math.inf
