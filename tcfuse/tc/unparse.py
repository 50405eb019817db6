"""``ast.Def`` to text, the inverse of ``tc.parser``; a statement a line, no spare brackets."""

from __future__ import annotations

import math

from tcfuse.tc.ast import (
    Access,
    Binary,
    Call,
    Cast,
    Comprehension,
    Const,
    Def,
    Expr,
    Param,
    Select,
    Unary,
    Var,
)

WIDTH = 96
_TERNARY, _UNARY, _PRIMARY = 1, 7, 8
_PRECEDENCE: dict[str, int] = {
    "||": 2,
    "&&": 3,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 4),
    **dict.fromkeys("+-", 5),
    **dict.fromkeys("*/%", 6),
    **dict.fromkeys(("min", "max"), _PRIMARY),
}


def unparse(definition: Def) -> str:
    """The text of ``definition``, ending in a newline."""
    params = ", ".join(map(_param, definition.params))
    returns = ", ".join(map(_param, definition.returns))
    lines = [f"def {definition.name}({params}) -> ({returns}) {{"]
    lines += [f"  {unparse_statement(statement)}" for statement in definition.body]
    return "\n".join([*lines, "}", ""])


def unparse_statement(statement: Comprehension) -> str:
    """The text of ``statement``; clauses get lines of their own when one line is too long."""
    head = (
        f"{statement.tensor}({', '.join(statement.indices)}) {statement.assign.value} "
        f"{unparse_expr(statement.value)}"
    )
    if statement.equivalent is not None:
        head += f" <=> {unparse_expr(statement.equivalent)}"
    ranges = ((r.name, unparse_expr(r.low), unparse_expr(r.high)) for r in statement.ranges)
    clauses = [
        *(f"{name} in {low}:{high}" for name, low, high in ranges),
        *(f"{let.name} = {unparse_expr(let.value)}" for let in statement.lets),
        *(f"exists {unparse_expr(e)}" for e in statement.exists),
    ]
    if not clauses:
        return head
    line = f"{head} where {', '.join(clauses)}"
    if len(line) + 2 <= WIDTH:
        return line
    return f"{head} where\n    " + ",\n    ".join(clauses)


def unparse_expr(expr: Expr) -> str:
    """The text of ``expr``."""
    # A stack of text and (expression, lowest precedence that needs no parentheses), because
    # expressions may be thousands of operators deep.
    pieces: list[str] = []
    stack: list[str | tuple[Expr, int]] = [(expr, 0)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        node, needed = item
        parts, precedence = _parts(node)
        if precedence < needed:
            parts = ["(", *parts, ")"]
        stack.extend(reversed(parts))
    return "".join(pieces)


def _parts(expr: Expr) -> tuple[list[str | tuple[Expr, int]], int]:
    """The texts and operands ``expr`` is printed as, and how tightly it binds."""
    match expr:
        case Var(name):
            return [name], _PRIMARY
        case Access(name, arguments) | Call(name, arguments):
            return _call(name, arguments), _PRIMARY
        case Binary(operator, left, right):
            level = _PRECEDENCE[operator]
            if level == _PRIMARY:
                return _call(operator, (left, right)), _PRIMARY
            return [(left, level), f" {operator} ", (right, level + 1)], level
        case Const(value):
            return [_literal(value)], _PRIMARY
        case Unary(operator, operand):
            # -(3) is a negation, -3 a literal.
            literal = isinstance(operand, Const) and not isinstance(operand.value, bool)
            needed = _PRIMARY + 1 if literal and operator == "-" else _UNARY
            return [operator, (operand, needed)], _UNARY
        case Cast(dtype, operand):
            return _call(dtype.tc, (operand,)), _PRIMARY
        case Select(condition, then, otherwise):
            level = _TERNARY
            return [(condition, level + 1), " ? ", (then, 0), " : ", (otherwise, level)], level


def _call(name: str, arguments: tuple[Expr, ...]) -> list[str | tuple[Expr, int]]:
    """The parts of ``name(arguments)``."""
    parts: list[str | tuple[Expr, int]] = [f"{name}("]
    for position, argument in enumerate(arguments):
        if position:
            parts.append(", ")
        parts.append((argument, 0))
    return [*parts, ")"]


def _literal(value: float | bool) -> str:
    """The text of a literal."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        return "nan()"
    return "inf()" if value > 0 else "-inf()"


def _param(param: Param) -> str:
    """The text of a declaration."""
    return f"{param.type} {param.name}" if param.type else param.name
