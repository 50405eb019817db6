"""Expressions made simpler without changing any value, NaN, infinities and -0 included."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from tcfuse.tc.affine import Affine, affine
from tcfuse.tc.ast import Binary, Call, Cast, Const, Expr, Range, Select, Unary
from tcfuse.tc.conditions import COMPARISONS, compared
from tcfuse.tc.draft import bounds
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.literals import is_number, literal, literal_value
from tcfuse.tc.pool import Pool
from tcfuse.tc.requantize import same_number
from tcfuse.types import DType

_TRUE, _FALSE = Const(True), Const(False)


class Simplifier:
    """Simplifies pool nodes whose operands are simple already; a rule for ``Pool.rewrite``.

    Args:
        pool: Where the nodes live.
        types: Types of the tensors read.
        ranges: Ranges of index variables; comparisons and clamps they decide are decided.
    """

    def __init__(self, pool: Pool, types: ExprTypes, ranges: Iterable[Range] = ()) -> None:
        self.pool, self.types = pool, types
        self.ranges = {r.name: bounds(r) for r in ranges}

    def __call__(self, node: Expr) -> Expr:
        """``node`` or something simpler that is equal to it."""
        match node:
            case Binary("&&" | "||"):
                return self._logical(node)
            case Binary(operator) if operator in COMPARISONS:
                return self._comparison(node)
            case Binary():
                return self._index(node) or self._arithmetic(node)
            case Unary("!", Const(bool() as value)):
                return Const(not value)
            case Unary("!", Unary("!", operand)):
                return operand
            case Unary("-", Cast(dtype, Const(value))) if dtype.is_signed:
                return self._literal(dtype.compute, -value)
            case Cast(dtype, operand) as cast:
                return self._cast(cast, dtype, operand)
            case Select(Const(bool() as value), then, otherwise):
                return then if value else otherwise
            case Select(_, then, otherwise) if then is otherwise:
                return then
            case Call("pow", (base, exponent)):
                return self._power(node, base, exponent)
            case _:
                return node

    def bounds_of(self, value: Affine) -> tuple[Affine, Affine]:
        """The least and greatest value over the ranges, as affine expressions of sizes."""
        low = high = Affine((), value.constant)
        for name, coefficient in value.terms:
            if name in self.ranges:
                start, stop = self.ranges[name]
                ends = (start * coefficient, (stop - 1) * coefficient)
                least, greatest = ends if coefficient > 0 else ends[::-1]
                low, high = low + least, high + greatest
            else:
                low, high = (
                    low + Affine.of({name: coefficient}),
                    high + Affine.of({name: coefficient}),
                )
        return low, high

    def decide(self, node: Expr) -> bool | None:
        """Whether a comparison of affine expressions holds; ``None`` when that depends."""
        difference = compared(node)
        if difference is None or not isinstance(node, Binary):
            return None
        low, high = self.bounds_of(difference)
        negative, positive = (high * -1 - 1).never_negative, (low - 1).never_negative
        at_most, at_least = (high * -1).never_negative, low.never_negative
        zero = low == high == Affine(())
        always, never = {
            "<": (negative, at_least),
            "<=": (at_most, positive),
            ">": (positive, at_most),
            ">=": (at_least, negative),
            "==": (zero, negative or positive),
            "!=": (negative or positive, zero),
        }[node.operator]
        return True if always else False if never else None

    def _logical(self, node: Binary) -> Expr:
        decisive = node.operator == "||"
        for this, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(this, Const):
                return Const(decisive) if this.value is decisive else other
        return node.left if node.left is node.right else node

    def _comparison(self, node: Binary) -> Expr:
        decided = self.decide(node)
        if decided is not None:
            return _TRUE if decided else _FALSE
        return self._fold(node) or node

    def _index(self, node: Binary) -> Expr | None:
        """``node`` in normal form when it is an index expression."""
        left, right = affine(node.left), affine(node.right)
        if left is None or right is None:
            return None
        match node.operator:
            case "+" | "-" | "*":
                value = affine(node)
                return None if value is None else self.pool.add(value.expr())
            case "min" | "max":
                return self._clamp(node, left - right)
            case "/" | "%" if right.is_constant and right.constant > 0 and left.terms:
                return self._divide(node, left, right.constant)
            case _:
                return None

    def _clamp(self, node: Binary, difference: Affine) -> Expr:
        low, high = self.bounds_of(difference)
        smaller, larger = (
            (node.left, node.right) if node.operator == "min" else (node.right, node.left)
        )
        if (high * -1).never_negative:
            return smaller
        return larger if low.never_negative else node

    def _divide(self, node: Binary, value: Affine, divisor: int) -> Expr:
        """Floor division and remainder: multiples of the divisor are taken out."""
        whole = Affine.of({n: c for n, c in value.terms if c % divisor == 0})
        low, _ = self.bounds_of(value - whole)
        base = low.constant if low.is_constant else value.constant
        whole += base - base % divisor
        rest = value - whole
        low, high = self.bounds_of(rest)
        if low.never_negative and (high * -1 + (divisor - 1)).never_negative:
            quotient = Affine.of(
                {n: c // divisor for n, c in whole.terms}, whole.constant // divisor
            )
            return self.pool.add((quotient if node.operator == "/" else rest).expr())
        if node.operator == "%" and whole != Affine(()):
            return Binary("%", self.pool.add(rest.expr()), node.right)
        return node

    def _arithmetic(self, node: Binary) -> Expr:
        folded = self._fold(node)
        if folded is not None:
            return folded
        match node.operator:
            case "*" | "/" if is_number(node.right, 1) and self._same_type(node, node.left):
                return node.left
            case "*" if is_number(node.left, 1) and self._same_type(node, node.right):
                return node.right
            case "/":
                return self._reciprocal(node)
            case _:
                return node

    def _same_type(self, a: Expr, b: Expr) -> bool:
        return self.types[a] is self.types[b]

    def _reciprocal(self, node: Binary) -> Expr:
        """Division by a power of two as a multiplication, which rounds alike."""
        kind = self.types[node]
        literal = literal_value(node.right)
        if kind not in (DType.FLOAT32, DType.FLOAT64) or literal is None or not literal:
            return node
        mantissa, exponent = math.frexp(literal)
        if abs(mantissa) != 0.5 or abs(exponent) > 100:
            return node
        inverse = Const(1.0 / literal)
        right = Cast(node.right.dtype, inverse) if isinstance(node.right, Cast) else inverse
        return Binary("*", node.left, self.pool.add(right))

    def _fold(self, node: Binary) -> Expr | None:
        """``node`` computed, when its operands are literals of a known type."""
        a, b = literal_value(node.left), literal_value(node.right)
        dtype = self.types[node.left] if isinstance(node.left, Cast) else self.types[node.right]
        if a is None or b is None or not isinstance(dtype, DType) or dtype is DType.BOOL:
            return None
        both_cast = isinstance(node.left, Cast) and isinstance(node.right, Cast)
        if both_cast and not self._same_type(node.left, node.right):
            return None
        if not dtype.is_float and (isinstance(a, float) or isinstance(b, float)):
            return None
        operation = (
            np.true_divide
            if (node.operator, dtype.is_float) == ("/", True)
            else _OPERATIONS[node.operator]
        )
        if operation in (np.floor_divide, np.remainder) and (b == 0 or dtype.is_float):
            return None
        compute = dtype.compute
        with np.errstate(all="ignore"):
            x, y = (np.asarray(v).astype(compute.numpy) for v in (a, b))
            result = operation(x, y)
        if node.operator in COMPARISONS:
            return Const(bool(result))
        return self._literal(compute, result.item())

    def _literal(self, dtype: DType, value: float) -> Expr:
        return self.pool.add(literal(dtype, value))

    def _cast(self, node: Cast, dtype: DType, operand: Expr) -> Expr:
        value = literal_value(operand)
        if value is not None and dtype.is_float:
            return literal(dtype, value)
        if isinstance(value, int) and dtype is not DType.BOOL:
            least, largest = dtype.limits
            return literal(dtype, value) if least <= value <= largest else node
        if self.types[operand] is dtype:
            return operand
        return same_number(node, self.types) or node

    def _power(self, node: Expr, base: Expr, exponent: Expr) -> Expr:
        value = literal_value(exponent)
        if value == 1 and self._same_type(node, base):
            return base
        square = self.pool.intern(Binary("*", base, base))
        return square if value == 2 and self._same_type(node, square) else node


_OPERATIONS: Mapping[str, Callable[..., np.generic]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.floor_divide,
    "%": np.remainder,
    "min": np.minimum,
    "max": np.maximum,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
