"""Sliding windows: where a window at an output position reads its input along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from op_library._text import Loop, Loops, minus, select
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
        before: Elements of padding in front of the input.
        after: Elements of padding behind it.
    """

    size: Size
    position: Loop
    tap: Loop
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0

    @property
    def subscript(self) -> str:
        """Where a tap reads."""
        start, step = (
            name if factor == 1 else f"{factor} * {name}"
            for name, factor in (
                (self.position[0], self.stride),
                (self.tap[0], self.dilation),
            )
        )
        return minus(f"{start} + {step}", self.before)

    @property
    def conditions(self) -> tuple[str, ...]:
        """What holds where a tap reads inside of the input."""
        found = []
        if self.before > 0:
            found.append(f"{self.subscript} >= 0")
        if self.may_pass_the_end:
            found.append(f"{self.subscript} < {self.size}")
        return tuple(found)

    @property
    def may_pass_the_end(self) -> bool:
        """Whether the last tap at the last position may lie behind the input."""
        extent, taps = self.position[1], self.tap[1]
        if isinstance(extent, int) and isinstance(taps, int) and isinstance(self.size, int):
            last = (extent - 1) * self.stride + (taps - 1) * self.dilation - self.before
            return last >= self.size
        return self.after > 0 or self.stride > 1


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
) -> tuple[Window, ...]:
    """The window of a node along each spatial axis.

    Args:
        call: The node, with ``strides``, ``dilations``, ``pads`` and ``auto_pad``.
        sizes: Of the input along these axes.
        positions: The loops of the output.
        taps: The loops of the window.
    """
    rank = len(sizes)
    strides = integers(call, "strides", rank, 1)
    dilations = integers(call, "dilations", rank, 1)
    if min([*strides, *dilations], default=1) < 1:
        raise UnsupportedError(f"{call.op_type} with strides {strides}, dilations {dilations}")
    found = []
    pads = explicit_pads(call, rank)
    for k, size in enumerate(sizes):
        before, after = pads[k] or same_pads(call, size, taps[k][1], strides[k], dilations[k])
        window = Window(size, positions[k], taps[k], strides[k], dilations[k], before, after)
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
    call: OpCall, size: Size, taps: Size, stride: int, dilation: int
) -> tuple[int, int]:
    """The padding that gives one position for every ``stride`` elements.

    Raises:
        UnsupportedError: It depends on a size that is not constant.
    """
    if not isinstance(taps, int) or (stride > 1 and not isinstance(size, int)):
        raise UnsupportedError(f"{call.op_type} with padding that depends on {size} and {taps}")
    extent = (taps - 1) * dilation + 1
    if isinstance(size, int):
        padding = max((-(-size // stride) - 1) * stride + extent - size, 0)
    else:
        padding = extent - 1
    return split_padding(padding, upper=call.attributes["auto_pad"] == "SAME_UPPER")


def split_padding(padding: int, *, upper: bool) -> tuple[int, int]:
    """Padding divided to before and after, the odd element after when ``upper``."""
    less, more = padding // 2, padding - padding // 2
    return (less, more) if upper else (more, less)
