"""Pools: windows that slide along the spatial dimensions, each combined to one value.

Source: https://onnx.ai/onnx/operators/onnx__MaxPool.html and its siblings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from op_library._rows import rows_of
from op_library._text import (
    Loops,
    at,
    definition,
    loops,
    names,
    needed,
    number,
    only_output,
    product,
    select,
    statement,
    widened,
)
from op_library._windows import Window, guarded, integers, windows_of
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import DType, Size


@dataclass(frozen=True, slots=True)
class Pool:
    """The windows of a pool.

    Attributes:
        point: The loops of the output.
        windows: One a spatial dimension.
        first: The first spatial dimension.
    """

    point: Loops
    windows: tuple[Window, ...]
    first: int = 2

    @property
    def taps(self) -> Loops:
        """The loops over the taps of a window."""
        return tuple(window.tap for window in self.windows)

    @property
    def subscripts(self) -> tuple[str, ...]:
        """Where the input is read."""
        read = list(names(self.point))
        for d, window in enumerate(self.windows, self.first):
            read[d] = window.subscript
        return tuple(read)

    def inside(self, value: str, otherwise: str) -> str:
        """``value`` for taps in the input, ``otherwise`` for those in the padding."""
        conditions = [test for window in self.windows for test in window.conditions]
        return guarded(conditions, value, otherwise)

    def fold(self, target: str, value: str, assign: str = "+=!") -> str:
        """The statement that combines ``value`` over each window."""
        return statement(target, self.point, value, assign=assign, reduce=self.taps)

    def at_point(self, tensor: str) -> str:
        """A tensor with the output's shape read at the output's point."""
        return at(tensor, names(self.point))

    def each_point(self, target: str, value: str) -> str:
        """The statement that computes a tensor with the output's shape."""
        return statement(target, self.point, value)

    def count(self, *, padded: bool) -> str:
        """The number of taps that an average counts."""
        counts = [window.count(padded=padded) for window in self.windows]
        return product(count if not count.isdecimal() else int(count) for count in counts)


def pool_of(call: OpCall, first: int = 2) -> Pool:
    """The windows of a node that pools its first input.

    Raises:
        UnsupportedError: They cannot be told, or ONNX Runtime and ONNX differ on them.
    """
    x, y = needed(call, 0), call.outputs[0]
    if y is None:
        raise UnsupportedError(f"{call.op_type} without its first output")
    rank = x.rank - 2
    taps = tuple((f"w{k}", size) for k, size in enumerate(kernel(call, rank)))
    auto_pad = str(call.attributes.get("auto_pad", "NOTSET"))
    if auto_pad.startswith("SAME") and set(integers(call, "dilations", rank, 1)) - {1}:
        raise UnsupportedError(
            f"{call.op_type} with dilations and auto_pad {auto_pad}: ONNX Runtime pads for a"
            " window without dilations"
        )
    point, spatial = loops(y.shape), slice(first, first + rank)
    windows = windows_of(call, x.shape[spatial], point[spatial], taps, skips=True)
    return Pool(point, windows, first)


def kernel(call: OpCall, rank: int) -> list[int]:
    """The taps of a window along each of ``rank`` dimensions.

    Raises:
        UnsupportedError: A window has none.
    """
    sizes = integers(call, "kernel_shape", rank, 0)
    if min(sizes, default=1) < 1:
        raise UnsupportedError(f"{call.op_type} with a window of {sizes}")
    return sizes


@onnx_op("AveragePool", since=1, kind=Kind.REDUCTION)
def average_pool(call: OpCall) -> str:
    """The mean of each window, with or without its padding."""
    x, pool = needed(call, 0), pool_of(call)
    padded = bool(call.attributes.get("count_include_pad", 0))
    total = pool.inside(widened(x.dtype, at("X", pool.subscripts)), "0")
    mean = f"{pool.at_point('Sum')} / {pool.count(padded=padded)}"
    body = [pool.fold("Sum", total), pool.each_point("Y", mean)]
    return definition(call, {"X": x}, {"Y": only_output(call)}, body)


@onnx_op("LpPool", since=1, kind=Kind.REDUCTION)
def lp_pool(call: OpCall) -> str:
    """The ``p``-norm of each window."""
    x, pool, norm = needed(call, 0), pool_of(call), Norm.of(call)
    value = norm.each(widened(x.dtype, at("X", pool.subscripts)))
    body = [
        pool.fold("Sum", pool.inside(value, "0")),
        pool.each_point("Y", norm.root(pool.at_point("Sum"))),
    ]
    return definition(call, {"X": x}, {"Y": only_output(call)}, body)


