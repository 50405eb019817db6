"""Loops counted by one number: how its digits are found, and where neighbours are in memory.

The rows ``m`` of a contraction may be a convolution's images, rows and columns; the number
``m`` is decoded by divisions.  Where every address steps through neighbouring loops as through
one (``h*W + w``), they are one digit, and nothing is divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tcfuse.codegen.cuda.nest import as_divisor, as_factor
from tcfuse.codegen.cuda.vectors import SCALAR, Vector, at_places, multiple_of
from tcfuse.codegen.kernel_ast import Loop
from tcfuse.codegen.scope import Lines
from tcfuse.codegen.tensors import Tensor
from tcfuse.mapping.access import touches
from tcfuse.poly.bounds import stays_inside
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop, Statement
from tcfuse.poly.volume import TYPICAL
from tcfuse.tc.ast import Access, Expr, Var, children


@dataclass(frozen=True, slots=True)
class Reach:
    """The addresses of one access: a polynomial over the loops, and an element's bytes."""

    offset: Polynomial
    bytes: int


@dataclass(frozen=True, slots=True)
class Body:
    """What some values depend on.

    Attributes:
        reaches: The accesses of memory whose addresses are known and inside.
        checked: Those that may miss their tensors, and are checked.
        loose: What matters otherwise: as a number, or in accesses that are checked.
    """

    reaches: tuple[Reach, ...]
    checked: tuple[Reach, ...]
    loose: frozenset[Polynomial]

    def is_loose(self, iterator: str) -> bool:
        """Whether the values change with a loop other than through known addresses."""
        return any(value.mentions(iterator) for value in self.loose)

    def uses(self, iterator: str) -> bool:
        """Whether the values change with a loop."""
        return self.is_loose(iterator) or any(
            reach.offset.mentions(iterator) for reach in self.reaches
        )


def body_of(
    parts: Iterable[tuple[Statement, tuple[Polynomial, ...]]],
    scop: Scop,
    tensors: Mapping[str, Tensor],
    *,
    writes: bool,
) -> Body:
    """What instances of statements depend on.

    Args:
        parts: The statements with the values of their iterators.
        scop: Where they are from.
        tensors: Where the tensors are.
        writes: Whether what they write counts.
    """
    reaches: list[Reach] = []
    checked: list[Reach] = []
    loose: set[Polynomial] = set()
    for statement, position in parts:
        places = dict(zip(statement.iterators, position, strict=True))
        known: set[int] = set()
        for touch in touches(scop, statement):
            if touch.is_write and not writes:
                continue
            tensor, rank = tensors[touch.tensor], len(touch.access.subscripts)
            inside = touch.is_write or all(
                stays_inside(scop, statement, touch.access, k) for k in range(rank)
            )
            if inside:
                known.add(id(touch.access))
            if not tensor.register:
                reach = Reach(at_places(touch.offset, places), tensor.dtype.bytes)
                (reaches if inside else checked).append(reach)
        for value in statement.comprehension.values:
            loose |= {places[name] for name in _numbers(value, known) if name in places}
    return Body(tuple(reaches), tuple(checked), frozenset(loose))


