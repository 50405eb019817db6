"""Convolutions and their transposes: any number of spatial axes, groups, dilations, padding.

Source: https://onnx.ai/onnx/operators/onnx__Conv.html and onnx__ConvTranspose.html.
"""

from __future__ import annotations

from dataclasses import dataclass

from op_library._text import (
    Loop,
    Loops,
    at,
    definition,
    loops,
    names,
    needed,
    only_output,
    plus,
    require_equal,
    statement,
    widened,
)
from op_library._windows import (
    explicit_pads,
    guarded,
    integers,
    split_padding,
    windows_of,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import Size, TensorType

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
    """

    point: Loops
    reduced: Loops
    data: tuple[str, ...]
    weights: tuple[str, ...]
    conditions: tuple[str, ...]

    @property
    def filter(self) -> str:
        """The index of the filters."""
        return self.point[1][0]


def taps_of(call: OpCall, w: TensorType) -> Loops:
    """The loops over a window.

    Raises:
        UnsupportedError: ``kernel_shape`` contradicts the weights.
    """
    kernel = w.shape[2:]
    for given, size in zip(integers(call, "kernel_shape", len(kernel), 0), kernel, strict=True):
        if given:
            require_equal(given, size)
    return tuple((f"w{k}", size) for k, size in enumerate(kernel))


def convolution_of(call: OpCall, x: TensorType, w: TensorType, y: TensorType) -> Convolution:
    """The convolution of ``x`` with the filters ``w``.

    Raises:
        UnsupportedError: The shapes do not fit each other.
    """
    if x.rank < 3 or not x.rank == w.rank == y.rank:
        raise UnsupportedError(f"{call.op_type} of ranks {x.rank} and {w.rank}")
    point, taps = loops(y.shape), taps_of(call, w)
    windows = windows_of(call, x.shape[2:], point[2:], taps)
    (image, images), (filter_, filters) = point[:2]
    require_equal(x.shape[0], images)
    require_equal(w.shape[0], filters)
    groups = int(call.attributes.get("group", 1))
    channel = grouped(call, filter_, x.shape[1], w.shape[1], filters, groups)
    return Convolution(
        point,
        ((CHANNEL, w.shape[1]), *taps),
        (image, channel, *(window.subscript for window in windows)),
        (filter_, CHANNEL, *names(taps)),
        tuple(c for window in windows for c in window.conditions),
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
    x, w, y = needed(call, 0), needed(call, 1), only_output(call)
    found = convolution_of(call, x, w, y)
    value = guarded(found.conditions, f"{at('X', found.data)} * {at('W', found.weights)}")
    return with_bias(call, value, found.point, found.reduced)


def with_bias(call: OpCall, value: str, point: Loops, reduced: Loops) -> str:
    """The definition of a sum of products, plus B for each filter."""
    x, w, b, y = needed(call, 0), needed(call, 1), call.input(2), only_output(call)
    params = {"X": x, "W": w, "B": b}
    if not b:
        body = [statement("Y", point, value, assign="+=!", reduce=reduced)]
        return definition(call, params, {"Y": y}, body)
    require_equal(b.shape[0], y.shape[1])
    result = f"{at('Sum', names(point))} + {at('B', [point[1][0]])}"
    body = [
        statement("Sum", point, widened(x.dtype, value), assign="+=!", reduce=reduced),
        statement("Y", point, result),
    ]
    return definition(call, params, {"Y": y}, body)


@dataclass(frozen=True, slots=True)
class TransposedWindow:
    """Which input element a tap takes to an output position, along one axis.

    Input ``x`` goes to the outputs ``stride * x + dilation * tap - before``; a position looks
    for the ``x`` that comes there.
    """

    size: Size
    position: Loop
    tap: Loop
    stride: int
    dilation: int
    before: int

    @property
    def scaled(self) -> str:
        """``stride`` times the input element."""
        step = self.tap[0] if self.dilation == 1 else f"{self.dilation} * {self.tap[0]}"
        return f"{plus(self.position[0], self.before)} - {step}"

    @property
    def subscript(self) -> str:
        """The input element."""
        return self.scaled if self.stride == 1 else f"({self.scaled}) / {self.stride}"

    @property
    def conditions(self) -> tuple[str, ...]:
        """What holds where there is such an element."""
        extent, taps = self.position[1], self.tap[1]
        found = [f"{self.scaled} >= 0", f"{self.subscript} < {self.size}"]
        if isinstance(taps, int) and self.before >= self.dilation * (taps - 1):
            del found[0]
        if isinstance(extent, int) and isinstance(self.size, int):
            last = (extent - 1 + self.before) // self.stride
            found = found if last >= self.size else found[:-1]
        if self.stride > 1:
            found.append(f"({self.scaled}) % {self.stride} == 0")
        return tuple(found)


def transposed_windows(
    call: OpCall, sizes: tuple[Size, ...], positions: Loops, taps: Loops
) -> tuple[TransposedWindow, ...]:
    """The windows of a ConvTranspose along each spatial axis."""
    rank = len(sizes)
    strides = integers(call, "strides", rank, 1)
    dilations = integers(call, "dilations", rank, 1)
    extra = integers(call, "output_padding", rank, 0)
    if min([*strides, *dilations], default=1) < 1:
        raise UnsupportedError(f"{call.op_type} with strides {strides}, dilations {dilations}")
    pads = explicit_pads(call, rank)
    if call.attributes.get("output_shape"):
        pads = [None] * rank
    upper = call.attributes.get("auto_pad", "NOTSET") == "SAME_UPPER"
    found = []
    for k, (size, position, tap) in enumerate(zip(sizes, positions, taps, strict=True)):
        before, _ = pads[k] or split_padding(
            cropped(call, size, position[1], strides[k], extra[k] + span(tap[1], dilations[k])),
            upper=upper,
        )
        found.append(TransposedWindow(size, position, tap, strides[k], dilations[k], before))
    return tuple(found)


def span(taps: Size, dilation: int) -> int:
    """The elements from the first tap to the last.

    Raises:
        UnsupportedError: The number of taps is not constant.
    """
    if not isinstance(taps, int):
        raise UnsupportedError(f"padding that depends on {taps} taps")
    return (taps - 1) * dilation + 1


def cropped(call: OpCall, size: Size, extent: Size, stride: int, reach: int) -> int:
    """What is cut off an output that ``size`` elements make, for ``extent`` to remain.

    Each of them makes ``reach`` elements.

    Raises:
        UnsupportedError: It depends on sizes, or windows lie apart from each other.
    """
    if call.attributes.get("output_shape"):
        if not isinstance(size, int) or not isinstance(extent, int):
            raise UnsupportedError(f"{call.op_type} of {size} elements to {extent}")
        return max((size - 1) * stride + reach - extent, 0)
    if reach < stride:
        raise UnsupportedError(f"{call.op_type} padded alike with stride {stride} > {reach}")
    return reach - stride


@onnx_op("ConvTranspose", since=1, kind=Kind.CONTRACTION)
def conv_transpose(call: OpCall) -> str:
    """The sum of the filters W placed at the elements of X, plus B."""
    x, w, y = needed(call, 0), needed(call, 1), only_output(call)
    if x.rank < 3 or not x.rank == w.rank == y.rank:
        raise UnsupportedError(f"{call.op_type} of ranks {x.rank} and {w.rank}")
    point, taps = loops(y.shape), taps_of(call, w)
    windows = transposed_windows(call, x.shape[2:], point[2:], taps)
    require_equal(x.shape[0], y.shape[0])
    require_equal(x.shape[1], w.shape[0])
    groups, filter_, per_group = int(call.attributes.get("group", 1)), point[1][0], w.shape[1]
    channels, channel = x.shape[1], CHANNEL
    if groups == 1:
        require_equal(per_group, y.shape[1])
    else:
        if not isinstance(channels, int) or not isinstance(per_group, int) or channels % groups:
            raise UnsupportedError(f"{call.op_type} of {channels} channels in {groups} groups")
        require_equal(per_group * groups, y.shape[1])
        channels //= groups
        channel = f"{filter_} / {per_group} * {channels} + {CHANNEL}"
        filter_ = f"{filter_} % {per_group}"
    read = at("X", [point[0][0], channel, *(window.subscript for window in windows)])
    weight = at("W", [channel, filter_, *names(taps)])
    conditions = [c for window in windows for c in window.conditions]
    value = guarded(conditions, f"{read} * {weight}")
    return with_bias(call, value, point, ((CHANNEL, channels), *taps))
