"""Convolutions: any number of spatial axes, groups, dilations, padding.

Source: https://onnx.ai/onnx/operators/onnx__Conv.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from op_library._text import (
    Loop,
    Loops,
    at,
    definition,
    loops,
    names,
    needed,
    only_output,
    require_equal,
    statement,
    widened,
)
from op_library._windows import guarded, integers, windows_of
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import Size, TensorType

Shape: TypeAlias = Sequence[Size]
T = TypeVar("T")

CHANNEL = "c"
"""The index of the channels of a group that are summed over."""


@dataclass(frozen=True, slots=True)
class Convolution:
    """The loops of a convolution and what it reads at a point of them.

    Attributes:
        point: The loops of the result: image, filter, positions.
        reduced: The loops that are summed over: channel of the group, taps.
        data: Subscripts of the input.
        weights: Subscripts of the weights.
        conditions: What holds where the input is read inside.
        filters: The loop over filters, one of ``point``.
    """

    point: Loops
    reduced: Loops
    data: tuple[str, ...]
    weights: tuple[str, ...]
    conditions: tuple[str, ...]
    filters: Loop

    @property
    def channels_last(self) -> Convolution:
        """The same of tensors whose channels are the last axis."""
        return replace(self, point=rolled(self.point), data=rolled(self.data))

    def summed(self, target: str, value: str) -> str:
        """The statement that sums ``value`` over what lies inside of the input."""
        value = guarded(self.conditions, value)
        return statement(target, self.point, value, assign="+=!", reduce=self.reduced)


def rolled(axes: tuple[T, ...]) -> tuple[T, ...]:
    """What belongs to axes, with that of the second axis moved to the end."""
    return (axes[0], *axes[2:], axes[1])


def taps_of(call: OpCall, kernel: Shape) -> Loops:
    """The loops over a window.

    Raises:
        UnsupportedError: ``kernel_shape`` is another one.
    """
    for given, size in zip(integers(call, "kernel_shape", len(kernel), 0), kernel, strict=True):
        if given:
            require_equal(given, size)
    return tuple((f"w{k}", size) for k, size in enumerate(kernel))


def require_ranks(call: OpCall, *shapes: Shape) -> None:
    """Check that tensors have one rank, and spatial axes.

    Raises:
        UnsupportedError: They have not.
    """
    ranks = [len(shape) for shape in shapes]
    if min(ranks) < 3 or min(ranks) != max(ranks):
        raise UnsupportedError(f"{call.op_type} of ranks {ranks[0]} and {ranks[1]}")


def convolution_of(call: OpCall, x: Shape, w: Shape, y: Shape) -> Convolution:
    """The convolution of a tensor of shape ``x`` with filters of shape ``w``.

    Raises:
        UnsupportedError: The shapes do not fit each other.
    """
    require_ranks(call, x, w, y)
    point, taps = loops(y), taps_of(call, w[2:])
    windows = windows_of(call, x[2:], point[2:], taps)
    (image, images), (filter_, filters) = point[:2]
    require_equal(x[0], images)
    require_equal(w[0], filters)
    groups = int(call.attributes.get("group", 1))
    channel = grouped(call, filter_, x[1], w[1], filters, groups)
    return Convolution(
        point,
        ((CHANNEL, w[1]), *taps),
        (image, channel, *(window.subscript for window in windows)),
        (filter_, CHANNEL, *names(taps)),
        tuple(c for window in windows for c in window.conditions),
        point[1],
    )


def grouped(
    call: OpCall, filter_: str, channels: Size, inner: Size, filters: Size, groups: int
) -> str:
    """The channel of the input that a filter reads, of ``inner`` in its group.

    Raises:
        UnsupportedError: The channels do not make up the groups, or filters have no number.
    """
    if groups == 1:
        require_equal(channels, inner)
        return CHANNEL
    if not isinstance(filters, int) or not isinstance(inner, int) or filters % groups:
        raise UnsupportedError(f"{call.op_type} of {filters} filters in {groups} groups")
    require_equal(channels, inner * groups)
    per_group = filters // groups
    group = filter_ if per_group == 1 else f"{filter_} / {per_group}"
    return group if inner == 1 else f"{group} * {inner} + {CHANNEL}"


@onnx_op("Conv", since=1, kind=Kind.CONTRACTION)
def conv(call: OpCall) -> str:
    """The convolution of X with the filters W, plus B."""
    shapes = (needed(call, 0).shape, needed(call, 1).shape, only_output(call).shape)
    return convolved(call, convolution_of(call, *shapes))


def convolved(call: OpCall, found: Convolution) -> str:
    """The definition of a convolution of X and W, plus B for each filter."""
    x, w, b, y = needed(call, 0), needed(call, 1), call.input(2), only_output(call)
    value = f"{at('X', found.data)} * {at('W', found.weights)}"
    body = with_bias(found, widened(x.dtype, value), b)
    return definition(call, {"X": x, "W": w, "B": b}, {"Y": y}, body)


def with_bias(found: Convolution, value: str, bias: TensorType | None) -> list[str]:
    """The statements that sum ``value`` for each point, and add B for each filter."""
    if not bias:
        return [found.summed("Y", value)]
    filter_, filters = found.filters
    require_equal(bias.shape[0], filters)
    result = f"{at('Sum', names(found.point))} + {at('B', [filter_])}"
    return [found.summed("Sum", value), statement("Y", found.point, result)]
