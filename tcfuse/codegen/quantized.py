"""Roundings to a short integer type, as quantization writes them.

``uint8(int32(min(max(roundeven(x) + Z, 0), 255)))`` is one function of ``x`` and ``Z``: bounds
moved by ``Z`` come first, and what is left rounds to a whole number by one addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcfuse.tc.ast import Access, Binary, Call, Cast, Const, Expr, children
from tcfuse.types import DType

_SHORT = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """A rounding to a short integer type.

    Attributes:
        dtype: That type.
        value: What is rounded, half to even.
        zero: What is added then, the same wherever the statement runs; ``None`` adds nothing.
        inner: Nodes between that nobody needs the value of.
    """

    dtype: DType
    value: Expr
    zero: Expr | None
    inner: tuple[Expr, ...]


def roundings(nodes: Sequence[Expr]) -> tuple[dict[int, Quantized], dict[int, Quantized]]:
    """Roundings among the nodes of an expression, and the nodes inside them, by identity.

    One that something else needs a node inside of is none.
    """
    found = {id(n): q for n in nodes if (q := find_quantized(n)) is not None}
    inside = {id(n): key for key, q in found.items() for n in q.inner}
    for node in nodes:
        own = inside.get(id(node), id(node))
        for operand in children(node):
            if (key := inside.get(id(operand))) is not None and key != own:
                found.pop(key, None)
    return found, {id(n): q for q in found.values() for n in q.inner}


def find_quantized(expr: Expr) -> Quantized | None:
    """The rounding that ``expr`` is, if it is one."""
    match expr:
        case Cast(
            dtype, Cast(DType.INT32, Binary("min", raised, Const(high)) as bounded) as whole
        ):
            pass
        case _:
            return None
    match raised:
        case Binary("max", moved, Const(low)) if (
            dtype in _SHORT and (low, high) == dtype.limits
        ):
            inner = (whole, bounded, raised)
        case _:
            return None
    match moved:
        case Binary("+", Call("roundeven", (value,)) as rounded, zero) if _is_shared(
            zero, dtype
        ):
            return Quantized(dtype, value, zero, (*inner, moved, rounded))
        case Call("roundeven", (value,)):
            return Quantized(dtype, value, None, (*inner, moved))
        case _:
            return None


def _is_shared(zero: Expr, dtype: DType) -> bool:
    """Whether ``zero`` is the same number of that type, or as small, everywhere."""
    match zero:
        case Const(value):
            low, high = dtype.limits
            return type(value) is int and low <= value <= high
        case Access(_, ()):
            return True
        case _:
            return False
