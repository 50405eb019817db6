"""Dimensions: integers as integers, everything else as sympy expressions over size names.

sympy is slow, so every function here answers for plain integers first.  A size name is a
positive integer symbol; ``symbol`` returns one and the same object for a name.  Where the
difference between "positive" and "not negative" could make an answer wrong for an empty
dimension, the predicates below (``nonnegative``, ``positive``) also hold for a size of zero.

An expression lives in an ``ir.Shape`` as a ``SizeDim``; any other symbolic dimension of a model
is read by ``parse``.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

import onnx_ir as ir
import sympy

Dim: TypeAlias = int | sympy.Expr
Dims: TypeAlias = tuple[Dim, ...]

PLAIN_NAME = re.compile(r"[A-Za-z_][\w.]*")
_LONGEST_TEXT = 256  # characters of an expression before it gets a name of its own


class SizeDim(ir.SymbolicDim):
    """A symbolic dimension that carries its expression; its text is the expression printed."""

    __slots__ = ("expression",)

    def __init__(self, expression: sympy.Expr) -> None:
        super().__init__(str(expression))
        self.expression = expression


@cache
def symbol(name: str) -> sympy.Symbol:
    """The size of that name: a positive integer."""
    return sympy.Symbol(name, integer=True, positive=True)


@lru_cache(maxsize=4096)
def size_dim(expression: sympy.Expr) -> SizeDim:
    """What stands for ``expression`` in an ``ir.Shape``."""
    return SizeDim(expression)


def is_long(dim: Dim) -> bool:
    """Whether the expression is too large to be worth keeping."""
    if isinstance(dim, int):
        return dim.bit_length() > 63
    return len(size_dim(dim).value or "") > _LONGEST_TEXT


def number(expression: sympy.Expr) -> Dim:
    """``expression`` with integer constants as ``int``."""
    return int(expression) if expression.is_Integer else expression


def add(a: Dim, b: Dim) -> Dim:
    """``a + b``."""
    return a + b if isinstance(a, int) and isinstance(b, int) else number(sympy.Add(a, b))


def subtract(a: Dim, b: Dim) -> Dim:
    """``a - b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return number(sympy.Add(a, sympy.Mul(-1, b)))


def multiply(a: Dim, b: Dim) -> Dim:
    """``a * b``."""
    return a * b if isinstance(a, int) and isinstance(b, int) else number(sympy.Mul(a, b))


def product(dims: Iterable[Dim]) -> Dim:
    """Product of all, 1 when there is none; zero as soon as one is zero."""
    constant, rest = 1, []
    for dim in dims:
        if isinstance(dim, int):
            constant *= dim
        else:
            rest.append(dim)
    return number(sympy.Mul(constant, *rest)) if rest and constant else constant


@lru_cache(maxsize=4096)
def quotient(a: Dim, b: Dim) -> sympy.Expr:
    """``a / b`` in lowest terms; ``b`` is not 0."""
    result = sympy.Mul(a, sympy.Pow(b, -1))
    if result.is_Integer or not sympy.denom(result).free_symbols:
        return result
    return sympy.cancel(result)


def exact_divide(a: Dim, b: Dim) -> Dim:
    """``a / b`` where the model is only valid when ``b`` divides ``a``.

    A fraction of a sum is written with ``floor``, so that every summand stays integral.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else 0
    result = quotient(a, b)
    if result.is_Add and not result.is_integer:
        return number(sympy.floor(result))
    return number(result)


def floor_divide(a: Dim, b: Dim) -> Dim:
    """``a / b`` rounded down; ``b`` is positive."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return number(sympy.floor(quotient(a, b)))


