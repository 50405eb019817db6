"""Sizes that are not affine in the sizes of a definition, as size names of their own.

The polyhedral stages know integers and names.  ``min(A, B)``, ``(N + 1) / 2`` or ``N * K``
becomes a name that is computed once a call, and all that is known of it in between is a *fact*:
``n0 <= A and n0 <= B``.  Names are never negative here: ``min(N - K, M)`` is written as
``min(N, M + K) - K`` and ``(N - K) / 2`` as ``(N + K) / 2 - K``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd

from tcfuse.errors import TcError
from tcfuse.tc.ast import Binary, Cast, Const, Expr, Unary, Var, fold
from tcfuse.tc.linear import Extreme, Linear, extreme, nonnegative
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import DType

LARGEST = 1 << 31
"""Numbers up to here may stand in a size; isl and the kernels' int64 products have room."""

MOST_NAMES = 64


class DerivedSizes:
    """The names made so far.

    Attributes:
        derived: Every name with its value as C text over names that come earlier.
        facts: What always holds of the sizes, as isl text.
        checks: C conditions that must hold, with a sentence for when they do not.
    """

    def __init__(self, taken: set[str]) -> None:
        self.derived: list[tuple[str, str]] = []
        self.facts: dict[str, None] = {}
        self.checks: dict[str, str] = {}
        self._taken = taken
        self._names: dict[str, str] = {}

    def fresh(self, stem: str) -> str:
        """A name that means nothing yet: ``stem`` and the first free number."""
        number = 0
        while f"{stem}{number}" in self._taken:
            number += 1
        self._taken.add(f"{stem}{number}")
        return f"{stem}{number}"

    def affine(self, expr: Expr) -> Linear:
        """``expr`` as an affine form over size names, old and new ones.

        Raises:
            TcError: It is not computed from integers and sizes, or far too large.
        """

        def combine(node: Expr, operands: tuple[Linear, ...]) -> Linear:
            return _checked(self._combine(node, operands), expr)

        return fold(expr, combine)

    def require(self, form: Linear, sentence: str) -> None:
        """``form >= 0`` is checked at every call, unless it is always so."""
        if nonnegative(form) or at_least_zero(form) in self.facts:
            return
        if not form.terms:
            raise TcError(sentence)
        self.checks.setdefault(at_least_zero(form), sentence)
        self.fact(form)

    def fact(self, form: Linear) -> None:
        """``form >= 0`` is known."""
        if not nonnegative(form):
            self.facts.setdefault(at_least_zero(form))

    def _combine(self, node: Expr, operands: tuple[Linear, ...]) -> Linear:
        match node:
            case Var(name):
                return Linear.of(name)
            case Const(int(value)) if not isinstance(value, bool):
                return Linear.of(value)
            case Cast(DType.INT32 | DType.INT64):
                return operands[0]
            case Unary("-"):
                return -operands[0]
            case Binary("+"):
                return operands[0] + operands[1]
            case Binary("-"):
                return operands[0] - operands[1]
            case Binary("*"):
                return self._product(*operands)
            case Binary("/"):
                return self._quotient(node, *operands)
            case Binary("%"):
                quotient = self._quotient(node, *operands)
                return operands[0] - self._product(quotient, operands[1])
            case Binary("min" | "max" as operator):
                return self._extreme(operator, operands)
            case _:
                text = unparse_expr(node)
                message = f"{text} cannot stand in a range or size"
                hint = "use sizes and integers with + - * / % min max"
                raise TcError(message, node.span, hint)

    def _product(self, left: Linear, right: Linear) -> Linear:
        """Multiplied out; every product of two names is a name."""
        if not left.terms:
            return right * left.constant
        if not right.terms:
            return left * right.constant
        total = left * right.constant + right * left.constant - left.constant * right.constant
        for a, p in left.terms:
            for b, q in right.terms:
                first, second = sorted((str(a), str(b)))
                total += self._name(f"{first} * {second}") * (p * q)
        return total

    def _quotient(self, node: Expr, dividend: Linear, divisor: Linear) -> Linear:
        """Rounded down."""
        if not divisor.terms and divisor.constant > 0:
            return self._floor(dividend, divisor.constant)
        text = unparse_expr(node)
        self.require(divisor - 1, f"{text} divides by {divisor}, which is less than 1")
        # Below, a quotient of what is never negative is never negative.
        self.require(dividend, f"{text} divides {dividend}, which is negative")
        return self._name(f"tcf_floor_div({dividend}, tcf_nonzero({divisor}))")

    def _floor(self, form: Linear, divisor: int) -> Linear:
        """``form / divisor``; multiples of the divisor come out until the rest is positive."""
        shared = gcd(divisor, form.constant, *(c for _, c in form.terms))
        form = Linear(tuple((a, c // shared) for a, c in form.terms), form.constant // shared)
        divisor //= shared
        whole = Linear(
            tuple((a, c // divisor) for a, c in form.terms if c // divisor),
            form.constant // divisor,
        )
        rest = form - whole * divisor
        if not rest.terms:
            return whole

        def known(name: Linear) -> Iterable[Linear]:
            return rest - name * divisor, name * divisor + (divisor - 1) - rest

        return whole + self._name(f"{_bracketed(rest)} / {divisor}", known)

    def _extreme(self, operator: str, forms: Iterable[Linear]) -> Linear:
        """The least or greatest of ``forms``; the names inside are all affine already."""
        found = extreme(operator, forms)
        match found.terms:
            case ((Extreme(_, arguments), 1),):
                pass
            case _:
                return found
        shift = -_common_negative(arguments)
        shifted = [argument + shift for argument in arguments]
        text = str(shifted[-1])
        for argument in reversed(shifted[:-1]):
            text = f"tcf_{operator}({argument}, {text})"
        sign = 1 if operator == "min" else -1

        def known(name: Linear) -> Iterable[Linear]:
            return ((argument - name) * sign for argument in shifted)

        return self._name(text, known) - shift

    def _name(
        self, value: str, known: Callable[[Linear], Iterable[Linear]] = lambda _: ()
    ) -> Linear:
        """The name for ``value``, a C text; what is ``known`` of it is not negative."""
        if value not in self._names:
            if len(self._names) == MOST_NAMES:
                raise TcError(f"more than {MOST_NAMES} sizes are not affine in the sizes")
            name = self.fresh("n")
            self._names[value] = name
            self.derived.append((name, value))
            for form in known(Linear.of(name)):
                self.fact(form)
        return Linear.of(self._names[value])


def at_least_zero(form: Linear) -> str:
    """``form >= 0`` without minus signs, as C and isl both read it: ``K <= N + 1``."""
    less = Linear(tuple((a, -c) for a, c in form.terms if c < 0), max(-form.constant, 0))
    more = Linear(tuple(t for t in form.terms if t[1] > 0), max(form.constant, 0))
    return f"{less} <= {more}"


def _common_negative(forms: Iterable[Linear]) -> Linear:
    """The least coefficient of every name, and the least constant, where they are negative."""
    least: dict[str, int] = {}
    constant = 0
    for form in forms:
        constant = min(constant, form.constant)
        for atom, factor in form.terms:
            assert isinstance(atom, str)
            least[atom] = min(least.get(atom, 0), factor)
    total = Linear.of(constant)
    for name, factor in least.items():
        total += Linear.of(name) * factor
    return total


def _bracketed(form: Linear) -> str:
    alone = len(form.terms) == 1 and not form.constant
    return str(form) if alone else f"({form})"


def _checked(form: Linear, expr: Expr) -> Linear:
    """``form``, unless a number in it is out of proportion."""
    if any(abs(n) > LARGEST for n in (form.constant, *(c for _, c in form.terms))):
        text = unparse_expr(expr)
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise TcError(f"{shown} is too large for a size", expr.span)
    return form
