"""Which divisors may be replaced by their reciprocals.

A product with the reciprocal is within 1.5 ulp of the quotient, but ``x * (1 / x)`` need not be
1, which a floor or a comparison behind it would show.  A sum of rounded terms is not exact, so
a quotient by it (softmax, a mean, a standard deviation) has no exact values to lose.  One by a
maximum, a parameter or a literal may have some, and stays a division.
"""

from __future__ import annotations

from tcfuse.poly.scop import Scop
from tcfuse.tc.ast import Access, Call, Expr, Var, walk


def is_sum(scop: Scop, divisor: Expr, lets: dict[str, Expr]) -> bool:
    """Whether everything ``divisor`` reads comes out of sums of the same kernel."""
    return _reads_sums(scop, divisor, lets, frozenset())


def is_root(scop: Scop, divisor: Expr) -> bool:
    """Whether ``divisor`` is a square root, whose reciprocal is a number where it is one.

    Roots lie between 2^-75 and 2^64 (doubles: 2^-537 and 2^512) if they are not 0, infinite or
    NaN, which divide as their reciprocals multiply.
    """
    match divisor:
        case Call("sqrt"):
            return True
        case Access(tensor):
            writers = [s for s in scop.statements if s.comprehension.tensor == tensor]
            if len(writers) != 1 or writers[0].is_update or writers[0].comprehension.lets:
                return False
            return isinstance(root := writers[0].comprehension.value, Call) and (
                root.function == "sqrt"
            )
        case _:
            return False


def _reads_sums(scop: Scop, expr: Expr, lets: dict[str, Expr], above: frozenset[str]) -> bool:
    found = False
    for node in walk(expr):
        if isinstance(node, Access):
            if node.tensor in above or not _comes_from_sums(scop, node.tensor, above):
                return False
            found = True
        elif isinstance(node, Var) and node.name in lets:
            inner = {k: v for k, v in lets.items() if k != node.name}
            if not _reads_sums(scop, lets[node.name], inner, above):
                return False
            found = True
    return found


def _comes_from_sums(scop: Scop, tensor: str, above: frozenset[str]) -> bool:
    writers = [s for s in scop.statements if s.comprehension.tensor == tensor and not s.is_init]
    if not writers:
        return False  # a parameter
    for statement in writers:
        written = statement.comprehension
        if statement.is_update:
            if written.assign.operator != "+" or not statement.reduction:
                return False
            continue
        lets = {let.name: let.value for let in written.lets}
        if not _reads_sums(scop, written.value, lets, above | {tensor}):
            return False
    return True
