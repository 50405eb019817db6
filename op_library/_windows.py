"""Sliding windows: where a window at an output position reads its input along one axis.

At position ``o``, tap ``w`` of a window reads at ``stride * o + dilation * w - before``.  What
lies outside of the input is padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from op_library._text import Loop, Loops, minus, plus, select, stepped
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import OpCall
from tcfuse.types import Size


@dataclass(frozen=True, slots=True)
class Window:
    """A window along one axis.

    Attributes:
        size: Elements of the input.
        position: The loop over the window's positions.
        tap: The loop over its elements.
        before: Elements of padding in front of the input; a negative number skips elements.
        after: Elements of padding behind it.
        rounds_up: Whether the last window may reach beyond the padding.
    """

    size: Size
    position: Loop
    tap: Loop
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0
    rounds_up: bool = False

    @property
    def subscript(self) -> str:
        """Where a tap reads."""
        tap = stepped(self.tap[0], self.dilation, 0)
        return minus(f"{stepped(self.position[0], self.stride, 0)} + {tap}", self.before)

    @property
    def conditions(self) -> tuple[str, ...]:
        """What holds where a tap reads inside of the input."""
        found = []
        if self.before > 0:
            found.append(f"{self.subscript} >= 0")
        if self.may_pass(0):
            found.append(f"{self.subscript} < {self.size}")
        return tuple(found)

    def may_pass(self, padding: int) -> bool:
        """Whether a tap may lie behind the input and ``padding`` elements after it."""
        extent, taps = self.position[1], self.tap[1]
        if isinstance(extent, int) and isinstance(taps, int) and isinstance(self.size, int):
            last = (extent - 1) * self.stride + (taps - 1) * self.dilation - self.before
            return last >= self.size + padding
        return self.rounds_up or self.after > padding

    def count(self, *, padded: bool) -> str:
        """The number of taps in the input, or in the padded input, as an integer expression."""
        padding = self.after if padded else 0
        count = str(self.tap[1])
        if self.may_pass(padding):
            count = f"min({count}, {self._taps_before(plus(str(self.size), padding))})"
        if padded or self.before <= 0:
            return count
        return f"{count} - {self._taps_before('0')}"

    def _taps_before(self, end: str) -> str:
        """The number of taps before ``end``, if there were enough."""
        distance = stepped(self.position[0], -self.stride, plus(end, self.before))
        if end == "0":
            distance = f"max({distance}, 0)"
        if self.dilation == 1:
            return distance
        return f"({plus(distance, self.dilation - 1)}) / {self.dilation}"


def guarded(conditions: Sequence[str], value: str, otherwise: str = "0") -> str:
    """``value`` where all conditions hold."""
    return select(" && ".join(conditions), value, otherwise) if conditions else value


def integers(call: OpCall, name: str, count: int, default: int) -> list[int]:
    """The values of an attribute that has one for each of ``count``.

    Raises:
        UnsupportedError: It has another number of them.
    """
    values = [int(v) for v in call.attributes.get(name) or [default] * count]
    if len(values) != count:
        raise UnsupportedError(f"{call.op_type} with {len(values)} {name} for {count} axes")
    return values


def windows_of(
    call: OpCall,
    sizes: Sequence[Size],
    positions: Loops,
    taps: Loops,
    *,
    skips: bool = False,
) -> tuple[Window, ...]:
    """The window of a node along each spatial axis.

    Args:
        call: The node, with ``strides``, ``dilations``, ``pads`` and ``auto_pad``.
        sizes: Of the input along these axes.
        positions: The loops of the output.
        taps: The loops of the window.
        skips: Whether ``auto_pad`` pads by less than nothing where steps leave elements out,
            as ONNX Runtime's pools do.
    """
    rank = len(sizes)
    strides = integers(call, "strides", rank, 1)
    dilations = integers(call, "dilations", rank, 1)
    if min([*strides, *dilations], default=1) < 1:
        raise UnsupportedError(f"{call.op_type} with strides {strides}, dilations {dilations}")
    found = []
    pads = explicit_pads(call, rank)
    rounds_up = bool(call.attributes.get("ceil_mode", 0))
    for k, (size, stride, dilation) in enumerate(zip(sizes, strides, dilations, strict=True)):
        around = pads[k] or same_pads(call, size, taps[k][1], stride, dilation, skips=skips)
        window = Window(size, positions[k], taps[k], stride, dilation, *around, rounds_up)
        found.append(window)
    return tuple(found)


def explicit_pads(call: OpCall, rank: int) -> list[tuple[int, int] | None]:
    """The padding before and after along each axis; ``None`` where sizes decide it.

    Raises:
        UnsupportedError: ``auto_pad`` is none that ONNX has.
    """
    mode = call.attributes.get("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        return [None] * rank
    if mode not in ("", "NOTSET", "VALID"):
        raise UnsupportedError(f"{call.op_type} with auto_pad {mode!r}")
    pads = integers(call, "pads", 2 * rank, 0)
    if mode == "VALID":
        pads = [0] * (2 * rank)
    return [(pads[k], pads[rank + k]) for k in range(rank)]


def same_pads(
    call: OpCall, size: Size, taps: Size, stride: int, dilation: int, *, skips: bool
) -> tuple[int, int]:
    """The padding that gives one position for every ``stride`` elements.

    Raises:
        UnsupportedError: It depends on a size that is not constant.
    """
    if not isinstance(taps, int) or (stride > 1 and not isinstance(size, int)):
        raise UnsupportedError(f"{call.op_type} with padding that depends on {size} and {taps}")
    extent = (taps - 1) * dilation + 1
    if isinstance(size, int):
        padding = (-(-size // stride) - 1) * stride + extent - size
    else:
        padding = extent - 1
    padding = padding if skips else max(padding, 0)
    return split_padding(padding, upper=call.attributes["auto_pad"] == "SAME_UPPER")


def split_padding(padding: int, *, upper: bool) -> tuple[int, int]:
    """Padding divided to before and after, the odd element after when ``upper``."""
    before = int((padding if upper else padding + 1) / 2)  # rounded towards 0
    return before, padding - before