def _numbers(value: Expr, known: AbstractSet[int]) -> Iterator[str]:
    """Names in ``value`` that are not in the subscripts of a known access."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, Var):
            yield node.name
        if not (isinstance(node, Access) and id(node) in known):
            stack.extend(children(node))


@dataclass(frozen=True, slots=True)
class Axis:
    """Loops, outermost first, that one number counts.

    Attributes:
        index: C name of the number.
    """

    index: str
    loops: tuple[Loop, ...]

    @property
    def extent(self) -> Polynomial:
        """How far the number counts."""
        total = Polynomial.constant(1)
        for loop in self.loops:
            total = total * extent_of(loop)
        return total

    def digits(self, body: Body) -> list[tuple[Loop, ...]]:
        """The loops in groups, each of which is one digit for ``body``."""
        groups: list[tuple[Loop, ...]] = []
        for loop in reversed(self.loops):
            if groups and _follows(loop, groups[0], body):
                groups[0] = (loop, *groups[0])
            else:
                groups.insert(0, (loop,))
        return groups

    def decode(self, body: Body, lines: Lines) -> None:
        """The iterators that ``body`` uses, from the number."""
        rest, left = self.index, self.digits(body)
        while left:
            *left, digit = left
            size = " * ".join(as_divisor(loop.high - loop.low) for loop in digit)
            size = f"({size})" if len(digit) > 1 else size
            if any(body.uses(loop.iterator) for loop in digit):
                value = f"{rest} % {size}" if left else rest
                low = digit[-1].low
                text = f"{low} + {value}" if low.terms else value
                lines.add(f"const tcf_index {digit[-1].iterator} = {text};")
                for loop in digit[:-1]:
                    lines.add(f"constexpr tcf_index {loop.iterator} = 0;")
            if not any(body.uses(loop.iterator) for outer in left for loop in outer):
                return
            lines.add(f"const tcf_index {self.index}_{len(left)} = {rest} / {size};")
            rest = f"{self.index}_{len(left)}"

    def vector(
        self, body: Body, most: int, most_bytes: int, iterators: AbstractSet[str]
    ) -> Vector:
        """The most neighbours along the axis that every access finds side by side.

        Args:
            body: What is accessed.
            most: Neighbours.
            most_bytes: Of the widest access.
            iterators: Everything that changes while the kernel runs.
        """
        if not self.is_unit(body) or body.is_loose(self.loops[-1].iterator):
            return SCALAR
        digit = self.digits(body)[-1]
        lane = digit[-1].iterator
        along = [r for r in body.reaches if r.offset.mentions(lane)]
        widest = max(r.bytes for r in along)
        lanes = full = min(most, most_bytes // widest)
        while lanes > 1:
            rests = [_from_start(r.offset, digit) - Polynomial.factor(lane) for r in along]
            needed = [
                multiple_of(monomial, coefficient, lanes, iterators)
                for rest in (*rests, _length(digit), digit[-1].low)
                for monomial, coefficient in rest.terms
            ]
            conditions = dict.fromkeys(c for c in needed if c)
            # A half-empty vector is not worth conditions that may rule out others.
            if None not in needed and (lanes == full or not conditions):
                return Vector(lanes, (f"tcf_alignment % {lanes * widest} == 0", *conditions))
            lanes //= 2
        return SCALAR

    def neighbours(self, body: Body) -> int:
        """About how many neighbours along the axis are neighbours in memory."""
        return _rough(_length(self.digits(body)[-1])) if self.is_unit(body) else 0

    def is_unit(self, body: Body) -> bool:
        """Whether neighbours along the axis are neighbours in memory, or the same."""
        if not self.loops:
            return False
        lane = self.loops[-1].iterator
        found = (*body.reaches, *body.checked)
        strides = [r.offset.stride(lane) for r in found if r.offset.mentions(lane)]
        return bool(strides) and all(s is not None and s.number == 1 for s in strides)


def extent_of(loop: Loop) -> Polynomial:
    """How often a loop runs, as one factor."""
    return as_factor((loop.high - loop.low).at_least_zero())


def _length(loops: Sequence[Loop]) -> Polynomial:
    """How often loops run together, if at all, as a sum of products."""
    total = Polynomial.constant(1)
    for loop in loops:
        total = total * (loop.high - loop.low)
    return total


def _from_start(offset: Polynomial, digit: Sequence[Loop]) -> Polynomial:
    """An address with the outer loops of a digit at their first iteration."""
    for loop in digit[:-1]:
        offset = offset.put(loop.iterator, Polynomial())
    return offset


def _follows(outer: Loop, inner: Sequence[Loop], body: Body) -> bool:
    """Whether ``outer`` goes on where the loops of a digit end, in every address."""
    lane = inner[-1].iterator
    if outer.low.terms or any(loop.low.terms for loop in inner):
        return False
    if any(body.is_loose(loop.iterator) for loop in (outer, *inner)):
        return False
    for reach in body.reaches:
        step, turn = reach.offset.stride(lane), reach.offset.stride(outer.iterator)
        if step is None or turn is None or turn != step * _length(inner):
            return False
    return True


def by_strides(loops: Sequence[Loop], bodies: Sequence[Body]) -> tuple[Loop, ...]:
    """The loops in another order: those that step farther through memory outside."""

    def steps(loop: Loop) -> int:
        strides = (
            reach.offset.stride(loop.iterator)
            for body in bodies
            for reach in (*body.reaches, *body.checked)
        )
        return sum(_rough(stride) for stride in strides if stride is not None)

    return tuple(sorted(loops, key=steps, reverse=True))


def _rough(value: Polynomial) -> int:
    """The size of a value when every name in it is ``TYPICAL``."""
    return sum(abs(c) * TYPICAL ** len(monomial) for monomial, c in value.terms)
