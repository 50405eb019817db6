"""Rows: the points of a tensor that a reduction combines, and statements over them.

A temporary that holds one value a row has the row's indices only, no dimensions of size 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from op_library._text import Loops, at, loops, names, product, statement
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import OpCall
from tcfuse.types import TensorType


@dataclass(frozen=True, slots=True)
class Rows:
    """How a reduction divides the dimensions of a tensor.

    Attributes:
        point: One loop per dimension.
        axes: The dimensions that are reduced.
    """

    point: Loops
    axes: frozenset[int]

    @property
    def kept(self) -> Loops:
        """The loops that tell rows apart."""
        return tuple(loop for d, loop in enumerate(self.point) if d not in self.axes)

    @property
    def reduced(self) -> Loops:
        """The loops inside a row."""
        return tuple(loop for d, loop in enumerate(self.point) if d in self.axes)

    @property
    def count(self) -> str:
        """The number of points of a row, as an expression."""
        return product(size for _, size in self.reduced)

    def with_ones(self) -> Loops:
        """``kept`` with a loop of one iteration for each reduced dimension."""
        return tuple(
            (f"z{d}", 1) if d in self.axes else loop for d, loop in enumerate(self.point)
        )

    def outer(self, keepdims: bool) -> Loops:
        """The loops of an output with one value a row."""
        return self.with_ones() if keepdims else self.kept

    def at_point(self, tensor: str) -> str:
        """A tensor read at the point."""
        return at(tensor, names(self.point))

    def at_row(self, tensor: str) -> str:
        """A temporary with one value a row read at the point's row."""
        return at(tensor, names(self.kept))

    def fold(self, target: str, value: str, assign: str = "+=!") -> str:
        """The statement that reduces ``value`` into a temporary with one value a row."""
        return statement(target, self.kept, value, assign=assign, reduce=self.reduced)

    def each_row(self, target: str, value: str) -> str:
        """The statement that computes a temporary with one value a row."""
        return statement(target, self.kept, value)

    def each_point(self, target: str, value: str) -> str:
        """The statement that computes a tensor at every point."""
        return statement(target, self.point, value)


def rows_of(call: OpCall, type_: TensorType, axes: Iterable[int]) -> Rows:
    """The rows of a tensor along ``axes``, which may count from the end.

    Raises:
        UnsupportedError: An axis is outside of the tensor.
    """
    chosen = set()
    for axis in axes:
        if not -type_.rank <= axis < type_.rank:
            raise UnsupportedError(
                f"axis {axis} of {call.op_type} is outside rank {type_.rank}"
            )
        chosen.add(axis % type_.rank)
    return Rows(loops(type_.shape), frozenset(chosen))
