"""A short integer that is dequantized and quantized again alike, which is the integer itself.

Exporters put a QuantizeLinear and a DequantizeLinear around every operator, those that only
move elements included, so values of quantized models are full of such pairs.

Why it is exact: for a scale ``s`` and an integer ``k`` up to ``2**17``, ``k * s`` and the
quotient by ``s`` are each off by at most one part in ``2**24``, as long as no denormal and no
infinity comes up; both together by less than a half, so the nearest integer is ``k``.
"""

from __future__ import annotations

import numpy as np

from tcfuse.tc.ast import Access, Binary, Call, Cast, Const, Expr
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.literals import literal_value
from tcfuse.types import DType

_MOST = 2.0**17  # of the difference of two integers of 16 bits
_FLOATS = np.finfo(np.float32)


def same_number(node: Cast, types: ExprTypes) -> Expr | None:
    """What ``node`` rounds to its own type, if that has the type and the value of ``node``.

    Args:
        node: A conversion to a short integer.
        types: Of all pool nodes.
    """
    least, largest = node.dtype.limits
    match node.operand:
        case Cast(DType.INT32, Binary("min", Binary("max", moved, low), high)):
            lowest, highest = literal_value(low), literal_value(high)
        case _:
            return None
    if lowest is None or highest is None or lowest > least or highest < largest:
        return None
    rounded, zero = _shift(moved, "+")
    match rounded:
        case Call("roundeven", (scaled,)) if types[scaled] is DType.FLOAT32:
            number, taken = _shift(_unscaled(scaled), "-")
        case _:
            return None
    match number:
        case Cast(DType.INT32 | DType.FLOAT32, element):
            pass
        case Access() as element if taken == 0:
            pass
        case _:
            return None
    same = types[element] is node.dtype and zero is not None and taken == zero
    return element if same else None


def _shift(moved: Expr | None, operator: str) -> tuple[Expr | None, int | float | None]:
    """What a literal is added to or taken from, and the literal."""
    if isinstance(moved, Binary) and moved.operator == operator:
        return moved.left, literal_value(moved.right)
    return moved, 0


def _unscaled(scaled: Expr) -> Expr | None:
    """``k`` if ``scaled`` is ``k * s / s``; a division by a power of two may be a product."""
    match scaled:
        case Binary("/", Binary("*", number, scale), divisor):
            factor, restored = literal_value(scale), literal_value(divisor)
        case Binary("*", Binary("*", number, scale), inverse):
            factor, product = literal_value(scale), literal_value(inverse)
            restored = 1 / product if product else None
        case Binary("*", number, Cast(_, Const()) | Const() as scale):
            factor, restored = literal_value(scale), 1
        case _:
            return None
    if factor is None or factor != restored:
        return None
    is_plain = _FLOATS.tiny <= abs(factor) <= _FLOATS.max / _MOST
    return number if is_plain else None
