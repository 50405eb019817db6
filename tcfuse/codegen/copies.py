"""Copies of statement instances that are written side by side: register blocks, lane groups.

A copy stands for one iteration of every block around it.  It shifts the blocks' iterators, and
the registers that statements of the block write have a name of their own in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tcfuse.codegen.body import BodyWriter
from tcfuse.codegen.kernel_ast import Instance
from tcfuse.codegen.scope import LaneLoop, Lines
from tcfuse.codegen.tensors import Tensor
from tcfuse.poly.polynomial import Polynomial


@dataclass(frozen=True, slots=True)
class Copy:
    """One of the iterations that run side by side.

    Attributes:
        shifts: What is added to each block's iterator.
        names: C names of the registers that are the copy's own, by tensor.
    """

    shifts: tuple[tuple[str, Polynomial], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def at(self, instance: Instance) -> Instance:
        """The instance that the copy stands for."""
        position = instance.position
        for iterator, shift in self.shifts:
            value = Polynomial.factor(iterator) + shift
            position = tuple(p.put(iterator, value) for p in position)
        return replace(instance, position=position)

    def inside(
        self, iterator: str, shift: Polynomial, own: Iterable[Tensor], number: int
    ) -> Copy:
        """This copy in iteration ``number`` of one more block."""
        names = dict(self.names)
        for tensor in own:
            names[tensor.name] = f"{names.get(tensor.name, tensor.name)}_{number}"
        shifts = self.shifts if not shift.terms else (*self.shifts, (iterator, shift))
        return Copy(shifts, names)

    def name(self, tensor: Tensor) -> str:
        """The C name of a tensor in this copy."""
        return self.names.get(tensor.name, tensor.name)


class Copies:
    """The copies in force where statements are being written."""

    def __init__(self, body: BodyWriter) -> None:
        self.current: tuple[Copy, ...] = (Copy(),)
        self._body = body
        self._writers: dict[tuple[tuple[str, str], ...], BodyWriter] = {}

    def __len__(self) -> int:
        return len(self.current)

    def write(self, instance: Instance, lines: Lines, lane: LaneLoop | None) -> None:
        """One instance for every copy."""
        for copy in self.current:
            self._writer(copy).write(copy.at(instance), lines, lane)

    def within(
        self, iterator: str, shifts: Iterable[Polynomial], own: Iterable[Tensor]
    ) -> tuple[Copy, ...]:
        """Every copy in every iteration of one more block, whose iterations are neighbours.

        So what rows share with lane groups (a vector for each group) stays in few registers,
        while what they do not (one scalar a row) is needed once and can go.
        """
        tensors, numbered = tuple(own), tuple(enumerate(shifts))
        return tuple(
            copy.inside(iterator, shift, tensors, number)
            for copy in self.current
            for number, shift in numbered
        )

    def names(self, tensor: Tensor) -> tuple[str, ...]:
        """The C names a register has in the copies, each once."""
        return tuple(dict.fromkeys(copy.name(tensor) for copy in self.current))

    def _writer(self, copy: Copy) -> BodyWriter:
        if not copy.names:
            return self._body
        key = tuple(sorted(copy.names.items()))
        if key not in self._writers:
            self._writers[key] = self._body.renamed(copy.names)
        return self._writers[key]
