"""Pad, in all its modes, as ternaries that guard the accesses.

A padded dimension has a border before, the input's elements that are not cropped, and a border
after.

Source: https://onnx.ai/onnx/operators/onnx__Pad.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from op_library._text import (
    Loop,
    at,
    definition,
    loops,
    minus,
    needed,
    number,
    only_output,
    plus,
    require_equal,
    select,
    statement,
    total,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op, same_size
from tcfuse.types import DType, Size, TensorType

# Each padded dimension multiplies the leaves of the expression by three.
MOST_LEAVES = 81


@dataclass(frozen=True, slots=True)
class Padding:
    """One dimension's padding; negative numbers crop."""

    before: int
    after: int

    @property
    def start(self) -> int:
        """The first element of the input that is not cropped."""
        return max(-self.before, 0)

    def stop(self, size: Size) -> str:
        """The element after the last one that is not cropped."""
        return str(total([size, min(self.after, 0)]))


@onnx_op("Pad", since=2, kind=Kind.MOVEMENT)
def pad_by_attributes(call: OpCall) -> str:
    """``X`` with borders whose widths and value are attributes."""
    dtype = needed(call, 0).dtype
    value = number(float(np.float32(call.attributes.get("value", 0.0))))
    fill = value if dtype.is_float else f"{dtype.tc}({value})"
    return pad(call, paddings(call, call.attributes["pads"], None), {}, fill)


@onnx_op("Pad", since=11, kind=Kind.MOVEMENT, static=[1, 3])
def pad_by_inputs(call: OpCall) -> str:
    """``X`` with borders whose widths, value and axes are inputs."""
    pads, axes = call.constant(1), call.constant(3)
    assert pads is not None
    chosen = None if axes is None else [int(a) for a in axes.reshape(-1)]
    value = call.input(2)
    if value is None or call.attributes.get("mode", "constant") != "constant":
        fill = "false" if needed(call, 0).dtype is DType.BOOL else "0"
    else:
        fill = at("Value", ["0"] * value.rank)
    return pad(call, paddings(call, pads.reshape(-1).tolist(), chosen), {"Value": value}, fill)


@onnx_op("CenterCropPad", since=18, kind=Kind.MOVEMENT, static=[1])
def center_crop_pad(call: OpCall) -> str:
    """``X`` with as much cut off, or added, at the start of a dimension as at its end."""
    x, y = needed(call, 0), only_output(call)
    borders = []
    for size, extent in zip(x.shape, y.shape, strict=True):
        if same_size(size, extent):
            borders.append(Padding(0, 0))
        elif isinstance(size, int) and isinstance(extent, int):
            more = extent - size
            before = more // 2 if more > 0 else -(-more // 2)
            borders.append(Padding(before, more - before))
        else:
            raise UnsupportedError(f"CenterCropPad of {size} elements to {extent}")
    return pad(call, borders, {}, "false" if x.dtype is DType.BOOL else "0")


def paddings(call: OpCall, pads: Sequence[int], axes: Sequence[int] | None) -> list[Padding]:
    """The padding of every dimension.

    Raises:
        UnsupportedError: The numbers do not fit the input's rank.
    """
    rank = needed(call, 0).rank
    chosen = list(range(rank)) if axes is None else [int(a) for a in axes]
    if len(pads) != 2 * len(chosen) or any(not -rank <= a < rank for a in chosen):
        raise UnsupportedError(f"Pad of rank {rank} by {len(pads)} numbers along {chosen}")
    result = [Padding(0, 0)] * rank
    for k, axis in enumerate(chosen):
        result[axis % rank] = Padding(int(pads[k]), int(pads[len(chosen) + k]))
    return result


def pad(
    call: OpCall, borders: list[Padding], more: dict[str, TensorType | None], fill: str
) -> str:
    """The definition of a padding; ``more`` are the parameters after the first."""
    x, y = needed(call, 0), only_output(call)
    point = loops(y.shape)
    for size, extent, border in zip(x.shape, y.shape, borders, strict=True):
        if isinstance(size, int):
            require_equal(max(size + border.before + border.after, 0), extent)
    mode = call.attributes.get("mode", "constant")
    if mode == "constant":
        value = constant_value(x, point, borders, fill)
    elif mode in ("reflect", "edge", "wrap"):
        value = mirrored_value(x, point, borders, mode)
    else:
        raise UnsupportedError(f"Pad in mode {mode!r}")
    return definition(call, {"X": x, **more}, {"Y": y}, [statement("Y", point, value)])


def constant_value(
    x: TensorType, point: Sequence[Loop], borders: Sequence[Padding], fill: str
) -> str:
    """The input inside, ``fill`` outside."""
    tests = []
    for (index, _), size, border in zip(point, x.shape, borders, strict=True):
        if border.before > 0:
            tests.append(f"{index} >= {border.before}")
        if border.after > 0:
            tests.append(f"{index} < {plus(str(size), border.before)}")
    subscripts = [
        minus(index, border.before) for (index, _), border in zip(point, borders, strict=True)
    ]
    inside = at("X", subscripts)
    return select(" && ".join(tests), inside, fill) if tests else inside


def mirrored_value(
    x: TensorType, point: Sequence[Loop], borders: Sequence[Padding], mode: str
) -> str:
    """The input inside, elements of the input outside: a nest of ternaries, one a dimension."""
    padded = [d for d, border in enumerate(borders) if border.before > 0 or border.after > 0]
    if 3 ** len(padded) > MOST_LEAVES:
        raise UnsupportedError(f"Pad of {len(padded)} dimensions in mode {mode!r}")
    subscripts = [
        minus(index, border.before) for (index, _), border in zip(point, borders, strict=True)
    ]

    def nest(remaining: Sequence[int]) -> str:
        if not remaining:
            return at("X", subscripts)
        d, *others = remaining
        index, border, inside = point[d][0], borders[d], subscripts[d]
        value = nest(others)
        before, after = outside(index, border, x.shape[d], mode)
        if border.after > 0:
            subscripts[d] = after
            end = plus(border.stop(x.shape[d]), border.before)
            value = select(f"{index} < {end}", value, nest(others))
        if border.before > 0:
            subscripts[d] = before
            value = select(f"{index} < {border.before}", nest(others), value)
        subscripts[d] = inside
        return value

    return nest(padded)


def outside(index: str, border: Padding, size: Size, mode: str) -> tuple[str, str]:
    """The subscripts read in the border before the interior and in the one after it.

    Raises:
        UnsupportedError: A border is wider than what it repeats, or that is not known.
    """
    start, stop, before = border.start, border.stop(size), border.before
    if mode == "edge":
        return str(start), minus(stop, 1)
    widest = max(before, border.after)
    if not isinstance(size, int) or widest > int(stop) - start - (mode == "reflect"):
        raise UnsupportedError(f"Pad by {widest} of {size} elements in mode {mode!r}")
    if mode == "reflect":
        return f"{before + 2 * start} - {index}", f"{before + 2 * int(stop) - 2} - {index}"
    length = int(stop) - start
    return minus(index, before - length), minus(index, before + length)
