"""What the instances of a phase read and write in memory, as addresses over its loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tcfuse.codegen.cuda.vectors import Access, at_places
from tcfuse.codegen.kernel_ast import Block, Loop, instances
from tcfuse.codegen.tensors import Tensor
from tcfuse.mapping.access import touches
from tcfuse.poly.bounds import stays_inside
from tcfuse.poly.polynomial import Polynomial, from_size, polynomial
from tcfuse.poly.scop import Scop


@dataclass(frozen=True, slots=True)
class Reach:
    """An access of memory.

    Attributes:
        offset: The address, over iterators of the loops and sizes.
        subscripts: The element, over the same; ``None`` where it depends on data.
        shape: The tensor's.
        bytes: Of the element.
        is_inside: Whether it is known to lie inside the tensor; else a condition protects it.
    """

    tensor: str
    is_write: bool
    offset: Polynomial
    subscripts: tuple[Polynomial | None, ...]
    shape: tuple[Polynomial, ...]
    bytes: int
    is_inside: bool

    @property
    def access(self) -> Access:
        """What vectors have to know of it."""
        return Access(self.offset, self.bytes, self.is_inside)

    def is_unit(self, loop: Loop) -> bool:
        """Whether the next iteration of ``loop`` reaches the next element."""
        stride = self.offset.stride(loop.iterator)
        return stride is not None and stride.number == 1


def reaches(block: Block, scop: Scop, tensors: Mapping[str, Tensor]) -> Iterator[Reach]:
    """Every access of memory in ``block``."""
    for instance in instances(block):
        statement = scop.statement(instance.statement)
        places = dict(zip(statement.iterators, instance.position, strict=True))
        lets = {let.name for let in statement.comprehension.lets}
        for touch in touches(scop, statement):
            tensor = tensors[touch.tensor]
            if tensor.register:
                continue
            subscripts = touch.access.subscripts
            known = tuple(polynomial(s, places) for s in subscripts)
            yield Reach(
                touch.tensor,
                touch.is_write,
                at_places(touch.offset, places),
                tuple(None if s is None or _mentions(s, lets) else s for s in known),
                tuple(from_size(size) for size in tensor.shape),
                tensor.dtype.bytes,
                touch.is_write
                or all(
                    stays_inside(scop, statement, touch.access, k)
                    for k in range(len(subscripts))
                ),
            )


def agreeing(found: Sequence[Reach]) -> Iterator[Reach]:
    """An access of each tensor of which all accesses are the same, and depend on no data."""
    by_tensor: dict[str, list[Reach]] = {}
    for reach in found:
        by_tensor.setdefault(reach.tensor, []).append(reach)
    for same in by_tensor.values():
        first = same[0]
        if None not in first.subscripts and all(r.subscripts == first.subscripts for r in same):
            yield first


def _mentions(value: Polynomial, names: set[str]) -> bool:
    return any(value.mentions(name) for name in names)