def ceil_divide(a: Dim, b: Dim) -> Dim:
    """``a / b`` rounded up; ``b`` is positive."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    if b == 1:
        return a
    return floor_divide(add(a, subtract(b, 1)), b)


@lru_cache(maxsize=4096)
def _as_nonnegative(expression: sympy.Expr) -> sympy.Expr:
    """``expression`` over symbols that may be zero."""
    return expression.xreplace(
        {
            s: sympy.Symbol(s.name, integer=True, nonnegative=True)
            for s in expression.free_symbols
        }
    )


def nonnegative(dim: Dim) -> bool:
    """Whether ``dim >= 0`` for all sizes, zero included."""
    return dim >= 0 if isinstance(dim, int) else bool(_as_nonnegative(dim).is_nonnegative)


def positive(dim: Dim) -> bool:
    """Whether ``dim > 0`` for all sizes, zero included."""
    return dim > 0 if isinstance(dim, int) else bool(_as_nonnegative(dim).is_positive)


def maximum(a: Dim, b: Dim) -> Dim:
    """The larger one, simplified only where that also holds for sizes of zero."""
    if nonnegative(subtract(a, b)):
        return a
    if nonnegative(subtract(b, a)):
        return b
    return sympy.Max(a, b, evaluate=False)


def minimum(a: Dim, b: Dim) -> Dim:
    """The smaller one, simplified only where that also holds for sizes of zero."""
    if nonnegative(subtract(a, b)):
        return b
    if nonnegative(subtract(b, a)):
        return a
    return sympy.Min(a, b, evaluate=False)


def clamp_length(dim: Dim) -> Dim:
    """``max(dim, 0)`` for the length of a slice; ``N - 1`` stays as it is, for ``N >= 1``."""
    return max(dim, 0) if isinstance(dim, int) else number(sympy.Max(dim, 0))


@lru_cache(maxsize=4096)
def _equal_expressions(a: Dim, b: Dim) -> bool:
    return bool(sympy.expand(sympy.Add(a, sympy.Mul(-1, b))) == 0)


def equal(a: Dim, b: Dim) -> bool:
    """Whether both are the same number for all sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a is b or a == b:
        return True
    if isinstance(a, int) or isinstance(b, int):
        return False  # `number` leaves no constant behind an expression
    return _equal_expressions(a, b)


def from_float(value: float) -> Dim | None:
    """A float that is exact in few binary digits, as a number; ``None`` for any other."""
    if not math.isfinite(value):
        return None
    numerator, denominator = float(value).as_integer_ratio()
    if denominator == 1:
        return numerator
    return sympy.Rational(numerator, denominator) if denominator <= 1 << 10 else None


def parse(text: str, names: Iterable[str] | None = None) -> Dim:
    """The expression a dimension's text means.

    Args:
        text: ``"N"``, ``"past + 1"``, or anything a tool wrote there.
        names: The sizes a compound text may be made of; all when ``None``.  A text made of
            others ("batch-size") is a name as a whole.
    """
    if not PLAIN_NAME.fullmatch(text) and len(text) <= _LONGEST_TEXT:
        try:
            expression = _evaluate(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
            return symbol(text)
        known = None if names is None else set(names)
        free = set() if isinstance(expression, int) else expression.free_symbols
        if free and (known is None or all(s.name in known for s in free)):
            return expression
    return symbol(text)


def _evaluate(node: ast.expr) -> Dim:
    """The value of a syntax tree of integers, names, ``+ - * / //`` and a few calls.

    Raises:
        ValueError: It holds anything else.
    """
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return multiply(-1, _evaluate(operand))
        case ast.BinOp(left=left, op=operator, right=right):
            return _evaluate_binary(operator, _evaluate(left), _evaluate(right))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _evaluate_call(name.lower(), [_evaluate(a) for a in arguments])
        case _:
            raise ValueError(f"{ast.dump(node)} is no part of a dimension")


def _evaluate_binary(operator: ast.operator, a: Dim, b: Dim) -> Dim:
    match operator:
        case ast.Add():
            return add(a, b)
        case ast.Sub():
            return subtract(a, b)
        case ast.Mult():
            return multiply(a, b)
        case ast.Div() if b != 0:
            return number(quotient(a, b))
        case ast.FloorDiv() if b != 0:
            return floor_divide(a, b)
        case _:
            raise ValueError("no operator of a dimension")


def _evaluate_call(name: str, arguments: Sequence[Dim]) -> Dim:
    if name == "floor" and len(arguments) == 1:
        return number(sympy.floor(arguments[0]))
    if name in ("max", "min") and len(arguments) == 2:
        return (maximum if name == "max" else minimum)(*arguments)
    if name == "mod" and len(arguments) == 2:
        return number(sympy.Mod(*arguments))
    raise ValueError(f"{name} is no function of a dimension")


def dims(value: ir.Value) -> Dims | None:
    """The dimensions of ``value``: integers and expressions; ``None`` when its rank is unknown.

    A dimension the model says nothing about, which shape inference has not named yet, makes the
    whole shape unknown.
    """
    shape = value.shape
    if shape is None:
        return None
    result: list[Dim] = []
    for dim in shape:
        if isinstance(dim, int):
            result.append(dim)
        elif isinstance(dim, SizeDim):
            result.append(dim.expression)
        elif dim.value:
            result.append(parse(dim.value))
        else:
            return None
    return tuple(result)


def set_dims(value: ir.Value, shape: Dims) -> None:
    """Give ``value`` that shape; denotations of an old one of the same rank stay."""
    old = value.shape
    denotations = None
    if old is not None and len(old) == len(shape):
        denotations = [old.get_denotation(k) for k in range(len(old))]
    value.shape = ir.Shape(
        [d if isinstance(d, int) else size_dim(d) for d in shape], denotations=denotations
    )
