"""One statement instance as C++ text: scalars, or one value for each lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcfuse.codegen.kernel_ast import Instance
from tcfuse.codegen.operators import Operators
from tcfuse.codegen.scope import LaneLoop, Lines, Names
from tcfuse.codegen.tensors import Tensor
from tcfuse.codegen.values import (
    Value,
    combined,
    converted,
    identity_text,
    spread,
)
from tcfuse.errors import UnsupportedError
from tcfuse.poly.bounds import stays_inside
from tcfuse.poly.guards import Guard, guards
from tcfuse.poly.polynomial import Polynomial, from_size, polynomial
from tcfuse.poly.scop import Scop, Statement
from tcfuse.tc.ast import Access, Const, Expr, Var, children, post_order
from tcfuse.tc.typing import Type, Weak, node_type
from tcfuse.types import DType


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Statement-wide facts while one instance is written."""

    statement: Statement
    iterators: Mapping[str, Polynomial]
    guard_of: Mapping[int, Guard]


class BodyWriter:
    """Writes statement instances into the lines it is given."""

    def __init__(self, scop: Scop, tensors: Mapping[str, Tensor], names: Names) -> None:
        self.scop = scop
        self.tensors = tensors
        self.names = names
        self.types = scop.checked.tensors

    def write(self, instance: Instance, lines: Lines, lane: LaneLoop | None) -> None:
        """One instance, as scalars outside a lanes loop."""
        statement = self.scop.statement(instance.statement)
        written = statement.comprehension
        iterators = dict(zip(statement.iterators, instance.position, strict=True))
        target = self.tensors[written.tensor]
        if statement.is_init:
            text = identity_text(written.assign.operator, target.dtype.compute)
            value = Value(text, target.dtype.compute)
        else:
            roots = (*(let.value for let in written.lets), written.value)
            place = _Place(statement, iterators, guards(roots))
            value = _Evaluation(self, place, lines, lane).run()
        subscripts = tuple(iterators[name] for name in written.indices)
        if statement.is_update:
            self._update(statement, target, subscripts, value, lines, lane)
        else:
            self._store(target, subscripts, value, lines, lane)

    # -------------------------------------------------------------- writing elements

    def _store(
        self,
        target: Tensor,
        subscripts: tuple[Polynomial, ...],
        value: Value,
        lines: Lines,
        lane: LaneLoop | None,
    ) -> None:
        offset = _offset(target, subscripts)
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
            lines.add(self._stored(target, offset, target.encoded(text), lane))

    def _stored(self, target: Tensor, offset: Polynomial, text: str, lane: LaneLoop) -> str:
        """A store of all lanes."""
        stride = self._lane_stride(target, offset, lane)
        if stride is None:
            raise UnsupportedError(f"{target.name} is written at a place that is not affine")
        at = f"{target.name} + {offset}" if offset.terms else target.name
        unit = stride.number == 1
        if lane.partial is None:
            if unit:
                return f"tcf::store<{lane.width}>({at}, {text});"
            return f"tcf::store_strided<{lane.width}>({at}, {stride}, {text});"
        if unit:
            return f"tcf::store_first<{lane.width}>({at}, {text}, {lane.partial});"
        return (
            f"tcf::store_strided_first<{lane.width}>({at}, {stride}, {text}, {lane.partial});"
        )

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
        offset = _offset(target, subscripts)
        if lane is None:
            old = target.name if target.register else target.decoded(f"{target.name}[{offset}]")
            text = combined(operator, old, converted(value, dtype), dtype)
            self._store(target, subscripts, Value(text, dtype), lines, None)
        elif target.lanes or offset.mentions(lane.iterator):
            old = self.read(target, offset, lane).text
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
            copies.append(self.names.fresh("acc"))
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

    # -------------------------------------------------------------- reading elements

    def read(self, tensor: Tensor, offset: Polynomial, lane: LaneLoop | None) -> Value:
        """The element at an offset that is known to lie inside the tensor."""
        held = tensor.dtype
        if tensor.register:
            return Value(tensor.name, held, tensor.lanes and lane is not None)
        if lane is None or (not tensor.lanes and not offset.mentions(lane.iterator)):
            return Value(tensor.decoded(f"{tensor.name}[{offset}]"), held)
        stride = self._lane_stride(tensor, offset, lane)
        if stride is None:
            index = self.lane_index(offset, lane)
            return Value(tensor.decoded(self._gathered(tensor, index, lane, None)), held, True)
        at = f"{tensor.name} + {offset}" if offset.terms else tensor.name
        raw, width = tensor.raw, lane.width
        if stride.number == 1 and lane.partial is None:
            text = f"tcf::load<{raw}, {width}>({at})"
        elif stride.number == 1:
            text = f"tcf::load_first<{raw}, {width}>({at}, {lane.partial}, {raw}(0))"
        elif lane.partial is None:
            text = f"tcf::load_strided<{raw}, {width}>({at}, {stride})"
        else:
            text = self._gathered(tensor, self.lane_index(offset, lane), lane, None)
        return Value(tensor.decoded(text), held, True)

    def _lane_stride(
        self, tensor: Tensor, offset: Polynomial, lane: LaneLoop
    ) -> Polynomial | None:
        return Polynomial.constant(1) if tensor.lanes else offset.stride(lane.iterator)

    def lane_index(self, offset: Polynomial, lane: LaneLoop) -> str:
        """The value of ``offset`` in each lane, as an int64 vector."""
        stride = offset.stride(lane.iterator)
        iota = f"tcf::iota<int64_t, {lane.width}>()"
        if stride is None:
            return self._computed_index(offset, lane)
        base = f"tcf::splat<int64_t, {lane.width}>({offset})"
        if stride.number == 1:
            return f"({base} + {iota})"
        return f"({base} + {iota} * tcf::splat<int64_t, {lane.width}>({stride}))"

    def _computed_index(self, offset: Polynomial, lane: LaneLoop) -> str:
        """An index that is not linear in the lane, computed lane by lane."""
        return (
            f"tcf::lanewise<tcf::vec<int64_t, {lane.width}>>([&](int64_t {lane.iterator}) "
            f"{{ return int64_t({offset}); }}, "
            f"tcf::splat<int64_t, {lane.width}>({lane.iterator}) + "
            f"tcf::iota<int64_t, {lane.width}>())"
        )

    def _gathered(self, tensor: Tensor, index: str, lane: LaneLoop, wanted: str | None) -> str:
        """The raw elements at ``index`` where ``wanted`` holds (everywhere if ``None``)."""
        conditions = [] if wanted is None else [wanted]
        if lane.partial is not None:
            conditions.append(f"tcf::first_lanes<{lane.width}>({lane.partial})")
        if not conditions:
            return f"tcf::gather<{tensor.raw}, {lane.width}>({tensor.name}, {index})"
        where = conditions[0]
        for condition in conditions[1:]:
            where = f"tcf::and_({where}, {condition})"
        return f"tcf::gather_if<{tensor.raw}, {lane.width}>({tensor.name}, {index}, {where})"


