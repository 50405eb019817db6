"""Exact integer arithmetic on sizes: linear forms over names, floors, minima and maxima.

A ``Linear`` is an integer combination of *atoms* plus a constant.  An atom is a size or index
name, or a floor division, minimum, maximum or product of linear forms; arithmetic treats it as
one unknown, and ``nonnegative`` knows what bounds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd
from typing import TypeAlias

from tcfuse.errors import TcError
from tcfuse.tc.ast import Binary, Cast, Const, Expr, Unary, Var, fold
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import DType, Size

MOST_ARGUMENTS = 32
"""Of a minimum or maximum: the time for one grows with their cube."""

MOST_TERMS = 128
"""Of a product that is multiplied out."""


@dataclass(frozen=True, slots=True)
class Floor:
    """``argument / divisor``, rounded towards minus infinity."""

    argument: Linear
    divisor: int


@dataclass(frozen=True, slots=True)
class Extreme:
    """``min`` or ``max`` of at least two forms."""

    operator: str
    arguments: tuple[Linear, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """At least two atoms multiplied, in a fixed order."""

    factors: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Quotient:
    """``argument / divisor`` rounded down, where the divisor is not a number."""

    argument: Linear
    divisor: Linear


Atom: TypeAlias = str | Floor | Extreme | Product | Quotient


@dataclass(frozen=True)
class Linear:
    """``sum(coefficient * atom) + constant``, with the terms in a fixed order."""

    terms: tuple[tuple[Atom, int], ...]
    constant: int

    @classmethod
    def of(cls, value: int | Atom) -> Linear:
        """A constant or a single atom."""
        return cls((), value) if isinstance(value, int) else cls(((value, 1),), 0)

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.terms, self.constant + other)
        if not other.terms:
            return Linear(self.terms, self.constant + other.constant)
        total = dict(self.terms)
        for atom, factor in other.terms:
            total[atom] = total.get(atom, 0) + factor
        kept = sorted(((a, c) for a, c in total.items() if c), key=_rank)
        return Linear(tuple(kept), self.constant + other.constant)

    def __mul__(self, factor: int) -> Linear:
        if not factor:
            return Linear((), 0)
        return Linear(tuple((a, c * factor) for a, c in self.terms), self.constant * factor)

    def __neg__(self) -> Linear:
        return self * -1

    def __sub__(self, other: Linear | int) -> Linear:
        return self + -other

    def __str__(self) -> str:
        return unparse_expr(self.expr)

    def coefficient(self, name: str) -> int:
        """Of the atom ``name``."""
        return next((c for a, c in self.terms if a == name), 0)

    def without(self, atom: Atom) -> Linear:
        """The form with the term of ``atom`` left out."""
        return Linear(tuple(t for t in self.terms if t[0] != atom), self.constant)

    @property
    def is_affine(self) -> bool:
        """Whether every atom is a name."""
        return all(isinstance(a, str) for a, _ in self.terms)

    @cached_property
    def expr(self) -> Expr:
        """The form as an expression; added terms first, so ``N - K + 1``."""
        added = [_product(atom, factor) for atom, factor in self.terms if factor > 0]
        # Without an added term the constant comes first, "3 - N"; otherwise last, "N - 3".
        result = added[0] if added else Const(self.constant)
        for term in added[1:]:
            result = Binary("+", result, term)
        for atom, factor in self.terms:
            if factor < 0:
                result = Binary("-", result, _product(atom, -factor))
        if added and self.constant:
            operator = "+" if self.constant > 0 else "-"
            result = Binary(operator, result, Const(abs(self.constant)))
        return result

    @property
    def size(self) -> Size:
        """The form as a number or text."""
        return str(self) if self.terms else self.constant


def floor_div(form: Linear, divisor: int) -> Linear:
    """``form / divisor`` rounded down; what the divisor divides is taken out of the floor."""
    shared = gcd(divisor, form.constant, *(c for _, c in form.terms))
    if shared > 1:
        form = Linear(tuple((a, c // shared) for a, c in form.terms), form.constant // shared)
        divisor //= shared
    if divisor == 1:
        return form
    whole = Linear(
        tuple((a, c // divisor) for a, c in form.terms if c % divisor == 0),
        form.constant // divisor,
    )
    rest = form - whole * divisor
    return whole + Linear.of(Floor(rest, divisor)) if rest.terms else whole


def extreme(operator: str, forms: Iterable[Linear]) -> Linear:
    """``min`` or ``max`` of ``forms``; those that another one makes redundant are left out."""
    flat: list[Linear] = []
    for form in forms:
        flat.extend(_spread(operator, form))
    sign = 1 if operator == "min" else -1
    kept: list[Linear] = []
    for form in dict.fromkeys(flat):
        if any(nonnegative((form - other) * sign) for other in kept):
            continue
        kept = [other for other in kept if not nonnegative((other - form) * sign)]
        kept.append(form)
        if len(kept) > MOST_ARGUMENTS:
            what = "minimum" if operator == "min" else "maximum"
            message = f"a {what} of more than {MOST_ARGUMENTS} sizes"
            raise TcError(message, hint="give the index a range with 'where'", code="TC41")
    return kept[0] if len(kept) == 1 else Linear.of(Extreme(operator, tuple(kept)))


def nonnegative(form: Linear, smallest: int = 0) -> bool:
    """Whether ``form >= 0`` can be proved for all sizes from ``smallest`` on."""
    atom, factor = next((t for t in form.terms if not isinstance(t[0], str)), ("", 0))
    if isinstance(atom, Floor):
        return _floor_nonnegative(atom, factor, form.without(atom), smallest)
    if isinstance(atom, Extreme):
        rest = form.without(atom)
        cases = (nonnegative(rest + a * factor, smallest) for a in atom.arguments)
        return any(cases) if (atom.operator == "max") == (factor > 0) else all(cases)
    if isinstance(atom, Product | Quotient):
        # Without a sign of the parts nothing is known, and nothing bounds them from above.
        parts = atom.factors if isinstance(atom, Product) else (atom.argument, atom.divisor)
        signed = all(nonnegative(p if isinstance(p, Linear) else Linear.of(p)) for p in parts)
        return factor > 0 and signed and nonnegative(form.without(atom), smallest)
    least_sum = smallest * sum(factor for _, factor in form.terms)
    return form.constant + least_sum >= 0 and all(factor >= 0 for _, factor in form.terms)


def _floor_nonnegative(floor: Floor, factor: int, rest: Linear, smallest: int) -> bool:
    """Whether ``factor * floor + rest >= 0`` can be proved."""
    argument, divisor = floor.argument, floor.divisor
    if not rest.terms:  # exact: floor >= -(constant // factor) or floor <= constant // -factor
        if factor > 0:
            return nonnegative(argument + rest.constant // factor * divisor, smallest)
        most = rest.constant // -factor * divisor + divisor - 1
        return nonnegative(-argument + most, smallest)
    # divisor * floor lies between argument - (divisor - 1) and argument.
    least = argument + (1 - divisor if factor > 0 else 0)
    return nonnegative(rest * divisor + least * factor, smallest) or (
        factor > 0 and nonnegative(argument, smallest) and nonnegative(rest, smallest)
    )


def linear_of(
    expr: Expr, known: Mapping[str, Linear | None], variables: AbstractSet[str] = frozenset()
) -> Linear | None:
    """The linear form of an integer expression, ``None`` when it has none.

    Args:
        expr: The expression.
        known: Forms of names to replace, lets for example; ``None`` for those without.
        variables: Names that may not stand below a floor, minimum or maximum.
    """

    def combine(node: Expr, operands: tuple[Linear | None, ...]) -> Linear | None:
        match node:
            case Var(name):
                return known[name] if name in known else Linear.of(name)
            case Const(int(value)) if not isinstance(value, bool):
                return Linear.of(value)
            case Cast(DType.INT32 | DType.INT64):
                return operands[0]
            case Unary("-"):
                return None if operands[0] is None else -operands[0]
            case Binary(operator):
                left, right = operands
                if left is None or right is None:
                    return None
                return _binary(operator, left, right, variables)
            case _:
                return None

    if isinstance(expr, Var):
        return combine(expr, ())
    return fold(expr, combine)


@lru_cache(maxsize=4096)
def linear_of_size(size: Size) -> Linear | None:
    """The linear form of a size, ``None`` when its text is not affine."""
    from tcfuse.tc.parser import parse_expr  # only composite sizes need the parser

    if isinstance(size, int):
        return Linear.of(size)
    return Linear.of(size) if size.isidentifier() else linear_of(parse_expr(size), {})


def _binary(
    operator: str, left: Linear, right: Linear, variables: AbstractSet[str]
) -> Linear | None:
    """The form of a binary operation, if it has one."""
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*" and not (left.terms and right.terms):
        return left * right.constant if left.terms else right * left.constant
    if any(atom in variables for form in (left, right) for atom, _ in form.terms):
        return None
    if operator in ("min", "max"):
        return extreme(operator, (left, right))
    if operator in ("/", "%") and not right.terms and right.constant > 0:
        quotient = floor_div(left, right.constant)
        return quotient if operator == "/" else left - quotient * right.constant
    if operator == "*":
        return times(left, right)
    if operator in ("/", "%") and right.terms:
        quotient = Linear.of(Quotient(left, right))
        return quotient if operator == "/" else left - times(quotient, right)
    return None


def times(left: Linear, right: Linear) -> Linear:
    """The product, with sums multiplied out."""
    total = left * right.constant + right * left.constant - left.constant * right.constant
    if len(left.terms) * len(right.terms) > MOST_TERMS:
        message = f"a product of more than {MOST_TERMS} terms"
        raise TcError(message, hint="give it a size name of its own", code="TC41")
    for a, n in left.terms:
        for b, m in right.terms:
            factors = [*_factors(a), *_factors(b)]
            ordered = tuple(sorted(factors, key=lambda atom: _rank((atom, 1))))
            total += Linear.of(Product(ordered)) * (n * m)
    return total


def _factors(atom: Atom) -> tuple[Atom, ...]:
    """What ``atom`` is a product of."""
    return atom.factors if isinstance(atom, Product) else (atom,)


def _spread(operator: str, form: Linear) -> tuple[Linear, ...]:
    """``min(a, b) + c`` as ``a + c`` and ``b + c``, so that nested minima become one."""
    for atom, factor in form.terms:
        if factor == 1 and isinstance(atom, Extreme) and atom.operator == operator:
            rest = form.without(atom)
            return tuple(argument + rest for argument in atom.arguments)
    return (form,)


def _product(atom: Atom, factor: int) -> Expr:
    """``factor * atom`` as an expression."""
    match atom:
        case str():
            expr: Expr = Var(atom)
        case Floor(argument, divisor):
            expr = Binary("/", argument.expr, Const(divisor))
        case Extreme(operator, (first, *others)):
            expr = first.expr
            for other in others:
                expr = Binary(operator, expr, other.expr)
        case Product((head, *tail)):
            expr = _product(head, 1)
            for factor_atom in tail:
                expr = Binary("*", expr, _product(factor_atom, 1))
        case Quotient(argument, divisor):
            expr = Binary("/", argument.expr, divisor.expr)
        case _:
            raise AssertionError(atom)
    return expr if factor == 1 else Binary("*", Const(factor), expr)


def _rank(term: tuple[Atom, int]) -> tuple[bool, str]:
    """Order of terms: names first, by name."""
    atom = term[0]
    return not isinstance(atom, str), atom if isinstance(atom, str) else repr(atom)
