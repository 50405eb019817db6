"""Sizes that are not affine in the sizes of a definition, as size names of their own.

The polyhedral stages know integers and names.  ``min(A, B)``, ``(N + 1) / 2`` or ``N * K``
becomes a name that is computed once a call, and all that is known of it in between is a *fact*:
``n0 <= A and n0 <= B``.  Names are never negative here: ``min(N - K, M)`` is written as
``min(N, M + K) - K`` and ``(N - K) / 2`` as ``(N + K) / 2 - K``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from tcfuse.errors import Span, TcError
from tcfuse.tc.ast import Binary, Cast, Const, Expr, Unary, Var, fold
from tcfuse.tc.linear import Atom, Extreme, Linear, extreme, nonnegative
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import DType, size_names

LARGEST = 1 << 31
"""Numbers up to here may stand in a size; isl and the kernels' int64 products have room."""

MOST_NAMES = 64
MOST_PRODUCT = 1 << 48


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
        self._known: dict[tuple[tuple[Atom, int], ...], int] = {}

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
            form = self._combine(node, operands)
            if form is None:
                message = f"{unparse_expr(node)} cannot stand in a range or size"
                hint = "use sizes and integers with + - * / % min max"
                raise TcError(message, node.span, hint, code="TC44")
            return _checked(form, expr)

        return fold(expr, combine)

    def subscript(
        self, expr: Expr, lets: Mapping[str, Linear | None], variables: AbstractSet[str]
    ) -> Linear | None:
        """``expr`` as an affine form over variables and sizes; ``None`` when it has none.

        Args:
            expr: The expression.
            lets: The forms of the lets in it.
            variables: Names that are no sizes.
        """

        def combine(node: Expr, operands: tuple[Linear | None, ...]) -> Linear | None:
            known = tuple(operand for operand in operands if operand is not None)
            if len(known) < len(operands):
                return None
            if isinstance(node, Var) and node.name in lets:
                return lets[node.name]
            if isinstance(node, Binary) and not _keeps_affine(node, known, variables):
                return None
            form = self._combine(node, known)
            return None if form is None else _checked(form, expr)

        return fold(expr, combine)

    def require(self, form: Linear, sentence: str, span: Span | None = None) -> None:
        """``form >= 0`` is checked at every call, unless it is always so."""
        if self._is_known(form):
            return
        if not form.terms:
            raise TcError(sentence, span, "it holds for no sizes", code="TC30")
        self.checks.setdefault(at_least_zero(form), sentence)
        self.fact(form)

    def keep(self, used: Iterable[str]) -> None:
        """Forget the names that are neither ``used`` nor needed for one that is, or a check."""
        needed = {*used, *size_names(self.checks)}
        for name, value in reversed(self.derived):
            if name in needed:
                needed.update(size_names((value,)))
        unused = {name for name, _ in self.derived} - needed
        self.derived = [pair for pair in self.derived if pair[0] not in unused]
        for fact in list(self.facts):
            if unused.intersection(size_names((fact,))):
                del self.facts[fact]

    def fact(self, form: Linear) -> None:
        """``form >= 0`` is known."""
        if not self._is_known(form):
            self._known[form.terms] = form.constant
            self.facts.setdefault(at_least_zero(form))

    def _is_known(self, form: Linear) -> bool:
        """Whether ``form >= 0`` holds always, or follows from a single fact."""
        return nonnegative(form) or self._known.get(form.terms, math.inf) <= form.constant

    def _combine(self, node: Expr, operands: tuple[Linear, ...]) -> Linear | None:
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
                return None

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
                value = f"{first} * {second}"
                fits = f"{first} <= {MOST_PRODUCT} / {second}"
                self.checks.setdefault(fits, f"{value} is too large for a size")
                total += self._name(value) * (p * q)
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
        shared = math.gcd(divisor, form.constant, *(c for _, c in form.terms))
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
                message = f"more than {MOST_NAMES} sizes are not affine in the sizes"
                raise TcError(message, code="TC41")
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


def _keeps_affine(
    node: Binary, operands: tuple[Linear, ...], variables: AbstractSet[str]
) -> bool:
    """Whether an operation gives an affine form of the variables in its operands."""
    left, right = operands
    if node.operator in ("+", "-") or (
        node.operator == "*" and not (left.terms and right.terms)
    ):
        return True
    if node.operator in ("/", "%") and (right.terms or right.constant <= 0):
        return False
    return not any(atom in variables for form in operands for atom, _ in form.terms)


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
        raise TcError(f"{shown} is too large for a size", expr.span, code="TC41")
    return form