@onnx_op("GlobalLpPool", since=1, kind=Kind.REDUCTION)
def global_lp_pool(call: OpCall) -> str:
    """The ``p``-norm of each channel of each image."""
    x, norm = needed(call, 0), Norm.of(call)
    rows = rows_of(call, x, range(2, x.rank))
    body = [
        rows.fold("Sum", norm.each(widened(x.dtype, rows.at_point("X")))),
        statement("Y", rows.with_ones(), norm.root(rows.at_row("Sum"))),
    ]
    return definition(call, {"X": x}, {"Y": only_output(call)}, body)


@dataclass(frozen=True, slots=True)
class Norm:
    """A ``p``-norm as what is added up and what is made of the sum."""

    p: float

    @classmethod
    def of(cls, call: OpCall) -> Norm:
        """The norm of a node's attribute ``p``.

        Raises:
            UnsupportedError: It is no norm.
        """
        p = float(call.attributes.get("p", 2))
        if p <= 0:
            raise UnsupportedError(f"{call.op_type} with p = {p}")
        return cls(p)

    def each(self, value: str) -> str:
        """``|value| ** p``."""
        if self.p == 1:
            return f"abs({value})"
        return f"{value} * {value}" if self.p == 2 else f"pow(abs({value}), {number(self.p)})"

    def root(self, total: str) -> str:
        """``total ** (1 / p)``."""
        if self.p == 1:
            return total
        return f"sqrt({total})" if self.p == 2 else f"pow({total}, 1.0 / {number(self.p)})"


@onnx_op("MaxPool", since=1, kind=Kind.REDUCTION)
def max_pool(call: OpCall) -> str:
    """The largest element of each window and, if wanted, the place of the first such one.

    A place counts the elements of the input in row-major order or, within a channel, in
    column-major order.
    """
    x, pool = needed(call, 0), pool_of(call)
    value = at("X", pool.subscripts)
    body = [pool.fold("Y", pool.inside(value, lowest(x.dtype)), "max=!")]
    indices = call.outputs[1] if len(call.outputs) > 1 else None
    if indices is not None:
        body += places(call, pool)
    return definition(call, {"X": x}, {"Y": call.outputs[0], "Indices": indices}, body)


def places(call: OpCall, pool: Pool) -> list[str]:
    """The statements that find where ``Y`` was in ``X``."""
    x = needed(call, 0)
    channel, sizes = x.shape[1], x.shape[2:]
    image, channel_index = names(pool.point)[:2]
    here = row_major([window.subscript for window in pool.windows], sizes)
    nowhere = product(sizes)
    is_largest = f"{at('X', pool.subscripts)} == {pool.at_point('Y')}"
    first = pool.inside(select(is_largest, here, nowhere), nowhere)
    place = pool.at_point("First")
    if call.attributes.get("storage_order", 0):
        digits = unravelled(place, sizes)
        place = row_major(digits[::-1], sizes[::-1])
    start = f"({image} * {channel} + {channel_index}) * {product(sizes)}"
    return [
        pool.fold("First", f"int64({first})", "min=!"),
        pool.each_point("Indices", f"{start} + {place}"),
    ]


def row_major(subscripts: Sequence[str], sizes: Sequence[Size]) -> str:
    """The place of an element in row-major order."""
    place = subscripts[0]
    for subscript, size in zip(subscripts[1:], sizes[1:], strict=True):
        place = f"({place}) * {product([size])} + {subscript}"
    return place


def unravelled(place: str, sizes: Sequence[Size]) -> list[str]:
    """The subscripts of the element at ``place`` in row-major order."""
    digits = []
    for d, size in enumerate(sizes):
        behind = product(sizes[d + 1 :])
        digit = place if behind == "1" else f"{place} / {behind}"
        digits.append(digit if d == 0 else f"{digit} % {product([size])}")
    return digits


def lowest(dtype: DType) -> str:
    """The least value of a type."""
    if dtype.is_float:
        return "-inf()"
    return f"{dtype.tc}({number(-(2 ** (8 * dtype.bytes - 1)) if dtype.is_signed else 0)})"
