"""Attention heads: tensors that hold a vector for each batch, head and step, read alike.

Four dimensions keep the heads apart, ``(batch, heads, steps, width)``; three have them side by
side, ``(batch, steps, heads * width)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from op_library._text import Loop, Loops, at, minus, plus, select, statement, total
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import OpCall, same_size
from tcfuse.types import Size, TensorType


@dataclass(frozen=True, slots=True)
class Heads:
    """A tensor of heads under the name it is read by.

    Attributes:
        packed: The heads are side by side in the last of three dimensions.
    """

    name: str
    batch: Size
    heads: Size
    steps: Size
    width: Size
    packed: bool = False

    def at(self, batch: str, head: str, step: str, channel: str) -> str:
        """The tensor read at a point."""
        if not self.packed:
            return at(self.name, (batch, head, step, channel))
        return at(self.name, (batch, step, self.column(head, channel)))

    def column(self, head: str, channel: str) -> str:
        """Where the channel of a head stands among those of all heads."""
        if self.heads == 1 or head == "0":
            return channel
        if self.width == 1:
            return head
        return plus(f"{head} * {self.width}", channel)

    def loops(self, names: Sequence[str]) -> tuple[Loop, ...]:
        """A loop of each name over batch, heads, steps and width."""
        sizes = (self.batch, self.heads, self.steps, self.width)
        return tuple(zip(names, sizes, strict=True))


def heads_of(call: OpCall, name: str, type_: TensorType, count: int) -> Heads:
    """A tensor of three or four dimensions as heads.

    Args:
        call: The node.
        name: The name the tensor is read by.
        type_: Its type.
        count: The number of heads where they are side by side.

    Raises:
        UnsupportedError: It has another rank, or does not divide into the heads.
    """
    if type_.rank == 4:
        batch, heads, steps, width = type_.shape
        return Heads(name, batch, heads, steps, width)
    if type_.rank != 3:
        raise UnsupportedError(f"{call.op_type} of rank {type_.rank}")
    batch, steps, columns = type_.shape
    return Heads(name, batch, count, steps, part(call, columns, count), packed=True)


def part(call: OpCall, size: Size, count: int) -> Size:
    """One of ``count`` equal parts of a size.

    Raises:
        UnsupportedError: It cannot be told.
    """
    if count == 1:
        return size
    if count < 1 or not isinstance(size, int) or size % count:
        raise UnsupportedError(f"{call.op_type} of {size} channels in {count} heads")
    return size // count


def shared_head(call: OpCall, queries: Size, keys: Size, index: str) -> str:
    """The head of the keys that a head of the queries uses.

    Raises:
        UnsupportedError: The heads of the queries are no multiple of those of the keys.
    """
    if keys == 1:
        return "0"
    if same_size(queries, keys):
        return index
    if not isinstance(queries, int) or not isinstance(keys, int) or queries % keys:
        raise UnsupportedError(f"{call.op_type} of {queries} heads with {keys} of the keys")
    return f"{index} / {queries // keys}"


def behind(name: str, past: Heads, new: Heads) -> tuple[Heads, str]:
    """Steps behind those of the past, and the statement that puts them there."""
    whole = Heads(name, new.batch, new.heads, total([past.steps, new.steps]), new.width)
    point = whole.loops("bhtc")
    batch, head, step, channel = "bhtc"
    value = select(
        f"{step} < {past.steps}",
        past.at(batch, head, step, channel),
        new.at(batch, head, minus(step, past.steps), channel),
    )
    return whole, statement(name, point, value)


def side_by_side(name: str, type_: TensorType, width: Size, indices: str) -> tuple[Loops, str]:
    """The loops of a tensor with its heads side by side, and what it is another shape of.

    Args:
        name: A tensor of batch, steps, heads and width, which is read.
        type_: The type of the tensor with the heads side by side.
        width: The width of a head.
        indices: Names for batch, step and column.
    """
    batch, step, column = tuple(indices)
    point = tuple(zip(indices, type_.shape, strict=True))
    return point, at(name, (batch, step, f"{column} / {width}", f"{column} % {width}"))
