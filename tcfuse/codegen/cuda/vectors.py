"""How many neighbouring elements a thread reads or writes at once, and what that takes.

A thread of a loop over lanes runs ``L`` neighbouring iterations.  Their elements are one access
of up to 16 bytes where its address is a multiple of its size: the tensor starts there, and all
that is added to it besides the lane is a multiple of ``L``.  Of numbers that is known, of sizes
it is a condition of the launch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tcfuse.codegen.cuda.nest import Nest
from tcfuse.codegen.kernel_ast import Loop, instances
from tcfuse.codegen.tensors import Tensor
from tcfuse.mapping.access import touches
from tcfuse.poly.bounds import stays_inside
from tcfuse.poly.polynomial import Monomial, Polynomial
from tcfuse.poly.scop import Scop


@dataclass(frozen=True, slots=True)
class Vector:
    """A number of lanes and when it may be used.

    Attributes:
        lanes: Neighbouring iterations of a thread, a power of two.
        conditions: C conditions over size names and ``tcf_alignment``; none for one lane.
    """

    lanes: int
    conditions: tuple[str, ...] = ()

    def fills(self, extent: Polynomial) -> bool:
        """Whether that many iterations are whole groups of lanes, given the conditions."""
        needed = (multiple_of(m, c, self.lanes, frozenset()) for m, c in extent.terms)
        return all(n == "" or n in self.conditions for n in needed)


SCALAR = Vector(1)


@dataclass(frozen=True, slots=True)
class Access:
    """One access of memory in a loop over lanes: its address, and the bytes of an element."""

    offset: Polynomial
    bytes: int
    inside: bool


def choose_vector(
    nest: Nest, scop: Scop, tensors: Mapping[str, Tensor], vector_bytes: int
) -> Vector:
    """The widest vector with which every access of the loops over lanes is one."""
    found = [(loop, list(_accesses(loop, scop, tensors))) for loop in nest.lane_loops]
    widest = max((a.bytes for _, accesses in found for a in accesses), default=0)
    if not widest:
        return SCALAR
    most = max(1, vector_bytes // widest)
    for loop, _ in found:
        extent = (loop.high - loop.low).number
        while extent is not None and most > 1 and most > extent:
            most //= 2
    iterators = nest.iterators
    while most > 1:
        conditions = alignment_conditions(found, most, iterators)
        if conditions is not None:
            return Vector(most, (f"tcf_alignment % {most * widest} == 0", *conditions))
        most //= 2
    return SCALAR


def _accesses(loop: Loop, scop: Scop, tensors: Mapping[str, Tensor]) -> Iterator[Access]:
    """The accesses of memory that differ between the lanes of ``loop``."""
    for instance in instances(loop.body):
        statement = scop.statement(instance.statement)
        places = dict(zip(statement.iterators, instance.position, strict=True))
        for touch in touches(scop, statement):
            tensor = tensors[touch.tensor]
            if tensor.register or tensor.lanes:
                continue
            offset = at_places(touch.offset, places)
            if not offset.mentions(loop.iterator):
                continue
            rank = len(touch.access.subscripts)
            inside = touch.is_write or not any(
                stays_inside(scop, statement, touch.access, k) is False for k in range(rank)
            )
            yield Access(offset, tensor.dtype.bytes, inside)


def at_places(offset: Polynomial, places: dict[str, Polynomial]) -> Polynomial:
    """The address with the iterators' values; two steps, as values may have the same names."""
    for name in places:
        offset = offset.put(name, Polynomial.factor(f"tcf_old_{name}"))
    for name, value in places.items():
        offset = offset.put(f"tcf_old_{name}", value)
    return offset


def alignment_conditions(
    found: Sequence[tuple[Loop, Sequence[Access]]], lanes: int, iterators: set[str]
) -> list[str] | None:
    """What must hold of the sizes for ``lanes``; ``None``: it never does."""
    conditions: dict[str, None] = {}
    for loop, accesses in found:
        rests = [Polynomial() + loop.low]
        for access in accesses:
            stride = access.offset.stride(loop.iterator)
            if stride is None or stride.number != 1 or not access.inside:
                return None
            rests.append(access.offset - Polynomial.factor(loop.iterator))
        for rest in rests:
            for monomial, coefficient in rest.terms:
                condition = multiple_of(monomial, coefficient, lanes, iterators)
                if condition is None:
                    return None
                if condition:
                    conditions[condition] = None
    return list(conditions)


def multiple_of(
    monomial: Monomial, coefficient: int, lanes: int, iterators: AbstractSet[str]
) -> str | None:
    """When a product is a multiple of ``lanes``: always (""), never known, or a condition."""
    known = math.gcd(coefficient, lanes)
    if known == lanes:
        return ""
    sizes = [f for f in monomial if f.isidentifier() and f not in iterators]
    if not sizes:
        return None
    return f"{' * '.join([str(known), *sizes] if known > 1 else sizes)} % {lanes} == 0"
