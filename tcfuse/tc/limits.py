"""How large a definition may be that a kernel is made of.

A definition is only data: one out of all proportion ends in a sentence, not in hours of integer
programming or in numbers that C++ does not hold.
"""

from __future__ import annotations

from tcfuse.errors import Span, TcError
from tcfuse.tc.ast import Access, Const, Expr, post_order, walk
from tcfuse.tc.checked import CheckedDef

MOST_STATEMENTS = 256
MOST_VARIABLES = 32
MOST_OPERATORS = 20_000
MOST_OPERATORS_IN_SUBSCRIPTS = 256


def check_limits(checked: CheckedDef) -> None:
    """Refuse what would take the polyhedral stages forever, or C++ cannot hold.

    Raises:
        TcError: There is too much of something.
    """
    count = len(checked.statements)
    if count > MOST_STATEMENTS:
        message = f"{count} statements are too many for one kernel"
        raise _too_large(message, checked.definition.span, MOST_STATEMENTS)
    for item in checked.statements:
        statement = item.comprehension
        if len(item.ranges) > MOST_VARIABLES:
            message = f"{len(item.ranges)} variables are too many for one statement"
            raise _too_large(message, statement.span, MOST_VARIABLES)
        for expr in statement.values:
            _check_expression(expr, statement.span)


def _check_expression(expr: Expr, span: Span | None) -> None:
    """Refuse what is too large in the value of a statement."""
    nodes = post_order(expr)
    if len(nodes) > MOST_OPERATORS:
        raise _too_large("the expression is too long for one kernel", span, MOST_OPERATORS)
    for node in nodes:
        if isinstance(node, Const) and isinstance(node.value, int) and node.value >= 1 << 64:
            raise _too_large(f"{node.value} is too large for a number", node.span or span, None)
        if isinstance(node, Access):
            size = sum(1 for e in node.subscripts for _ in walk(e))
            if size > MOST_OPERATORS_IN_SUBSCRIPTS:
                message = f"the subscripts of {node.tensor!r} are too long"
                raise _too_large(message, node.span or span, MOST_OPERATORS_IN_SUBSCRIPTS)


def _too_large(message: str, span: Span | None, most: int | None) -> TcError:
    hint = None if most is None else f"at most {most}; split the definition"
    return TcError(message, span, hint, code="TC41")
