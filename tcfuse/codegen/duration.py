"""About how long loops take, which decides in how many pieces a thread pool gets them.

The weights were fitted to 153 phases of kernels, run by one thread of a processor with AVX-512,
their tensors in its caches: nine of ten estimates are within a factor of two of the measured
time.  An older processor takes up to twice as long, and so does memory beyond the caches; both
only make pieces longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tcfuse.codegen.kernel_ast import Block, Guard, Instance, Loop
from tcfuse.codegen.loops import is_vector
from tcfuse.codegen.tensors import Tensor
from tcfuse.poly.polynomial import Polynomial, address, polynomial
from tcfuse.poly.scop import Scop, target
from tcfuse.tc.ast import Access, Binary, Call, Cast, Const, Expr, Select, Unary


class Weight(NamedTuple):
    """Picoseconds of something, once.

    Attributes:
        lane: As one lane of a vector.
        alone: On numbers that are not in a vector.
    """

    lane: int
    alone: int


LOAD = Weight(15, 100)
STORE = Weight(50, 100)
APART = 190  # an element whose neighbour in the vector is not its neighbour in memory
INSTANCE = 10  # of a statement, whatever it does
OPERATION = Weight(4, 45)
DIVISION = Weight(60, 150)
ROOT = Weight(60, 250)
ROUNDING = Weight(14, 100)
FUNCTION = Weight(110, 1100)
UNKNOWN_TURNS = 64  # of a loop whose bounds are not known outside of it

_ROUNDINGS = """
    abs sign isnan isinf bitand bitor bitxor bitnot shl shr tdiv tmod fabs floor ceil round
    roundeven trunc fmax fmin fma copysign
"""


class Durations:
    """Estimates for the blocks of one kernel."""

    def __init__(self, scop: Scop, tensors: Mapping[str, Tensor]) -> None:
        self.scop = scop
        self.tensors = tensors

    def block(self, block: Block, lanes: str | None = None) -> Polynomial:
        """Picoseconds of a block, as a polynomial of the sizes.

        Args:
            block: What runs once.
            lanes: The iterator of the loop around it whose iterations are vector lanes.
        """
        total = Polynomial()
        for node in block:
            match node:
                case Instance():
                    total = total + Polynomial.constant(self._instance(node, lanes))
                case Guard():
                    total = total + self.block(node.then, lanes)
                    total = total + self.block(node.otherwise, lanes)
                case Loop():
                    own = node.iterator if node.lanes and is_vector(node) else None
                    total = total + self._turns(node) * self.block(node.body, lanes or own)
        return total

    def _turns(self, loop: Loop) -> Polynomial:
        extent, sizes = loop.high - loop.low, self.scop.checked.sizes
        if all(factor in sizes for monomial, _ in extent.terms for factor in monomial):
            return extent.at_least_zero()
        return Polynomial.constant(loop.block[0] if loop.block else UNKNOWN_TURNS)

    def _instance(self, instance: Instance, lanes: str | None) -> int:
        statement = self.scop.statement(instance.statement)
        place = _Place(
            self.tensors, dict(zip(statement.iterators, instance.position, strict=True)), lanes
        )
        total = INSTANCE + place.moved(target(statement), STORE)
        if statement.is_init:
            return total
        if statement.is_update:
            total += place.moved(target(statement), LOAD) + place.weigh(OPERATION)
        return total + sum(map(place.value, statement.comprehension.values))


class _Place(NamedTuple):
    """Where a statement runs: its iterators' values, and which of them counts lanes."""

    tensors: Mapping[str, Tensor]
    position: Mapping[str, Polynomial]
    lanes: str | None

    def weigh(self, weight: Weight) -> int:
        return weight.alone if self.lanes is None else weight.lane

    def moved(self, access: Access, weight: Weight) -> int:
        """An element that is read or written; nothing where every lane has the same one."""
        tensor = self.tensors[access.tensor]
        if tensor.register:
            return 0
        if self.lanes is None:
            return weight.alone
        places = [polynomial(s, self.position) for s in access.subscripts]
        known = tuple(place for place in places if place is not None)
        if len(known) < len(places):
            return APART
        stride = address(known, tensor.strides).stride(self.lanes)
        if stride is None or (stride.number not in (0, 1) and not tensor.lanes):
            return APART
        return 0 if stride.number == 0 else weight.lane

    def value(self, value: Expr) -> int:
        """Everything that an expression computes."""
        match value:
            case Access(subscripts=subscripts):
                found = (s for s in subscripts if polynomial(s, self.position) is None)
                return self.moved(value, LOAD) + sum(map(self.value, found))
            case Binary(operator, left, right):
                # a constant divisor is its reciprocal
                divides = operator in ("/", "%") and not isinstance(right, Const)
                own = DIVISION if divides else OPERATION
                return self.weigh(own) + self.value(left) + self.value(right)
            case Unary(_, operand) | Cast(_, operand):
                return self.weigh(OPERATION) + self.value(operand)
            case Select(condition, then, otherwise):
                parts = (condition, then, otherwise)
                return self.weigh(OPERATION) + sum(map(self.value, parts))
            case Call(function, arguments):
                return self.weigh(_function(function)) + sum(map(self.value, arguments))
            case _:
                return 0


def _function(name: str) -> Weight:
    if name in ("sqrt", "rsqrt"):
        return ROOT
    return ROUNDING if name in _ROUNDINGS.split() or name.startswith("as_") else FUNCTION
