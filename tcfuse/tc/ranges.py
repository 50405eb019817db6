"""Which values each variable of a statement takes, inferred from what it reads.

Greedy rounds: a variable is solved when every other variable of some conditions is known, as
the largest interval on which they hold for all values of the known ones.  What is left at the
end is either proved, impossible (an error), or a precondition on the sizes.

Source: the range inference of Tensor Comprehensions, forward and statement by statement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tcfuse.errors import Span, TcError
from tcfuse.tc.ast import Binary, Const, Expr, Var
from tcfuse.tc.linear import Linear, extreme, floor_div, linear_of, nonnegative
from tcfuse.tc.unparse import unparse_expr


@dataclass(frozen=True, slots=True)
class Bounds:
    """``low <= value < high``."""

    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Read:
    """A subscript that must stay within the bounds of the dimension it indexes."""

    tensor: str
    subscript: Expr
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Condition:
    """``form >= 0``, and the read it comes from."""

    form: Linear
    read: Read


@dataclass(frozen=True, slots=True)
class Interval:
    """``low <= value < high``, exactly."""

    low: Linear
    high: Linear


@dataclass(frozen=True, slots=True)
class Precondition:
    """A condition on sizes that could not be proved, and what wants it."""

    condition: Expr
    span: Span | None
    reason: str

    @classmethod
    def of(cls, form: Linear, span: Span | None, reason: str) -> Precondition:
        """``form >= 0``, with nothing negative on either side."""
        zero = Linear.of(0)
        more = Linear(tuple(t for t in form.terms if t[1] > 0), max(form.constant, 0))
        less = Linear(tuple(t for t in form.terms if t[1] < 0), min(form.constant, 0))
        return cls(Binary("<=", (zero - less).expr, more.expr), span, reason)


@dataclass(frozen=True, slots=True)
class Inferred:
    """The ranges of all variables, and what must hold for the sizes."""

    bounds: Mapping[str, Bounds]
    preconditions: tuple[Precondition, ...]


def infer(
    variables: Sequence[str],
    explicit: Mapping[str, Bounds],
    declared: Mapping[str, Bounds],
    reads: Sequence[Read],
    lets: Mapping[str, Expr],
    span: Span | None = None,
    *,
    indices: Collection[str] = (),
    guarded: Sequence[Read] = (),
) -> Inferred:
    """The range of every one of ``variables``.

    Args:
        variables: Indices of the left-hand side, then reduction variables.
        explicit: Ranges that are given; they narrow the ranges of other variables.
        declared: Ranges that follow from the shape of the result; they do not, so a sum keeps
            all its terms and what they read becomes a precondition.
        reads: Every subscript that is used whatever the data are.
        lets: Value of each let, in order.
        span: The statement, for messages.
        indices: Those of ``variables`` that stand on the left-hand side.
        guarded: Reads in the branches of ternaries: they bound what nothing else does, where
            they use a variable as it is.

    Raises:
        TcError: A range cannot be found, or a read is out of bounds for all sizes.
    """
    quick = _bare_reads(variables, {**declared, **explicit}, reads)
    if quick is not None:
        return Inferred(quick, ())
    names = frozenset(variables)
    forms: dict[str, Linear | None] = {}
    for name, value in lets.items():
        forms[name] = linear_of(value, forms, names)
    solved = {v: _interval(b, forms, span) for v, b in explicit.items()}
    conditions = [c for read in reads for c in _conditions(read, forms, names)]
    conditions = [_eliminate(c, solved) for c in conditions]
    given = {v: _interval(b, forms, span) for v, b in declared.items() if v not in solved}
    while len(solved) < len(names):
        unsolved = names - solved.keys()
        found = _solve_round(unsolved, unsolved - given.keys(), conditions, span) | given
        given = {}
        if not found and guarded:
            bare = [r for r in guarded if r.subscript in tuple(map(Var, unsolved))]
            conditions += [c for read in bare for c in _conditions(read, forms, names)]
            guarded = ()
            continue
        if not found:
            left = [v for v in variables if v not in solved]
            raise _unsolved(left, conditions, span, indices)
        solved |= found
        conditions = [_eliminate(c, found) for c in conditions]
    bounds = {v: Bounds(i.low.expr, i.high.expr) for v, i in solved.items()}
    return Inferred({**bounds, **declared, **explicit}, _preconditions(conditions))


def _bare_reads(
    variables: Sequence[str], explicit: Mapping[str, Bounds], reads: Sequence[Read]
) -> Mapping[str, Bounds] | None:
    """The answer when every subscript is a variable whose uses agree; ``None`` otherwise."""
    found = dict(explicit)
    for read in reads:
        if not isinstance(read.subscript, Var) or read.subscript.name not in variables:
            return None
        if found.setdefault(read.subscript.name, read.bounds) != read.bounds:
            return None
    return found if len(found) == len(variables) else None


def _interval(
    bounds: Bounds, forms: Mapping[str, Linear | None], span: Span | None
) -> Interval:
    """The exact interval of an explicit range."""
    low, high = linear_of(bounds.low, forms), linear_of(bounds.high, forms)
    for form, expr in ((low, bounds.low), (high, bounds.high)):
        if form is None:
            hint = "give every variable an explicit range"
            message = f"cannot reason about the bound {unparse_expr(expr)}"
            raise TcError(message, expr.span or span, hint, code="TC44")
    assert low is not None
    assert high is not None
    return Interval(low, high)


def _conditions(
    read: Read, forms: Mapping[str, Linear | None], names: AbstractSet[str]
) -> Iterable[Condition]:
    """What a read asks for; nothing when its subscript depends on data or is not affine."""
    low, high = linear_of(read.bounds.low, {}), linear_of(read.bounds.high, {})
    subscript, divisor = read.subscript, 1
    if low is None or high is None:
        return
    match subscript:
        case Binary("/", dividend, Const(int(divisor))) if divisor > 0:
            subscript = dividend
    form = linear_of(subscript, forms, names)
    if form is not None:
        yield Condition(form - low * divisor, read)
        yield Condition(high * divisor - form - 1, read)


def _eliminate(condition: Condition, solved: Mapping[str, Interval]) -> Condition:
    """The condition that holds when ``condition`` does for all values of ``solved``."""
    form = condition.form
    for atom, factor in form.terms:
        if isinstance(atom, str) and (interval := solved.get(atom)):
            worst = interval.low if factor > 0 else interval.high - 1
            form = form.without(atom) + worst * factor
    return Condition(form, condition.read)


def _solve_round(
    unsolved: AbstractSet[str],
    wanted: AbstractSet[str],
    conditions: Sequence[Condition],
    span: Span | None,
) -> dict[str, Interval]:
    """Each of ``wanted`` whose interval follows from conditions without other variables."""
    lows: dict[str, list[Linear]] = {}
    highs: dict[str, list[Linear]] = {}
    for condition in conditions:
        free = [(a, c) for a, c in condition.form.terms if a in unsolved]
        if len(free) != 1:
            continue
        ((name, factor),) = free
        assert isinstance(name, str)
        bound = floor_div(condition.form.without(name), abs(factor))
        if factor > 0:
            lows.setdefault(name, []).append(-bound)
        else:
            highs.setdefault(name, []).append(bound + 1)
    found: dict[str, Interval] = {}
    for name in lows.keys() & highs.keys() & wanted:
        interval = Interval(extreme("max", lows[name]), extreme("min", highs[name]))
        if nonnegative(interval.low - interval.high - 1, 1):
            message = f"the range of {name!r} is empty: {interval.low} to {interval.high}"
            hint = "what it reads has no common part; narrow it with 'where'"
            raise TcError(message, span, hint, code="TC26")
        found[name] = interval
    return found


def _preconditions(conditions: Iterable[Condition]) -> tuple[Precondition, ...]:
    """What is left to check at run time.

    Raises:
        TcError: A condition cannot hold.
    """
    left: dict[Expr, Precondition] = {}
    for condition in conditions:
        form = condition.form
        if nonnegative(form):
            continue
        _check_possible(condition)
        read, text = condition.read, unparse_expr(condition.read.subscript)
        reason = f"for the subscript {text} of {read.tensor!r}"
        found = Precondition.of(form, read.subscript.span, reason)
        left.setdefault(found.condition, found)
    return tuple(left.values())


def check_possible(
    explicit: Mapping[str, Bounds], reads: Sequence[Read], lets: Mapping[str, Expr]
) -> None:
    """Raise when a read is out of bounds for all sizes although every range is given."""
    names = frozenset(explicit)
    forms: dict[str, Linear | None] = {}
    for name, value in lets.items():
        forms[name] = linear_of(value, forms, names)
    solved: dict[str, Interval] = {}
    for name, bounds in explicit.items():
        low, high = linear_of(bounds.low, forms), linear_of(bounds.high, forms)
        if low is not None and high is not None:
            solved[name] = Interval(low, high)
    for condition in (c for read in reads for c in _conditions(read, forms, names)):
        left = _eliminate(condition, solved)
        if not any(left.form.coefficient(name) for name in names):
            _check_possible(left)


def _check_possible(condition: Condition) -> None:
    """Raise when ``condition``, which is over sizes only, holds for none of them."""
    if nonnegative(-condition.form - 1, 1):
        read = condition.read
        raise TcError(
            f"the subscript {unparse_expr(read.subscript)} of {read.tensor!r} is out of bounds",
            read.subscript.span,
            "guard the read with a ternary, or narrow the range with 'where'",
            code="TC30",
        )


def _unsolved(
    names: Sequence[str],
    conditions: Sequence[Condition],
    span: Span | None,
    indices: Collection[str],
) -> TcError:
    """The complaint about variables without a range."""
    code = "TC27"
    if not any(c.form.coefficient(n) for c in conditions for n in names):
        code = "TC28" if names[0] in indices else "TC29"
    plural = "s" if len(names) > 1 else ""
    spelled = ", ".join(map(repr, names))
    known = dict.fromkeys(
        f"{c.form} >= 0" for c in conditions if any(c.form.coefficient(n) for n in names)
    )
    derived = f"; what is known: {', '.join(known)}" if known else ""
    hint = "add 'where " + ", ".join(f"{name} in 0:N" for name in names) + "'"
    message = f"cannot infer the range{plural} of {spelled}{derived}"
    return TcError(message, span, hint, code=code)
