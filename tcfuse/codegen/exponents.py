"""Which exponents are never positive, so that their power needs no check for infinity.

A softmax takes ``exp(X(i, k) - M(i))`` with the maximum ``M(i) max=! X(i, k)`` of the same
values: what the maximum is subtracted from is at most as large (or NaN, which a power keeps).
"""

from __future__ import annotations

from collections.abc import Mapping

from tcfuse.poly.scop import Scop, Statement
from tcfuse.tc.ast import Access, Binary, Call, Expr, Var, children, walk

MOST_NODES = 40  # of a value that is compared


def never_positive(scop: Scop, power: Expr) -> bool:
    """Whether ``power`` is ``exp`` of a value minus the maximum of such values."""
    match power:
        case Call("exp", (Binary("-", value, Access(maximum, subscripts)),)):
            writers = [s for s in scop.statements if s.comprehension.tensor == maximum]
            updates = [s for s in writers if not s.is_init]
            if len(updates) != 1 or len(writers) != 2:
                return False
            return _is_among(scop, updates[0], value, subscripts)
        case _:
            return False


def _is_among(scop: Scop, update: Statement, value: Expr, subscripts: tuple[Expr, ...]) -> bool:
    """Whether ``value`` is one of the values whose maximum ``update`` takes."""
    written = update.comprehension
    if written.assign.operator != "max" or written.lets:
        return False
    if sum(1 for _ in walk(written.value)) > MOST_NODES:
        return False
    found = dict(zip(written.indices, subscripts, strict=True))
    if not _matches(written.value, value, set(update.iterators), found):
        return False
    later = scop.statements[scop.statements.index(update) :]
    changed = {s.comprehension.tensor for s in later}
    return not any(isinstance(n, Access) and n.tensor in changed for n in walk(written.value))


def _matches(pattern: Expr, expr: Expr, variables: set[str], found: dict[str, Expr]) -> bool:
    """Whether ``expr`` is ``pattern`` with an expression for each of its variables."""
    if isinstance(pattern, Var) and pattern.name in variables:
        return found.setdefault(pattern.name, expr) == expr
    if type(pattern) is not type(expr) or _head(pattern) != _head(expr):
        return False
    operands, others = children(pattern), children(expr)
    return len(operands) == len(others) and all(
        _matches(a, b, variables, found) for a, b in zip(operands, others, strict=True)
    )


def _head(expr: Expr) -> Mapping[str, object]:
    """Everything about a node but its operands."""
    names = ("value", "name", "tensor", "operator", "function", "dtype")
    plain = (str, int, float, bool)
    return {
        n: v for n in names if isinstance(v := getattr(expr, n, None), plain) or n == "dtype"
    }
