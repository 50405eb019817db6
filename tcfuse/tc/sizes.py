"""Dimensions of a region as sizes of its TC: which names there are and who gives them a value.

A name is bound by the first input dimension that consists of it alone; a value that is not
affine in bound names gets a *derived* name, computed from them by a C expression.  Names are
numbered in order of first appearance, so equal regions get equal text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import sympy

from tcfuse.errors import UnsupportedError
from tcfuse.tc.affine import Affine
from tcfuse.types import Size

Dim: TypeAlias = int | sympy.Expr


class Sizes:
    """The size names of one region.

    Attributes:
        derived: C expressions of the names that no input dimension is, in order of need.
        checks: C conditions that must hold between bound names, with what to report otherwise.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.derived: dict[str, str] = {}
        self.checks: list[tuple[str, str]] = []
        self._known: dict[sympy.Expr, Size] = {}
        self._meaning: dict[sympy.Expr, sympy.Expr] = {}  # symbols, roundings -> our names
        self._named: dict[sympy.Expr, str] = {}  # values that are not affine -> our names

    @classmethod
    def bind(cls, shapes: Iterable[Sequence[Dim]]) -> Sizes:
        """The names bound by inputs of those shapes."""
        sizes = cls()
        dims = [d for shape in shapes for d in shape if isinstance(d, sympy.Expr)]
        for dim in dims:
            if isinstance(dim, sympy.Symbol) and dim not in sizes._meaning:
                sizes._meaning[dim] = sizes._new_name()
        for dim in dims:
            if not isinstance(dim, sympy.Symbol):
                sizes._bind_expression(dim)
        return sizes

    def size(self, dim: Dim) -> Size:
        """``dim`` as a size.

        Raises:
            UnsupportedError: It cannot be computed from the input shapes.
        """
        if isinstance(dim, int):
            return dim
        if dim not in self._known:
            self._known[dim] = self._size(dim)
        return self._known[dim]

    def _size(self, dim: sympy.Expr) -> Size:
        value = self._translate(dim)
        if not value.is_integer and value.is_number:
            raise UnsupportedError(f"a dimension of {dim} is not an integer")
        affine = self._affine(value)
        return self._name(value, dim) if affine is None else affine.size()

    def product(self, factors: Sequence[Size]) -> Size:
        """The size of the dimension that ``factors`` make up."""
        return self.size(sympy.Mul(*(self.value(f) for f in factors)))

    def quotient(self, whole: Size, part: Size) -> Size | None:
        """How often ``part`` goes into ``whole``; ``None`` when it is not a whole factor."""
        if isinstance(whole, int) and isinstance(part, int):
            return whole // part if part and whole % part == 0 else None
        a, b = self.value(whole), self.value(part)
        numerator, denominator = sympy.fraction(sympy.cancel(a / b))
        if denominator != 1 or self._rational(numerator):
            return None
        try:
            return self.size(numerator)
        except UnsupportedError:
            return None

    def value(self, size: Size) -> sympy.Expr:
        """The number or expression over names that ``size`` stands for, products resolved."""
        if isinstance(size, int):
            return sympy.Integer(size)
        affine = Affine.from_size(size)
        meaning = {name: value for value, name in self._named.items()}
        terms = (c * meaning.get(n, _symbol(n)) for n, c in affine.terms)
        return sympy.expand(sympy.Add(affine.constant, *terms))

    def used(self, names: Iterable[str]) -> tuple[str, ...]:
        """``names`` and those they are computed from, in an order of computation."""
        needed = set(names)
        for name in reversed(self.names):
            if name in needed and name in self.derived:
                value = next(v for v, n in self._named.items() if n == name)
                needed |= {str(s) for s in value.free_symbols}
        return tuple(name for name in self.names if name in needed)

    def facts(self) -> Iterator[str]:
        """What holds of the names because of what they are, as isl text.

        ``n1 = floor((n0 - 1) / 2) + 1`` lies between two affine expressions of ``n0``.
        """
        for value, name in self._named.items():
            roundings = [a for a in value.atoms(sympy.floor) if value.coeff(a) == 1]
            if len(roundings) != 1 or name not in self.derived:
                continue
            inner = roundings[0].args[0]
            divisor = math.lcm(*(int(c.q) for c in inner.as_coefficients_dict().values()))
            rounded = _symbol(name) - (value - roundings[0])
            rest = self._affine(sympy.expand(divisor * (inner - rounded)))
            if rest is not None:
                yield f"0 <= {rest.size()} <= {divisor - 1}"

    def _new_name(self) -> sympy.Symbol:
        self.names.append(f"n{len(self.names)}")
        return _symbol(self.names[-1])

    def _bind_expression(self, dim: sympy.Expr) -> None:
        """Give a compound input dimension a meaning: affine, or a name of its own."""
        value = self._translate(dim)
        missing = value.free_symbols & set(dim.free_symbols)
        # floor(d/2) of an unknown d is as good an unknown as d itself
        rounded = {
            a for a in value.atoms(sympy.floor, sympy.ceiling) if a.free_symbols & missing
        }
        unknown = sorted(missing, key=str) + sorted(rounded, key=str)
        if (not unknown and self._affine(value) is not None) or value in self._named:
            return
        name = self._new_name()
        solved = next((s for s in unknown if _linear_coefficient(value, s) is not None), None)
        if solved is None:
            self._named[value] = str(name)
            if not unknown and (text := c_expression(value)) is not None:
                self.checks.append((f"{name} == {text}", f"a dimension is not {text}"))
            return
        # e.g. the only dimension is past + 1: name that, and past is the name - 1
        coefficient = _linear_coefficient(value, solved)
        meaning = (name - value + coefficient * solved) / coefficient
        for symbol, old in list(self._meaning.items()):
            self._meaning[symbol] = old.xreplace({solved: meaning})
        self._meaning[solved] = sympy.expand(meaning)

    def _translate(self, dim: Dim) -> sympy.Expr:
        """``dim`` over our names."""
        value = sympy.sympify(dim)
        return sympy.expand(value.xreplace(self._meaning)) if value.free_symbols else value

    def _affine(self, value: sympy.Expr) -> Affine | None:
        """``value`` as an affine expression of bound names."""
        terms, constant = {}, 0
        for term, coefficient in value.as_coefficients_dict().items():
            if not coefficient.is_Integer:
                return None
            if term == 1:
                constant = int(coefficient)
            elif term in self._named:
                terms[self._named[term]] = int(coefficient)
            elif isinstance(term, sympy.Symbol) and str(term) in self.names:
                terms[str(term)] = int(coefficient)
            else:
                return None
        return Affine.of(terms, constant)

    def _name(self, value: sympy.Expr, dim: Dim) -> str:
        """The name of a value that is not affine."""
        if value not in self._named:
            text = c_expression(value)
            if text is None or not {str(s) for s in value.free_symbols} <= set(self.names):
                raise UnsupportedError(f"dimension {dim} is not known from the input shapes")
            self._named[value] = str(self._new_name())
            self.derived[self._named[value]] = text
        return self._named[value]

    @staticmethod
    def _rational(value: sympy.Expr) -> bool:
        return any(not c.is_Integer for c in value.as_coefficients_dict().values())


