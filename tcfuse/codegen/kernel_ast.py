"""Loops and statement instances, the form between isl's AST and C text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tcfuse.poly.polynomial import Polynomial


@dataclass(frozen=True, slots=True)
class Loop:
    """``for iterator in low:high`` (half open).

    Attributes:
        lanes: Iterations run as vector lanes.
        parallel: Iterations are independent and may run on several threads.
        spread: The threads that run the lanes of the loop inside may share them as well.
        block: Iterations that run side by side in registers, in blocks of these sizes; the
            first is the usual one, the others are for the rest.  Empty: one after the other.
        most: Iterations that a part of a loop has at most; its bounds do not say.
    """

    iterator: str
    low: Polynomial
    high: Polynomial
    body: Block
    lanes: bool = False
    parallel: bool = False
    spread: bool = False
    block: tuple[int, ...] = ()
    most: int | None = None

    @property
    def longest(self) -> int | None:
        """Iterations it has at most, where that is known."""
        return self.most if self.most is not None else (self.high - self.low).number


@dataclass(frozen=True, slots=True)
class Guard:
    """``if (condition) then else otherwise``; the condition is C text."""

    condition: str
    then: Block
    otherwise: Block


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of a statement; ``position`` holds its iterators' values."""

    statement: str
    position: tuple[Polynomial, ...]


Node: TypeAlias = Loop | Guard | Instance
Block: TypeAlias = tuple[Node, ...]


def instances(block: Block) -> list[Instance]:
    """Every statement instance of ``block``, in order."""
    found: list[Instance] = []
    for node in block:
        match node:
            case Loop():
                found += instances(node.body)
            case Guard():
                found += instances(node.then) + instances(node.otherwise)
            case Instance():
                found.append(node)
    return found


def instances_outside_lanes(block: Block) -> Iterator[Instance]:
    """The instances that no loop over lanes is around."""
    for node in block:
        match node:
            case Instance():
                yield node
            case Guard():
                yield from instances_outside_lanes((*node.then, *node.otherwise))
            case Loop():
                if not node.lanes:
                    yield from instances_outside_lanes(node.body)


def loops(block: Block) -> list[Loop]:
    """Every loop of ``block``, outermost first."""
    found: list[Loop] = []
    for node in block:
        match node:
            case Loop():
                found += [node, *loops(node.body)]
            case Guard():
                found += loops(node.then) + loops(node.otherwise)
            case Instance():
                pass
    return found


def is_uniform(loop: Loop) -> bool:
    """Whether every iteration of ``loop`` runs the same statements equally often."""

    def uniform(block: Block) -> bool:
        for node in block:
            match node:
                case Guard():
                    if Polynomial.factor(node.condition).mentions(loop.iterator):
                        return False
                    if not (uniform(node.then) and uniform(node.otherwise)):
                        return False
                case Loop():
                    bounds = (node.low, node.high)
                    if any(b.mentions(loop.iterator) for b in bounds):
                        return False
                    if not uniform(node.body):
                        return False
                case Instance():
                    pass
        return True

    return uniform(loop.body)
