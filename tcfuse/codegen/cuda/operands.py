"""Operands and results of a contraction as C++ lambdas over the numbers of its axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from tcfuse.codegen.body import BodyWriter
from tcfuse.codegen.cuda.axes import Axis, Body
from tcfuse.codegen.cuda.contracted import Contraction, Factor
from tcfuse.codegen.cuda.vectors import SCALAR, Vector
from tcfuse.codegen.evaluation import Evaluation, Frame, Place
from tcfuse.codegen.scope import LaneLoop, Lines, Names
from tcfuse.codegen.tensors import Tensor
from tcfuse.codegen.values import combined, converted, spread
from tcfuse.poly.guards import guards
from tcfuse.poly.scop import Scop, Statement
from tcfuse.tc.ast import Access, Expr
from tcfuse.types import DType


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """How a lambda goes through memory.

    Attributes:
        body: What it evaluates depends on.
        along: The axis along which it has several neighbours at once, or lanes have them.
        vector: How many neighbours, and when.
    """

    body: Body
    along: Axis
    vector: Vector = SCALAR

    def lane(self, width: str, depth: int) -> LaneLoop | None:
        """The loop over lanes that the neighbours are; ``None``: there is only ever one."""
        if self.vector.lanes == 1:
            return None
        return LaneLoop(self.along.loops[-1].iterator, width, Lines(depth=depth))


def way_through(
    body: Body, axes: Sequence[Axis], most: int, most_bytes: int, iterators: AbstractSet[str]
) -> Way:
    """The way along the axis with the widest vectors, or else with most neighbours in memory.

    Args:
        body: What is evaluated.
        axes: Those it may go along; of equals the first is taken.
        most: Neighbours at most.
        most_bytes: Of the widest access.
        iterators: Everything that changes while the kernel runs.
    """
    ways = [Way(body, axis, axis.vector(body, most, most_bytes, iterators)) for axis in axes]
    return max(ways, key=lambda way: (way.vector.lanes, way.along.neighbours(body)))


class Lambdas:
    """Writes the lambdas of one contraction."""

    def __init__(self, scop: Scop, tensors: Mapping[str, Tensor], *, reciprocals: bool) -> None:
        self.scop = scop
        self.tensors = tensors
        self.names = Names()
        self.reciprocals = reciprocals

    def operand(
        self,
        name: str,
        factor: Factor,
        way: Way,
        axes: Sequence[Axis],
        element: DType,
        lines: Lines,
    ) -> None:
        """``name(b, outer, k)``: the factor at as many neighbours as its vector holds.

        Args:
            name: ``a`` or ``b``.
            factor: What it is.
            way: How it is read.
            axes: Of the batch, the rows or columns, and the steps of the sum.
            element: What is wanted; a 16-bit float as it is in memory.
            lines: Where the lambda goes.
        """
        width = f"TCF_{name.upper()}"
        parameters = ", ".join(f"tcf_index {axis.index}" for axis in axes)
        value, tensors = factor.value, {**self.tensors}
        raw = element.is_half and isinstance(value, Access)
        if isinstance(value, Access) and raw:
            tensors[value.tensor] = replace(tensors[value.tensor], dtype=DType.UINT16)
        with lines.braces(f"const auto {name} = [&]({parameters})"):
            for axis in axes:
                axis.decode(way.body, lines)
            lane = way.lane(width, lines.depth)
            inner = Lines(depth=lines.depth)
            places = dict(zip(factor.statement.iterators, factor.position, strict=True))
            frame = Frame(self.scop, tensors, self.names, self.reciprocals)
            place = Place(factor.statement, places, guards(_roots(factor.statement)))
            found = Evaluation(frame, place, inner, lane).run()
            if lane is not None:
                lines.extend(lane.before)
            lines.extend(inner)
            dtype = DType.UINT16 if raw else element.compute
            text = converted(found, dtype) if lane is None else spread(found, dtype, width)
            if element.is_half and not raw:
                text = replace(self.tensors[factor.target], dtype=element).encoded(text)
            lines.add(f"return {text};")
        lines.text[-1] += ";"

    def result(self, found: Contraction, way: Way, axes: Sequence[Axis], lines: Lines) -> None:
        """``c(b, m, n, sums)``: what follows the sums of as many neighbours."""
        width = "TCF_C"
        parameters = ", ".join(f"tcf_index {axis.index}" for axis in axes)
        lane = way.lane(width, lines.depth + 1)
        tensors, sums = {**self.tensors}, self.tensors[found.target]
        with lines.braces(f"const auto c = [&]({parameters}, const auto& tcf_sums)"):
            for axis in axes:
                axis.decode(way.body, lines)
            around = [self.scop.statement(i.statement).comprehension for i in found.around]
            for name in dict.fromkeys((found.target, *(s.tensor for s in around))):
                tensor = self.tensors[name]
                if not tensor.register:
                    continue
                tensors[name] = replace(tensor, lanes=lane is not None)
                kind = tensor.held if lane is None else f"tcf::vec<{tensor.held}, {width}>"
                start = "tcf_sums" if tensor is sums else "{}"
                lines.add(f"{kind} {tensor.name} = {start}; (void){tensor.name};")
            body = BodyWriter(self.scop, tensors, self.names, self.reciprocals)
            inner = Lines(depth=lines.depth)
            if found.start is not None:
                body.write(found.start, inner, lane)
                inner.add(f"{sums.name} = {combined('+', sums.name, 'tcf_sums', found.dtype)};")
            for instance in found.after:
                body.write(instance, inner, lane)
            if lane is not None:
                lines.extend(lane.before)
            lines.extend(inner)
        lines.text[-1] += ";"


def _roots(statement: Statement) -> tuple[Expr, ...]:
    written = statement.comprehension
    return (*(let.value for let in written.lets), written.value)
