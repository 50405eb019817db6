"""The value of the C expressions that say how large things are.

They are what ``interface.Interface`` and ``targets.base`` hold: integers, size names, ``+ - * /
%``, comparisons, ``&& || !``, ``?:`` and four functions.  The text is parsed, never run.  As in
the compiled table (``ort.c_text.guarded``), a divisor of zero counts as one.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping

from tcfuse.errors import TcError, UnsupportedError
from tcfuse.tc.ast import Access, Binary, Const, Expr, Select, Unary, Var
from tcfuse.tc.parser import parse_expr
from tcfuse.types import Size


def _quotient(a: int, b: int) -> int:
    """``a / b`` in C: rounded towards zero."""
    b = b or 1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int:
    """``a % b`` in C: it has the sign of ``a``."""
    return a - (b or 1) * _quotient(a, b)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": _remainder,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_FUNCTIONS: dict[tuple[str, int], Callable[..., int]] = {
    ("tcf_min", 2): min,
    ("tcf_max", 2): max,
    ("tcf_floor_div", 2): lambda a, b: a // (b or 1),
    ("tcf_nonzero", 1): lambda a: a or 1,
}


def evaluate(expression: Size, values: Mapping[str, int]) -> int:
    """The value of ``expression``; a condition that holds is 1.

    Args:
        expression: A number, or C text.
        values: The names that it may use.

    Raises:
        UnsupportedError: It is made of anything else than the above.
    """
    if isinstance(expression, int):
        return expression
    return int(_value(_parsed(expression), values))


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> Expr:
    try:
        return parse_expr(text)
    except TcError as error:
        raise UnsupportedError(f"cannot evaluate {text!r}: {error}") from error


def _value(expr: Expr, values: Mapping[str, int]) -> int:
    match expr:
        case Const(value=int(number)):
            return number
        case Var(name) if name in values:
            return values[name]
        case Unary("-", operand):
            return -_value(operand, values)
        case Unary("!", operand):
            return not _value(operand, values)
        case Select(condition, then, otherwise):
            return _value(then if _value(condition, values) else otherwise, values)
        case Binary("&&", left, right):
            return bool(_value(left, values)) and bool(_value(right, values))
        case Binary("||", left, right):
            return bool(_value(left, values)) or bool(_value(right, values))
        case Binary(symbol, left, right) if symbol in _OPERATORS:
            return _OPERATORS[symbol](_value(left, values), _value(right, values))
        case Access(name, arguments) if (name, len(arguments)) in _FUNCTIONS:
            given = (_value(argument, values) for argument in arguments)
            return _FUNCTIONS[name, len(arguments)](*given)
    raise UnsupportedError(f"cannot evaluate {expr}")
