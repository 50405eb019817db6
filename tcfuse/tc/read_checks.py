"""What must hold of the sizes so that every read stays inside its tensor.

A read that a ternary guards is looked at when it happens; all others must stay inside whatever
the data are.  Of a subscript that is affine in the variables the least and the greatest value
are exact, and so is the condition that they give.  Of others, ``(i + 1) / 3 + i % 2``, only
bounds are known: when these do not show that the read stays inside, it is checked at run time.
A clamp, ``max(min(i - 1, N - 1), 0)``, stays inside every tensor that has an element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tcfuse.tc.ast import (
    Access,
    Binary,
    Cast,
    Comprehension,
    Const,
    Expr,
    Unary,
    fold,
)
from tcfuse.tc.guards import unguarded
from tcfuse.tc.linear import Linear, extreme, floor_div, linear_of, nonnegative
from tcfuse.tc.pool import with_children
from tcfuse.tc.rebase import Affine
from tcfuse.types import DType

Ranges: TypeAlias = Mapping[str, tuple[Linear, Linear]]
"""Half-open ranges of variables, or of the dimensions of a tensor."""


@dataclass(frozen=True, slots=True)
class Condition:
    """``form >= 0`` must hold, for a read of ``access`` to stay inside in ``dimension``."""

    form: Linear
    access: Access
    dimension: int


@dataclass(frozen=True, slots=True)
class _Reach:
    """Bounds of a subscript.

    Attributes:
        lows: Each of them is not above any value.
        highs: Each of them is not below any value.
        exact: Whether ``lows`` and ``highs`` are single and attained.
    """

    lows: tuple[Linear, ...]
    highs: tuple[Linear, ...]
    exact: bool


def reads_inside(
    statement: Comprehension,
    ranges: Ranges,
    bounds: Mapping[str, tuple[tuple[Linear, Linear], ...]],
    affine: Affine,
) -> tuple[Comprehension, list[Condition]]:
    """The conditions of all reads, and the statement with other reads checked at run time.

    Args:
        statement: The statement.
        ranges: Of its variables.
        bounds: The half-open range of every dimension of every tensor.
        affine: The form of a subscript that is affine only with names for its sizes.
    """
    variables = frozenset(ranges)
    lets: dict[str, Linear | None] = {}
    named: dict[str, Linear | None] = {}
    for let in statement.lets:
        lets[let.name] = linear_of(let.value, lets, variables)
        named[let.name] = affine(let.value, named)

    def form_of(expr: Expr) -> Linear | None:
        found = linear_of(expr, lets, variables)
        return affine(expr, named) if found is None else found

    conditions: list[Condition] = []
    loose: dict[int, list[int]] = {}
    for access in _reads(statement):
        for d, (subscript, (low, high)) in enumerate(
            zip(access.subscripts, bounds[access.tensor], strict=True)
        ):
            reach = _reach(subscript, ranges, form_of)
            if reach is None:
                continue
            below = [least - low for least in reach.lows]
            above = [high - most - 1 for most in reach.highs]
            if reach.exact:
                conditions += [Condition(form, access, d) for form in (*below, *above)]
            elif not (_proved(below) and _proved(above)):
                if _proved(below, high - low) and _proved(above, high - low):
                    conditions.append(Condition(high - low - 1, access, d))
                else:
                    loose.setdefault(id(access), []).append(d)
    return _checked_at_run_time(statement, loose), conditions


def _proved(forms: Iterable[Linear], extent: Linear | None = None) -> bool:
    """Whether one of ``forms`` is never negative, ``extent``, a size name, being positive."""
    if extent is not None:
        match extent.terms:
            case ((str(name), 1),) if not extent.constant:
                raised = {name: Linear.of(name) + 1}
                forms = [f for form in forms if (f := linear_of(form.expr, raised))]
            case _:
                return False
    return any(map(nonnegative, forms))


def _reads(statement: Comprehension) -> Iterator[Access]:
    """Every read that happens whatever the data are, those of ``exists`` included."""
    for root in (*statement.values, *statement.exists):
        yield from (node for node in unguarded(root) if isinstance(node, Access))


def _reach(
    subscript: Expr, ranges: Ranges, form_of: Callable[[Expr], Linear | None]
) -> _Reach | None:
    """The bounds of a subscript; ``None`` when it depends on data."""

    def combine(node: Expr, operands: tuple[_Reach | None, ...]) -> _Reach | None:
        form = form_of(node)
        if form is not None:
            return _extremes(form, ranges)
        match node, operands:
            case Cast(DType.INT32 | DType.INT64), (operand,):
                return operand
            case Unary("-"), (_Reach(lows, highs, exact),):
                negated = (tuple(-h for h in highs), tuple(-low for low in lows))
                return _Reach(*negated, exact)
            case Binary(operator, _, right), (_Reach() as a, _Reach() as b):
                return _combined(operator, a, b, right)
            case _:
                return None

    whole = form_of(subscript)
    return fold(subscript, combine) if whole is None else _extremes(whole, ranges)


def _extremes(form: Linear, ranges: Ranges) -> _Reach:
    """The least and the greatest value of a form in which variables stand alone."""
    low = high = form
    for atom, factor in form.terms:
        if isinstance(atom, str) and atom in ranges:
            first, last = ranges[atom][0], ranges[atom][1] - 1
            least, most = (first, last) if factor > 0 else (last, first)
            low = low.without(atom) + least * factor
            high = high.without(atom) + most * factor
    return _Reach((low,), (high,), exact=True)


def _combined(operator: str, a: _Reach, b: _Reach, right: Expr) -> _Reach | None:
    match operator, right:
        case "+", _:
            return _Reach(_sums(a.lows, b.lows), _sums(a.highs, b.highs), exact=False)
        case "-", _:
            lows = _sums(a.lows, tuple(-h for h in b.highs))
            return _Reach(lows, _sums(a.highs, tuple(-low for low in b.lows)), exact=False)
        case "/", Const(int(divisor)) if divisor > 0:
            lows = tuple(floor_div(low, divisor) for low in a.lows)
            return _Reach(lows, tuple(floor_div(h, divisor) for h in a.highs), a.exact)
        case "%", Const(int(divisor)) if divisor > 0:
            nonneg = any(map(nonnegative, a.lows))
            highs = (Linear.of(divisor - 1), *(a.highs if nonneg else ()))
            return _Reach((Linear.of(0),), highs, exact=False)
        case "min", _:
            lows = tuple(extreme("min", (x, y)) for x in a.lows for y in b.lows)
            return _Reach(lows, (*a.highs, *b.highs), exact=False)
        case "max", _:
            highs = tuple(extreme("max", (x, y)) for x in a.highs for y in b.highs)
            return _Reach((*a.lows, *b.lows), highs, exact=False)
        case _:
            return None


def _sums(a: tuple[Linear, ...], b: tuple[Linear, ...]) -> tuple[Linear, ...]:
    return tuple(x + y for x in a for y in b)[:16]


def _checked_at_run_time(
    statement: Comprehension, loose: Mapping[int, list[int]]
) -> Comprehension:
    """``statement`` with some subscripts cast: no stage reasons about a cast."""
    if not loose:
        return statement

    def combine(node: Expr, operands: tuple[Expr, ...]) -> Expr:
        places = loose.get(id(node), ())
        return with_children(
            node,
            tuple(Cast(DType.INT64, x) if d in places else x for d, x in enumerate(operands)),
        )

    return replace(
        statement,
        value=fold(statement.value, combine),
        lets=tuple(replace(x, value=fold(x.value, combine)) for x in statement.lets),
    )
