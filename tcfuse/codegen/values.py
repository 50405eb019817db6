"""Typed C++ expressions: literals, conversions, and one value for all lanes or one each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tcfuse.codegen.storage import C_TYPES
from tcfuse.tc.typing import Type, resolve
from tcfuse.types import DType


@dataclass(frozen=True, slots=True)
class Row:
    """Neighbouring elements in memory, one for each lane.

    Attributes:
        pointer: C text of where the lanes' index is zero; the same for all lanes.
        type: Of the elements.
    """

    pointer: str
    type: DType


@dataclass(frozen=True, slots=True)
class Value:
    """A C++ expression.

    Attributes:
        text: The expression, safe as an operand.
        type: Its type; short floats are held as ``float``.
        varying: Whether each lane has its own value.
        literal: The number, for literals.
        row: Where it is in memory, for lanes that are loaded at once.
    """

    text: str
    type: Type
    varying: bool = False
    literal: float | int | bool | None = None
    row: Row | None = None

    @property
    def trivial(self) -> bool:
        """Whether naming it would gain nothing."""
        return self.literal is not None or self.text.isidentifier()


def literal_text(value: float | bool, dtype: DType) -> str:
    """A literal of ``dtype``'s compute type."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if dtype.is_float:
        return _float_text(float(value), dtype)
    low, high = dtype.limits
    number = int(value)
    if dtype is DType.INT64 and number == low:
        return "(-9223372036854775807LL - 1)"
    wrapped = (number - int(low)) % (int(high) - int(low) + 1) + int(low)
    suffix = {DType.UINT64: "ULL", DType.INT64: "LL"}.get(dtype, "")
    return f"{C_TYPES[dtype]}({wrapped}{suffix})"


def _float_text(value: float, dtype: DType) -> str:
    suffix = "" if dtype is DType.FLOAT64 else "f"
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")'
    with np.errstate(over="ignore"):
        shown = value if dtype is DType.FLOAT64 else float(np.float32(value))
    if math.isinf(shown):
        return f"{'-' if shown < 0 else ''}__builtin_inf{suffix}()"
    text = (
        repr(shown) if dtype is DType.FLOAT64 else np.format_float_scientific(np.float32(shown))
    )
    if "e" not in text and "." not in text:
        text += ".0"
    return f"({text}{suffix})" if text.startswith("-") else f"{text}{suffix}"


def identity_text(operator: str, dtype: DType) -> str:
    """What leaves every value as it is under a reduction operator."""
    match operator:
        case "+":
            return literal_text(0, dtype)
        case "*":
            return literal_text(1, dtype)
        case _:
            lowest = operator == "max"
    if dtype is DType.BOOL:
        return literal_text(not lowest, dtype)
    if dtype.is_float:
        return literal_text(-math.inf if lowest else math.inf, dtype)
    return literal_text(dtype.limits[0 if lowest else 1], dtype)


def plain(kind: Type) -> DType:
    """The type values of ``kind`` are held in."""
    return resolve(kind).compute


def converted(value: Value, dtype: DType) -> str:
    """``value`` as ``dtype``'s compute type, still uniform or varying as it is."""
    target = dtype.compute
    if value.literal is not None:
        return literal_text(value.literal, target)
    held = plain(value.type)
    if held is target:
        return value.text
    if target is DType.BOOL:
        return f"tcf::to_mask({value.text})"
    if held is DType.BOOL:
        return f"tcf::from_mask<{C_TYPES[target]}>({value.text})"
    return f"tcf::convert<{C_TYPES[target]}>({value.text})"


def spread(value: Value, dtype: DType, width: str) -> str:
    """``value`` as a vector of ``width`` lanes of ``dtype``'s compute type."""
    text = converted(value, dtype)
    if value.varying:
        return text
    if dtype is DType.BOOL:
        return f"tcf::splat_mask<{width}>({text})"
    return f"tcf::splat<{C_TYPES[dtype]}, {width}>({text})"


def combined(operator: str, left: str, right: str, dtype: DType) -> str:
    """``left operator right`` for a reduction operator, both of ``dtype``'s compute type."""
    if dtype is DType.BOOL:
        name = {"+": "or_", "max": "or_", "*": "and_", "min": "and_"}[operator]
        return f"tcf::{name}({left}, {right})"
    if operator in ("min", "max"):
        # A NaN is looked for in the first, which is not what the next update waits for.
        return f"tcf::{operator}_({right}, {left})"
    if dtype.is_float:
        return f"({left} {operator} {right})"
    return f"tcf::{ {'+': 'add', '*': 'mul'}[operator] }({left}, {right})"


def folded(operator: str, text: str, dtype: DType) -> str:
    """All lanes of a vector combined into one value."""
    if dtype is DType.BOOL:
        return f"tcf::{'hor' if operator in ('+', 'max') else 'hand'}({text})"
    name = {"+": "hsum", "*": "hprod", "min": "hmin", "max": "hmax"}[operator]
    return f"tcf::{name}({text})"
