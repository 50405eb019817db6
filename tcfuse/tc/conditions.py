"""Comparisons of one index variable with a bound: what concatenation and padding test."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from tcfuse.tc.affine import Affine, affine
from tcfuse.tc.ast import Binary, Expr, Range

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True, slots=True)
class Threshold:
    """``variable < point`` when ``below``, else ``variable >= point``."""

    variable: str
    below: bool
    point: Affine

    def expr(self) -> Expr:
        """The comparison."""
        name = Affine(((self.variable, 1),))
        return Binary("<" if self.below else ">=", name.expr(), self.point.expr())


def threshold(expr: Expr, indices: Container[str]) -> Threshold | None:
    """``expr`` as a threshold on one of ``indices``; ``None`` when it is none."""
    difference = compared(expr)
    if difference is None or not isinstance(expr, Binary) or expr.operator in ("==", "!="):
        return None
    names = [(n, c) for n, c in difference.terms if n in indices]
    if len(names) != 1 or abs(names[0][1]) != 1:
        return None
    ((name, sign),) = names
    rest = difference - Affine(((name, sign),))
    strict = int(expr.operator in ("<=", ">"))
    if sign > 0:  # name + rest < 0
        return Threshold(name, expr.operator in ("<", "<="), rest * -1 + strict)
    # -name + rest < 0 is name > rest
    strict = int(expr.operator in ("<", ">="))
    return Threshold(name, expr.operator in (">", ">="), rest + strict)


def digit_threshold(expr: Expr, ranges: Sequence[Range]) -> Threshold | None:
    """Where ``16 * k + l < 24`` with ``l`` in 0:16 is decided by ``k`` alone: below 1.

    In the one block behind that point ``l`` decides.
    """
    difference = compared(expr)
    if difference is None or not isinstance(expr, Binary) or expr.operator not in ("<", ">="):
        return None
    known = {r.name: (affine(r.low), affine(r.high)) for r in ranges}
    digits = sorted(difference.terms, key=lambda term: abs(term[1]))
    if len(digits) != 2 or not all(name in known for name, _ in digits):
        return None
    (inner, one), (outer, width) = digits
    if one != 1 or width <= 1 or known[inner] != (Affine(()), Affine((), width)):
        return None
    point, low = -difference.constant // width, known[outer][0]
    if low is not None and low.is_constant and point <= low.constant:
        point = low.constant + 1  # the first block is the one that is not whole
    return Threshold(outer, expr.operator == "<", Affine((), point))


def compared(expr: Expr) -> Affine | None:
    """``left - right`` of a comparison of affine expressions; ``None`` for anything else."""
    if not isinstance(expr, Binary) or expr.operator not in COMPARISONS:
        return None
    left, right = affine(expr.left), affine(expr.right)
    return None if left is None or right is None else left - right