def _offset(tensor: Tensor, subscripts: tuple[Polynomial, ...]) -> Polynomial:
    total = Polynomial()
    for subscript, stride in zip(subscripts, tensor.strides, strict=True):
        total = total + subscript * stride
    return total


class _Evaluation:
    """The value of one statement's right-hand side, operands before their users."""

    def __init__(
        self, writer: BodyWriter, place: _Place, lines: Lines, lane: LaneLoop | None
    ) -> None:
        self.writer = writer
        self.place = place
        self.lines = lines
        self.lane = lane
        self.values: dict[int, Value] = {}
        self.kinds: dict[int, Type] = {}
        self.lets: dict[str, Value] = {}
        self.let_types: dict[str, Type] = {}
        self.operators = Operators(lane.width if lane else "1")

    def run(self) -> Value:
        written = self.place.statement.comprehension
        for let in written.lets:
            value = self._evaluate(let.value)
            self.lets[let.name] = self._named(value, let.name, always=True)
            self.let_types[let.name] = self.kinds[id(let.value)]
        return self._evaluate(written.value)

    def _evaluate(self, root: Expr) -> Value:
        for node in post_order(root):
            if id(node) in self.values:
                continue
            operands = tuple(self.kinds[id(c)] for c in children(node))
            kind = node_type(node, operands, self.writer.types, self.let_types)
            self.kinds[id(node)] = kind
            value = self._node(node, kind)
            self.values[id(node)] = self._named(value, "v")
        return self.values[id(root)]

    def _node(self, node: Expr, kind: Type) -> Value:
        match node:
            case Const(value):
                return Value("", kind, literal=value)
            case Var(name) if name in self.lets:
                return self.lets[name]
            case Var(name):
                return self._index(self.place.iterators.get(name, Polynomial.factor(name)))
            case Access():
                return self._access(node)
            case _:
                operands = tuple(self.values[id(c)] for c in children(node))
                kinds = tuple(self.kinds[id(c)] for c in children(node))
                return self.operators.apply(node, kind, operands, kinds)

    def _index(self, value: Polynomial) -> Value:
        if self.lane is not None and value.mentions(self.lane.iterator):
            return Value(self.writer.lane_index(value, self.lane), DType.INT64, True)
        return Value(f"int64_t({value})", Weak.INT)

    def _named(self, value: Value, stem: str, *, always: bool = False) -> Value:
        """The value under a name once its text has grown; uniform before the lanes loop."""
        short = len(value.text) < 90 and value.text.count("tcf::") < 3
        if value.trivial or (short and not always):
            return value
        lane = self.lane
        if lane is not None and not value.varying and lane.nested == 0:
            if value.text not in lane.hoisted:
                lane.hoisted[value.text] = self.writer.names.fresh("u")
                lane.before.add(f"const auto {lane.hoisted[value.text]} = {value.text};")
            return Value(lane.hoisted[value.text], value.type, False)
        name = self.writer.names.fresh(f"{stem}_")
        self.lines.add(f"const auto {name} = {value.text};")
        return Value(name, value.type, value.varying)

    # -------------------------------------------------------------- accesses

    def _access(self, access: Access) -> Value:
        tensor = self.writer.tensors[access.tensor]
        environment = dict(self.place.iterators)
        affine = Polynomial()
        computed: list[tuple[Value, Polynomial, int]] = []
        loose: list[tuple[Value, Polynomial, int]] = []
        for position, (subscript, stride) in enumerate(
            zip(access.subscripts, tensor.strides, strict=True)
        ):
            inside = stays_inside(self.writer.scop, self.place.statement, access, position)
            known = None if inside is None else polynomial(subscript, environment)
            if known is None:
                computed.append((self.values[id(subscript)], stride, position))
                continue
            affine = affine + known * stride
            if not inside:
                loose.append((self._index(known), stride, position))
        if not computed and not loose:
            return self.writer.read(tensor, affine, self.lane)
        guarded = self.place.guard_of.get(id(access), ())
        if not loose and not guarded and not any(v.varying for v, _, _ in computed):
            return self._at_index(tensor, affine, computed)
        return self._checked(access, tensor, affine, computed, loose)

    def _at_index(
        self, tensor: Tensor, affine: Polynomial, computed: list[tuple[Value, Polynomial, int]]
    ) -> Value:
        """A read at an index that all lanes share: checked once, then like any other."""
        lines = self.lines_for(Value("", Weak.INT))
        for value, stride, position in computed:
            index = converted(value, DType.INT64)
            key = ("index", index, str(from_size(tensor.shape[position])))
            hoisted = self.lane.hoisted if lines is not self.lines and self.lane else {}
            if key not in hoisted:
                name = self.writer.names.fresh("at")
                hoisted[key] = name
                lines.add(f"const int64_t {name} = {index};")
                inside = self._scalar_inside(name, tensor, position)
                lines.add(f"if (!({inside})) {{ *fault = 1; return; }}")
            affine = affine + Polynomial.factor(hoisted[key]) * stride
        return self.writer.read(tensor, affine, self.lane)

    def _checked(
        self,
        access: Access,
        tensor: Tensor,
        affine: Polynomial,
        computed: list[tuple[Value, Polynomial, int]],
        loose: list[tuple[Value, Polynomial, int]],
    ) -> Value:
        """A read that may miss its tensor: guarded by a ternary, or checked at run time."""
        guard = self.place.guard_of.get(id(access), ())
        if loose and not guard:
            raise UnsupportedError(f"an access of {access.tensor} may leave the tensor")
        lane = self.lane
        varying = lane is not None and (
            affine.mentions(lane.iterator)
            or any(v.varying for v, _, _ in computed + loose)
            or any(self._condition(key).varying for key, _ in guard)
        )
        if varying:
            assert lane is not None
            return self._checked_lanes(tensor, affine, computed, loose, guard, lane)
        return self._checked_scalar(tensor, affine, computed, loose, guard)

    def _condition(self, key: int) -> Value:
        return self.values[key]

    def _checked_scalar(
        self,
        tensor: Tensor,
        affine: Polynomial,
        computed: list[tuple[Value, Polynomial, int]],
        loose: list[tuple[Value, Polynomial, int]],
        guard: Guard,
    ) -> Value:
        wanted = " && ".join(
            converted(self._condition(key), DType.BOOL)
            if expected
            else f"!{converted(self._condition(key), DType.BOOL)}"
            for key, expected in guard
        )
        terms, checks = [f"({affine})"], []
        for value, stride, position in computed:
            index = self.writer.names.fresh("at")
            self.lines_for(value).add(
                f"const int64_t {index} = {converted(value, DType.INT64)};"
            )
            terms.append(f"{index} * ({stride})")
            checks.append(self._scalar_inside(index, tensor, position))
        for value, _, position in loose:
            checks.append(self._scalar_inside(converted(value, DType.INT64), tensor, position))
        ok = self.writer.names.fresh("ok")
        lines = self.lines_for(Value("", Weak.INT))
        condition = " && ".join([f"({wanted})"] * bool(wanted) + checks)
        lines.add(f"const bool {ok} = {condition};")
        if computed:
            missed = f"({wanted}) && !{ok}" if wanted else f"!{ok}"
            lines.add(f"if ({missed}) *fault = 1;")
        text = f"tcf::load_if<{tensor.raw}>({tensor.name}, {' + '.join(terms)}, {ok})"
        name = self.writer.names.fresh("got")
        lines.add(f"const auto {name} = {tensor.decoded(text)};")
        return Value(name, tensor.dtype)

    def lines_for(self, value: Value) -> Lines:
        """Where a uniform value's computation goes: before the lanes loop if there is one."""
        if self.lane is not None and not value.varying and self.lane.nested == 0:
            return self.lane.before
        return self.lines

    def _scalar_inside(self, index: str, tensor: Tensor, position: int) -> str:
        size = from_size(tensor.shape[position])
        return f"uint64_t({index}) < uint64_t({size})"

    def _checked_lanes(
        self,
        tensor: Tensor,
        affine: Polynomial,
        computed: list[tuple[Value, Polynomial, int]],
        loose: list[tuple[Value, Polynomial, int]],
        guard: Guard,
        lane: LaneLoop,
    ) -> Value:
        width = lane.width
        wanted = f"tcf::first_lanes<{width}>({lane.partial or width})"
        for key, expected in guard:
            condition = spread(self._condition(key), DType.BOOL, width)
            wanted = (
                f"tcf::and_({wanted}, {condition if expected else f'tcf::not_({condition})'})"
            )
        index = self.writer.lane_index(affine, lane)
        for value, _, position in loose:
            size = from_size(tensor.shape[position])
            where = spread(value, DType.INT64, width)
            wanted = f"tcf::and_({wanted}, tcf::inside<{width}>({where}, {size}))"
        for value, stride, position in computed:
            name = self.writer.names.fresh("at")
            size = from_size(tensor.shape[position])
            self.lines.add(f"const auto {name} = {spread(value, DType.INT64, width)};")
            found = f"tcf::inside<{width}>({name}, {size})"
            kept = self.writer.names.fresh("ok")
            self.lines.add(
                f"const auto {kept} = tcf::checked<{width}>({found}, {wanted}, fault);"
            )
            wanted = kept
            index = f"({index} + {name} * tcf::splat<int64_t, {width}>({stride}))"
        if tensor.lanes:
            raise UnsupportedError(f"{tensor.name} is read out of order between lanes")
        text = f"tcf::gather_if<{tensor.raw}, {width}>({tensor.name}, {index}, {wanted})"
        got = self.writer.names.fresh("got")
        self.lines.add(f"const auto {got} = {tensor.decoded(text)};")
        return Value(got, tensor.dtype, True)


def widest_bytes(dtypes: list[DType]) -> int:
    """Bytes of the widest element, which decides how many lanes fit a register."""
    return max((d.compute.bytes for d in dtypes), default=4)
