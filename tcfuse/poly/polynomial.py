"""Polynomials over iterators and size names with integer coefficients: addresses and bounds.

The address of a row-major element is a polynomial (``i*n1 + j``), so strides are read off it,
and ``(l / 6)*6 + l % 6`` becomes ``l`` because ``x % c`` is kept as ``x - c*floor(x / c)``.
What is not polynomial (a floor division, a minimum) is one opaque factor that carries its C
text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tcfuse.tc.ast import Binary, Const, Expr, Unary, Var
from tcfuse.types import Size

Monomial: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of monomials; ``terms`` maps sorted factors to a coefficient that is not zero."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @classmethod
    def of(cls, terms: Mapping[Monomial, int]) -> Polynomial:
        """The polynomial with these terms."""
        return cls(tuple(sorted((m, c) for m, c in terms.items() if c)))

    @classmethod
    def constant(cls, value: int) -> Polynomial:
        """A number."""
        return cls.of({(): value})

    @classmethod
    def factor(cls, text: str) -> Polynomial:
        """A name, or opaque C text."""
        return cls.of({(text,): 1})

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, coefficient in other.terms:
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return Polynomial.of(terms)

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for a, x in self.terms:
            for b, y in other.terms:
                monomial = tuple(sorted(a + b))
                terms[monomial] = terms.get(monomial, 0) + x * y
        return Polynomial.of(terms)

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    @property
    def number(self) -> int | None:
        """The value, when it is a number."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    def at_least_zero(self) -> Polynomial:
        """The value, or zero when it is negative, as that of an empty loop's extent may be."""
        if all(c > 0 and all(f.isidentifier() for f in m) for m, c in self.terms):
            return self  # a sum of sizes
        return Polynomial.factor(f"tcf_max(0, {self})")

    def mentions(self, name: str) -> bool:
        """Whether the value may depend on ``name``, inside opaque factors too."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        return any(word.search(f) for m, _ in self.terms for f in m)

    def stride(self, name: str) -> Polynomial | None:
        """The coefficient of ``name``; ``None`` when the polynomial is not linear in it."""
        terms: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms:
            if not Polynomial.of({monomial: 1}).mentions(name):
                continue
            if monomial.count(name) != 1:
                return None
            rest = list(monomial)
            rest.remove(name)
            if any(Polynomial.factor(f).mentions(name) for f in rest):
                return None
            terms[tuple(rest)] = coefficient
        return Polynomial.of(terms)

    def put(self, name: str, value: Polynomial) -> Polynomial:
        """The polynomial with ``value`` for ``name``, inside opaque factors too."""
        total = Polynomial()
        for monomial, coefficient in self.terms:
            product = Polynomial.constant(coefficient)
            for factor in monomial:
                text = put_text(factor, name, value)
                product = product * (value if factor == name else Polynomial.factor(text))
            total = total + product
        return total

    def __str__(self) -> str:
        """C text, without outer parentheses."""
        text = ""
        ordered = sorted(self.terms, key=lambda t: (not t[0], t[0]))
        for monomial, coefficient in ordered:
            magnitude = abs(coefficient)
            factors = (
                list(monomial) if magnitude == 1 and monomial else [str(magnitude), *monomial]
            )
            sign = "-" if coefficient < 0 else "+"
            product = " * ".join(factors)
            if not text:
                text = product if coefficient > 0 else f"-{product}"
            else:
                text += f" {sign} {product}"
        return text or "0"


def put_text(text: str, name: str, value: Polynomial) -> str:
    """C text with ``value`` for ``name``."""
    return re.sub(rf"\b{re.escape(name)}\b", f"({value})", text)


def floor_divided(value: Polynomial, divisor: int) -> Polynomial:
    """``floor(value / divisor)``; exact parts are taken out."""
    whole = Polynomial.of({m: c // divisor for m, c in value.terms if c % divisor == 0})
    rest = Polynomial.of({m: c for m, c in value.terms if c % divisor})
    if rest.number is not None:
        return whole + Polynomial.constant(rest.number // divisor)
    text = f"tcf_floor_div({rest}, {divisor})"
    return whole + Polynomial.factor(text)


def from_size(size: Size) -> Polynomial:
    """A tensor's size."""
    if isinstance(size, int):
        return Polynomial.constant(size)
    from tcfuse.tc.parser import parse_expr  # a size is an expression of the language

    found = polynomial(parse_expr(size), {})
    assert found is not None, f"size {size!r} is not affine"
    return found


def polynomial(expr: Expr, environment: Mapping[str, Polynomial]) -> Polynomial | None:
    """``expr`` with names replaced; ``None`` when it reads a tensor or is not integral."""
    match expr:
        case Const(bool()) | Const(float()):
            return None
        case Const(value):
            return Polynomial.constant(int(value))
        case Var(name):
            return environment.get(name, Polynomial.factor(name))
        case Unary("-", operand):
            inner = polynomial(operand, environment)
            return None if inner is None else -inner
        case Binary(operator, left, right):
            a, b = polynomial(left, environment), polynomial(right, environment)
            return None if a is None or b is None else _binary(operator, a, b)
        case _:
            return None


def _binary(operator: str, a: Polynomial, b: Polynomial) -> Polynomial | None:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/" if (b.number or 0) > 0:
            return floor_divided(a, b.number or 1)
        case "%" if (b.number or 0) > 0:
            return a - Polynomial.constant(b.number or 1) * floor_divided(a, b.number or 1)
        case "min" | "max":
            return Polynomial.factor(f"tcf_{operator}({a}, {b})")
        case _:
            return None


def address(subscripts: tuple[Polynomial, ...], strides: tuple[Polynomial, ...]) -> Polynomial:
    """The distance, in elements, from the first element of a tensor."""
    total = Polynomial()
    for subscript, stride in zip(subscripts, strides, strict=True):
        total = total + subscript * stride
    return total


def row_major(shape: tuple[Size, ...]) -> tuple[Polynomial, ...]:
    """The stride of each dimension, in elements."""
    strides: list[Polynomial] = []
    step = Polynomial.constant(1)
    for size in reversed(shape):
        strides.append(step)
        step = step * from_size(size)
    return tuple(reversed(strides))
