"""Transposed convolutions: every element of the input places the filters in the output.

Source: https://onnx.ai/onnx/operators/onnx__ConvTranspose.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from op_library._text import Loop, Loops, loops, needed, only_output, plus, require_equal
from op_library._windows import explicit_pads, integers, split_padding
from op_library.convolution import (
    CHANNEL,
    Convolution,
    Shape,
    convolved,
    require_ranks,
    taps_of,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import Size


@dataclass(frozen=True, slots=True)
class TransposedWindow:
    """Which input elements come to an output position, along one axis, and by which taps.

    Input ``x`` goes to the outputs ``stride * x + dilation * tap - before``.  Without dilation
    every ``stride``-th tap comes to a position, and the loop is over these; otherwise it is
    over all taps, of which some find an input element.

    Attributes:
        size: Elements of the input.
        position: The loop over the output.
        taps: The index of the taps, and how many the filter has.
    """

    size: Size
    position: Loop
    taps: Loop
    stride: int
    dilation: int
    before: int

    @property
    def skips(self) -> bool:
        """Whether the loop is over the taps that come to a position alone."""
        return self.stride > 1 and self.dilation == 1 and isinstance(self.taps[1], int)

    @property
    def loop(self) -> Loop:
        """The loop that is summed over."""
        index, taps = self.taps
        if not self.skips:
            return self.taps
        assert isinstance(taps, int)
        return index, -(-taps // self.stride)

    @property
    def tap(self) -> str:
        """The tap."""
        index = self.taps[0]
        if not self.skips:
            return index
        return f"{self._start} % {self.stride} + {self.stride} * {index}"

    @property
    def subscript(self) -> str:
        """The input element."""
        if self.skips:
            return f"{self._start} / {self.stride} - {self.taps[0]}"
        return self._scaled if self.stride == 1 else f"({self._scaled}) / {self.stride}"

    @property
    def conditions(self) -> tuple[str, ...]:
        """What holds where there are such an element and such a tap."""
        extent, taps = self.position[1], self.taps[1]
        found = []
        if not isinstance(taps, int) or self.before < self.dilation * (taps - 1):
            found.append(f"{self.subscript if self.skips else self._scaled} >= 0")
        known = isinstance(extent, int) and isinstance(self.size, int)
        if not known or (int(extent) - 1 + self.before) // self.stride >= int(self.size):
            found.append(f"{self.subscript} < {self.size}")
        if self.skips and isinstance(taps, int) and taps % self.stride:
            found.append(f"{self.tap} < {taps}")
        elif self.stride > 1 and not self.skips:
            found.append(f"({self._scaled}) % {self.stride} == 0")
        return tuple(found)

    @property
    def _shifted(self) -> str:
        """The output position, counted from where the first tap of the first element goes."""
        return plus(self.position[0], self.before)

    @property
    def _start(self) -> str:
        """``_shifted``, to be divided."""
        return self._shifted if self.before == 0 else f"({self._shifted})"

    @property
    def _scaled(self) -> str:
        """``stride`` times the input element."""
        step = self.taps[0] if self.dilation == 1 else f"{self.dilation} * {self.taps[0]}"
        return f"{self._shifted} - {step}"


def transposed_windows(
    call: OpCall, sizes: Sequence[Size], positions: Loops, taps: Loops
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
    shapes = (needed(call, 0).shape, needed(call, 1).shape, only_output(call).shape)
    return convolved(call, transposed_convolution_of(call, *shapes))


def transposed_convolution_of(call: OpCall, x: Shape, w: Shape, y: Shape) -> Convolution:
    """What comes to the positions of ``y``.

    Raises:
        UnsupportedError: The shapes do not fit each other, or groups have no numbers.
    """
    require_ranks(call, x, w, y)
    point, taps = loops(y), taps_of(call, w[2:])
    windows = transposed_windows(call, x[2:], point[2:], taps)
    (image, images), (filter_, filters) = point[:2]
    require_equal(x[0], images)
    require_equal(x[1], w[0])
    groups, per_group = int(call.attributes.get("group", 1)), w[1]
    channels, channel = x[1], CHANNEL
    if groups == 1:
        require_equal(per_group, filters)
    else:
        if not isinstance(channels, int) or not isinstance(per_group, int) or channels % groups:
            raise UnsupportedError(f"{call.op_type} of {channels} channels in {groups} groups")
        require_equal(per_group * groups, filters)
        channels //= groups
        channel = f"{filter_} / {per_group} * {channels} + {CHANNEL}"
        filter_ = f"{filter_} % {per_group}"
    return Convolution(
        point,
        ((CHANNEL, channels), *(window.loop for window in windows)),
        (image, channel, *(window.subscript for window in windows)),
        (channel, filter_, *(window.tap for window in windows)),
        tuple(c for window in windows for c in window.conditions),
        point[1],
    )
