"""Affine expressions of index variables and size names: subscripts, bounds and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tcfuse.tc.ast import Binary, Const, Expr, Unary, Var, children
from tcfuse.tc.parser import parse_expr
from tcfuse.types import Size

_LARGEST = 64


@dataclass(frozen=True, slots=True)
class Affine:
    """A sum of multiples of names and a constant.

    Attributes:
        terms: Names with their coefficients, sorted by name; no coefficient is zero.
    """

    terms: tuple[tuple[str, int], ...]
    constant: int = 0

    @classmethod
    def of(cls, terms: Mapping[str, int], constant: int = 0) -> Affine:
        """The expression with those coefficients."""
        return cls(tuple(sorted((n, c) for n, c in terms.items() if c)), constant)

    @classmethod
    def from_size(cls, size: Size) -> Affine:
        """The value of a size."""
        if isinstance(size, int):
            return cls((), size)
        return _of_text(size)

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.constant + other)
        terms = dict(self.terms)
        for name, coefficient in other.terms:
            terms[name] = terms.get(name, 0) + coefficient
        return Affine.of(terms, self.constant + other.constant)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (-other if isinstance(other, int) else other * -1)

    def __mul__(self, factor: int) -> Affine:
        return Affine.of({n: c * factor for n, c in self.terms}, self.constant * factor)

    @property
    def is_constant(self) -> bool:
        """Whether no name occurs."""
        return not self.terms

    @property
    def never_negative(self) -> bool:
        """Whether the value is at least zero for all values of names that are at least zero."""
        return self.constant >= 0 and all(c > 0 for _, c in self.terms)

    def coefficient(self, name: str) -> int:
        """How often ``name`` is in the sum."""
        return dict(self.terms).get(name, 0)

    def expr(self) -> Expr:
        """The expression, positive terms first: ``i + 2 * j - n0 + 3``."""
        result: Expr | None = None
        for name, coefficient in sorted(self.terms, key=lambda term: term[1] < 0):
            factor = abs(coefficient)
            term = Var(name) if factor == 1 else Binary("*", Const(factor), Var(name))
            if result is None:
                result = term if coefficient > 0 else _negated(factor, name)
            else:
                result = Binary("+" if coefficient > 0 else "-", result, term)
        if result is None:
            return Const(self.constant)
        if self.constant == 0:
            return result
        sign = "+" if self.constant > 0 else "-"
        return Binary(sign, result, Const(abs(self.constant)))

    def size(self) -> Size:
        """The expression as a size."""
        if self.is_constant:
            return self.constant
        text = ""
        for name, coefficient in sorted(self.terms, key=lambda term: term[1] < 0):
            factor = "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"
            text += f" {'+' if coefficient > 0 else '-'} {factor}{name}"
        if self.constant:
            text += f" {'+' if self.constant > 0 else '-'} {abs(self.constant)}"
        return text[3:] if text.startswith(" + ") else f"-{text[3:]}"


def _negated(factor: int, name: str) -> Expr:
    return Unary("-", Var(name)) if factor == 1 else Binary("*", Const(-factor), Var(name))


@lru_cache(maxsize=1024)
def _of_text(size: str) -> Affine:
    value = affine(parse_expr(size))
    assert value is not None, f"size {size!r} is not affine"
    return value


def affine(expr: Expr) -> Affine | None:
    """``expr`` as an affine expression; ``None`` when it is none or very large."""
    pending, budget = [expr], _LARGEST
    while pending:  # values may be thousands of operators deep; subscripts are small
        node = pending.pop()
        budget -= 1
        if budget < 0 or not isinstance(node, Binary | Const | Unary | Var):
            return None
        pending += children(node)
    return _affine(expr)


def _affine(expr: Expr) -> Affine | None:
    match expr:
        case Const(bool()):
            return None
        case Const(int() as value):
            return Affine((), value)
        case Var(name):
            return Affine(((name, 1),))
        case Unary("-", operand):
            inner = _affine(operand)
            return None if inner is None else inner * -1
        case Binary("+" | "-" | "*" as operator, left, right):
            a, b = _affine(left), _affine(right)
            return None if a is None or b is None else combine(operator, a, b)
        case _:
            return None


def combine(operator: str, a: Affine, b: Affine) -> Affine | None:
    """``a operator b`` for ``+ - *``; ``None`` when it is not affine."""
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*" if a.is_constant:
            return b * a.constant
        case "*" if b.is_constant:
            return a * b.constant
        case _:
            return None
