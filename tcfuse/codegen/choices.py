"""Choices that are the same for all lanes.

A Concat along an outer dimension is a tree of them: which row is read depends on the loop
around the lanes alone.  The row is then chosen once, before the lanes, and loaded like others.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcfuse.codegen.elements import loaded
from tcfuse.codegen.scope import LaneLoop, Names
from tcfuse.codegen.storage import RAW_TYPES
from tcfuse.codegen.values import Row, Value, converted
from tcfuse.types import DType


def choice(operands: Sequence[Value], lane: LaneLoop, names: Names) -> Value | None:
    """``condition ? row : other row`` as one row of all lanes, if it is that."""
    condition, then, otherwise = operands
    rows = then.row, otherwise.row
    if condition.varying or not lane.hoists or rows[0] is None or rows[1] is None:
        return None
    dtype = rows[0].type
    if dtype is not rows[1].type:
        return None
    text = f"{converted(condition, DType.BOOL)} ? {rows[0].pointer} : {rows[1].pointer}"
    if text not in lane.hoisted:
        lane.hoisted[text] = names.fresh("row")
        lane.before.add(f"const {RAW_TYPES[dtype]}* const {lane.hoisted[text]} = {text};")
    pointer = lane.hoisted[text]
    at = f"{pointer} + {lane.iterator}"
    return Value(loaded(dtype, at, lane), dtype, True, row=Row(pointer, dtype))
