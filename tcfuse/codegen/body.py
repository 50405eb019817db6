"""One statement instance as C++ text: scalars, or one value for each lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcfuse.codegen.elements import offset_of, read, stored
from tcfuse.codegen.evaluation import Evaluation, Frame, Place
from tcfuse.codegen.kernel_ast import Instance
from tcfuse.codegen.scope import LaneLoop, Lines, Names
from tcfuse.codegen.tensors import Tensor
from tcfuse.codegen.values import Value, combined, converted, identity_text, spread
from tcfuse.errors import UnsupportedError
from tcfuse.poly.guards import guards
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop, Statement
from tcfuse.types import DType


class BodyWriter:
    """Writes statement instances into the lines it is given."""

    def __init__(
        self,
        scop: Scop,
        tensors: Mapping[str, Tensor],
        names: Names,
        reciprocals: bool = False,
        *,
        reads_once: bool = False,
    ) -> None:
        self.frame = Frame(scop, tensors, names, reciprocals, reads_once)

    def renamed(self, names: Mapping[str, str]) -> BodyWriter:
        """A writer for which tensors of those C names have other ones."""
        frame = self.frame
        tensors = {
            key: replace(tensor, name=names.get(tensor.name, tensor.name))
            for key, tensor in frame.tensors.items()
        }
        once = frame.reads_once
        return BodyWriter(frame.scop, tensors, frame.names, frame.reciprocals, reads_once=once)

    def write(self, instance: Instance, lines: Lines, lane: LaneLoop | None) -> None:
        """One instance, as scalars outside a lanes loop."""
        statement = self.frame.scop.statement(instance.statement)
        written = statement.comprehension
        iterators = dict(zip(statement.iterators, instance.position, strict=True))
        target = self.frame.tensors[written.tensor]
        if statement.is_init:
            text = identity_text(written.assign.operator, target.dtype.compute)
            value = Value(text, target.dtype.compute)
        else:
            roots = (*(let.value for let in written.lets), written.value)
            place = Place(statement, iterators, guards(roots))
            value = Evaluation(self.frame, place, lines, lane).run()
        subscripts = tuple(iterators[name] for name in written.indices)
        if statement.is_update:
            self._update(statement, target, subscripts, value, lines, lane)
        else:
            self._store(target, subscripts, value, lines, lane)

    def _store(
        self,
        target: Tensor,
        subscripts: tuple[Polynomial, ...],
        value: Value,
        lines: Lines,
        lane: LaneLoop | None,
    ) -> None:
        offset = offset_of(target, subscripts)
        if lane is None or (not target.lanes and not offset.mentions(lane.iterator)):
            if value.varying:
                raise UnsupportedError(f"{target.name} gets one value from many lanes")
            text = converted(value, target.dtype)
            if target.register:
                lines.add(f"{target.name} = {target.rounded(text)};")
            else:
                lines.add(f"{target.name}[{offset}] = {target.encoded(text)};")
            return
        text = spread(value, target.dtype.compute, lane.width)
        if target.register:
            lines.add(f"{target.name} = {target.rounded(text)};")
        else:
            lines.add(stored(target, offset, target.encoded(text), lane))

    def _update(
        self,
        statement: Statement,
        target: Tensor,
        subscripts: tuple[Polynomial, ...],
        value: Value,
        lines: Lines,
        lane: LaneLoop | None,
    ) -> None:
        operator = statement.comprehension.assign.operator
        dtype = target.dtype.compute
        offset = offset_of(target, subscripts)
        if lane is None:
            old = target.name if target.register else target.decoded(f"{target.name}[{offset}]")
            text = combined(operator, old, converted(value, dtype), dtype)
            self._store(target, subscripts, Value(text, dtype), lines, None)
        elif target.lanes or offset.mentions(lane.iterator):
            old = read(target, offset, lane).text
            text = combined(operator, old, spread(value, dtype, lane.width), dtype)
            self._store(target, subscripts, Value(text, dtype, True), lines, lane)
        else:
            self._accumulate(statement, target, offset, value, lines, lane)

    def _accumulate(
        self,
        statement: Statement,
        target: Tensor,
        offset: Polynomial,
        value: Value,
        lines: Lines,
        lane: LaneLoop,
    ) -> None:
        """Each lane keeps a partial result, combined after the loop."""
        operator = statement.comprehension.assign.operator
        dtype = target.dtype.compute
        key = (target.name, str(offset), operator, dtype)
        copies = lane.accumulators.setdefault(key, [])
        while len(copies) <= lane.copy:
            copies.append(self.frame.names.fresh("acc"))
        name = copies[lane.copy]
        text = spread(value, dtype, lane.width)
        if lane.partial is not None:
            neutral = spread(Value(identity_text(operator, dtype), dtype), dtype, lane.width)
            first = f"tcf::first_lanes<{lane.width}>({lane.partial})"
            text = f"tcf::select({first}, {text}, {neutral})"
            if dtype is DType.BOOL:
                text = f"tcf::and_({first}, {spread(value, dtype, lane.width)})"
                if operator in ("min", "*"):
                    plain_text = spread(value, dtype, lane.width)
                    text = f"tcf::or_(tcf::not_({first}), {plain_text})"
        lines.add(f"{name} = {combined(operator, name, text, dtype)};")