def _symbol(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, integer=True, nonnegative=True)


def _linear_coefficient(value: sympy.Expr, symbol: sympy.Expr) -> sympy.Integer | None:
    """The integer ``c`` if ``value`` is ``c * symbol + rest``; ``None`` otherwise."""
    coefficient = value.coeff(symbol)
    rest = sympy.expand(value - coefficient * symbol)
    linear = coefficient.is_Integer and coefficient != 0 and not rest.has(symbol)
    return coefficient if linear else None


def c_expression(value: sympy.Expr) -> str | None:
    """``value`` as a C expression over ``int64_t`` names; ``None`` when there is none."""
    numerator, denominator = sympy.fraction(sympy.together(value))
    if denominator != 1:  # the value is an integer, so the division is exact
        top, bottom = c_expression(numerator), c_expression(denominator)
        return None if top is None or bottom is None else f"({top}) / ({bottom})"
    if value.is_Integer or value.is_Symbol:
        return str(value)
    match value:
        case sympy.Add() | sympy.Mul():
            parts = list(_c_parts(value.args))
            sign = " + " if isinstance(value, sympy.Add) else " * "
            return None if None in parts else sign.join(f"{p}" for p in parts)
        case sympy.Pow() if value.exp.is_Integer and 0 < int(value.exp) <= 8:
            base = c_expression(value.base)
            return None if base is None else " * ".join([f"({base})"] * int(value.exp))
        case sympy.floor():
            return _c_floor(value.args[0])
        case sympy.ceiling():
            below = _c_floor(-value.args[0])
            return None if below is None else f"-({below})"
        case sympy.Max() | sympy.Min():
            return _c_extremum(value)
        case _:
            return None


def _c_parts(values: Iterable[sympy.Expr]) -> Iterator[str | None]:
    for value in values:
        text = c_expression(value)
        simple = (
            value.is_Symbol or (value.is_Integer and value >= 0) or isinstance(value, sympy.Mul)
        )
        yield text if simple or text is None else f"({text})"


def _c_floor(value: sympy.Expr) -> str | None:
    numerator, denominator = sympy.fraction(sympy.together(value))
    top, bottom = c_expression(numerator), c_expression(denominator)
    if top is None or bottom is None or not denominator.is_positive:
        return None
    if numerator.is_nonnegative:
        return f"({top}) / ({bottom})"
    # C truncates; take the remainder that is not negative away first
    return f"(({top}) - (({top}) % ({bottom}) + ({bottom})) % ({bottom})) / ({bottom})"


def _c_extremum(value: sympy.Expr) -> str | None:
    sign = ">" if isinstance(value, sympy.Max) else "<"
    texts = [c_expression(argument) for argument in value.args]
    result = texts[0]
    for text in texts[1:]:
        if result is None or text is None:
            return None
        result = f"(({result}) {sign} ({text}) ? ({result}) : ({text}))"
    return result
