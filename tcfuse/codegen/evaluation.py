"""The value of one statement's right-hand side as C++ text, operands before their users.

Accesses whose place is known and inside go straight to memory.  The others are guarded by a
ternary around them, or depend on data: those are looked at where the kernel runs, and one that
is needed and leaves its tensor reads nothing and sets the kernel's fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tcfuse.codegen.choices import choice
from tcfuse.codegen.divisors import is_root, is_sum
from tcfuse.codegen.elements import lane_index, lane_stride, read
from tcfuse.codegen.exponents import never_positive
from tcfuse.codegen.operators import Operators
from tcfuse.codegen.quantized import Quantized, roundings
from tcfuse.codegen.reciprocals import reciprocal
from tcfuse.codegen.scope import LaneLoop, Lines, Names
from tcfuse.codegen.storage import C_TYPES
from tcfuse.codegen.tensors import Tensor
from tcfuse.codegen.values import Value, converted, literal_text, plain, spread
from tcfuse.errors import UnsupportedError
from tcfuse.poly.bounds import guard_keeps_inside, inside_by_type, stays_inside
from tcfuse.poly.guards import Guard
from tcfuse.poly.polynomial import Polynomial, from_size, polynomial
from tcfuse.poly.scop import Scop, Statement, access_map
from tcfuse.tc.ast import Access, Binary, Const, Expr, Select, Var, children, post_order, walk
from tcfuse.tc.typing import Type, Weak, node_type
from tcfuse.types import DType

AHEAD = 8  # iterations between asking for a row and reading it
PREFETCHED_BYTES = 1 << 20  # of a table whose rows are asked for: smaller ones are near


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What all statements of a kernel share.

    Attributes:
        reciprocals: Whether lanes may multiply by the reciprocal of a sum they all divide by.
        reads_once: Whether an element that a statement reads several times gets a name, so that
            memory is asked for it once whatever the compiler sees.
    """

    scop: Scop
    tensors: Mapping[str, Tensor]
    names: Names
    reciprocals: bool
    reads_once: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One instance of a statement.

    Attributes:
        statement: Which.
        iterators: The value of each of its iterators.
        guard_of: For each node of its expressions, what must hold where it is evaluated.
    """

    statement: Statement
    iterators: Mapping[str, Polynomial]
    guard_of: Mapping[int, Guard]


@dataclass(frozen=True, slots=True, eq=False)
class _Subscript:
    """An index that is not known to lie inside its dimension.

    Attributes:
        stride: Elements between neighbours in the dimension.
        size: Of the dimension.
        faulty: Whether it may lie outside although the guard of the access holds.
    """

    value: Value
    stride: Polynomial
    size: Polynomial
    faulty: bool = True


class Evaluation:
    """The value of one statement's right-hand side, operands before their users."""

    def __init__(self, frame: Frame, place: Place, lines: Lines, lane: LaneLoop | None) -> None:
        self.frame = frame
        self.place = place
        self.lines = lines
        self.lane = lane
        self.values: dict[int, Value] = {}
        self.kinds: dict[int, Type] = {}
        self.reads: dict[str, Value] = {}
        self.lets: dict[str, Value] = {}
        self.let_types: dict[str, Type] = {}
        self.operators = Operators(lane.width if lane else "1")

    def run(self) -> Value:
        """The value, after the lines that compute it."""
        written = self.place.statement.comprehension
        for let in written.lets:
            value = self._evaluate(let.value)
            self.lets[let.name] = self._named(value, let.name, always=True)
            self.let_types[let.name] = self.kinds[id(let.value)]
        return self._evaluate(written.value)

    def _evaluate(self, root: Expr) -> Value:
        nodes = post_order(root)
        found, inside = roundings(nodes)
        for node in nodes:
            if id(node) in self.values:
                continue
            operands = tuple(self.kinds[id(c)] for c in children(node))
            kind = node_type(node, operands, self.frame.scop.checked.tensors, self.let_types)
            self.kinds[id(node)] = kind
            rounding = inside.get(id(node)) or found.get(id(node))
            if rounding is not None and plain(self.kinds[id(rounding.value)]) is DType.FLOAT32:
                if id(node) in inside:
                    continue
                value = self._quantized(rounding)
            else:
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
                if isinstance(node, Binary) and node.operator == "/":
                    quotient = self._quotient(kind, node.right, *operands)
                    if quotient is not None:
                        return quotient
                if isinstance(node, Select) and self.lane is not None:
                    chosen = choice(operands, self.lane, self.frame.names)
                    if chosen is not None:
                        return chosen
                if never_positive(self.frame.scop, node):
                    return self.operators.bounded_exp(kind, operands[0])
                return self.operators.apply(node, kind, operands, kinds)

    def _quantized(self, rounding: Quantized) -> Value:
        dtype, value = rounding.dtype, self.values[id(rounding.value)]
        zero = Value("", DType.INT32, literal=0)
        if rounding.zero is not None:
            zero = self.values[id(rounding.zero)]
        arguments = f"{converted(value, DType.FLOAT32)}, {converted(zero, DType.INT32)}"
        text = f"tcf::quantized<{C_TYPES[dtype]}>({arguments})"
        return Value(text, dtype, value.varying)

    def _quotient(self, kind: Type, divisor: Expr, left: Value, right: Value) -> Value | None:
        """A division of all lanes by a constant, or by one sum, by way of its reciprocal."""
        lane, dtype = self.lane, plain(kind)
        if lane is None or not self.frame.reciprocals or not dtype.is_float:
            return None
        if not left.varying or right.varying:
            return None
        if right.literal is not None:
            return self._quotient_by_constant(kind, left, right)
        if not lane.hoists:
            return None
        lets = {let.name: let.value for let in self.place.statement.comprehension.lets}
        if not is_sum(self.frame.scop, divisor, lets):
            return None
        key = ("divisor", right.text, dtype)
        by = f"tcf::divisor({converted(right, dtype)})"
        root = is_root(self.frame.scop, divisor)
        if root:
            by = f"{literal_text(1, dtype)} / {converted(right, dtype)}"
        if key not in lane.hoisted:
            lane.hoisted[key] = self.frame.names.fresh("by")
            lane.before.add(f"const auto {lane.hoisted[key]} = {by};")
        dividend, inverse = converted(left, dtype), lane.hoisted[key]
        if root:
            product = f"({dividend} * {spread(Value(inverse, kind), dtype, lane.width)})"
            return Value(product, kind, True)
        return Value(f"tcf::divided({dividend}, {inverse})", kind, True)

    def _quotient_by_constant(self, kind: Type, left: Value, right: Value) -> Value | None:
        dtype = plain(kind)
        constant = float(right.literal or 0)
        parts = reciprocal(float(np.float32(constant)) if dtype.bytes == 4 else constant, dtype)
        if parts is None:
            return None
        numbers = ", ".join(literal_text(value, dtype) for value in (constant, *parts))
        return Value(f"tcf::quotient_by({converted(left, dtype)}, {numbers})", kind, True)

    def _index(self, value: Polynomial) -> Value:
        if self.lane is not None and value.mentions(self.lane.iterator):
            return Value(lane_index(value, self.lane), DType.INT64, True)
        return Value(f"int64_t({value})", Weak.INT)

    def _named(self, value: Value, stem: str, *, always: bool = False) -> Value:
        """The value under a name once its text has grown; uniform before the lanes loop."""
        short = len(value.text) < 90 and value.text.count("tcf::") < 3
        if value.trivial or (short and not always):
            return value
        lane = self.lane
        if lane is not None and not value.varying and lane.hoists:
            if value.text not in lane.hoisted:
                lane.hoisted[value.text] = self.frame.names.fresh("u")
                lane.before.add(f"const auto {lane.hoisted[value.text]} = {value.text};")
            return Value(lane.hoisted[value.text], value.type, False)
        name = self.frame.names.fresh(f"{stem}_")
        self.lines.add(f"const auto {name} = {value.text};")
        return Value(name, value.type, value.varying, row=value.row)

    # -------------------------------------------------------------- accesses

    def _access(self, access: Access) -> Value:
        tensor = self.frame.tensors[access.tensor]
        environment = dict(self.place.iterators)
        affine = Polynomial()
        computed: list[_Subscript] = []
        loose: list[_Subscript] = []
        scop, statement = self.frame.scop, self.place.statement
        guard = self.place.guard_of.get(id(access), ())
        for position, (subscript, stride) in enumerate(
            zip(access.subscripts, tensor.strides, strict=True)
        ):
            inside = stays_inside(scop, statement, access, position)
            known = None if inside is None else polynomial(subscript, environment)
            size = from_size(tensor.shape[position])
            if known is None:
                faulty = not inside_by_type(scop, access, position)
                computed.append(_Subscript(self.values[id(subscript)], stride, size, faulty))
                continue
            affine = affine + known * stride
            if not inside:
                faulty = not guard_keeps_inside(scop, statement, access, position, guard)
                loose.append(_Subscript(self._index(known), stride, size, faulty))
        if not computed and not loose:
            return self._once(tensor, read(tensor, affine, self.lane))
        if not loose and not guard and not any(s.value.varying for s in computed):
            self._prefetch(access, tensor, affine)
            return self._at_index(tensor, affine, computed)
        if not loose and self.lane and not any(s.faulty for s in computed):
            return self._looked_up(tensor, affine, computed, self.lane)
        return self._checked(access, tensor, affine, computed, loose)

    def _once(self, tensor: Tensor, value: Value) -> Value:
        """An element, under the name it has if the statement reads it before."""
        in_place = self.lane is None or value.varying
        if not self.frame.reads_once or tensor.register or not in_place:
            return value
        if value.text not in self.reads:
            name = self.frame.names.fresh("x")
            self.lines.add(f"const auto {name} = {value.text};")
            self.reads[value.text] = Value(name, value.type, value.varying)
        return self.reads[value.text]

    def _prefetch(self, access: Access, tensor: Tensor, affine: Polynomial) -> None:
        """Ask for the row that a later iteration of the loop around reads at a computed index.

        No machine guesses where that is.  The index is computed as it will be then, which is no
        fault whatever it is: nothing is read there.
        """
        lane = self.lane
        if lane is None or not lane.inside or lane.guarded or lane.partial is not None:
            return
        elements, unit = tensor.size.number, lane_stride(tensor, affine, lane)
        small = elements is not None and elements * tensor.dtype.bytes < PREFETCHED_BYTES
        if small or unit is None or unit.number != 1 or tensor.register or tensor.lanes:
            return
        iterator, end = lane.inside[-1]
        used = {n.name for s in access.subscripts for n in walk(s) if isinstance(n, Var)}
        moving = (self.place.iterators[n] for n in used if n in self.place.iterators)
        if used & set(self.lets) or not any(p.mentions(iterator) for p in moving):
            return
        later, lines = self.frame.names.fresh("later"), self.lines
        with lines.braces():
            ahead = f"tcf_min({iterator} + {AHEAD}, {end} - 1)"
            lines.add(f"const int64_t {later} = {ahead};")
            with lines.braces():
                lines.add(f"const int64_t {iterator} = {later};")
                there = Evaluation(self.frame, self.place, lines, None)
                terms = [f"({affine})"]
                for subscript, stride in zip(access.subscripts, tensor.strides, strict=True):
                    if polynomial(subscript, dict(self.place.iterators)) is None:
                        index = converted(there._evaluate(subscript), DType.INT64)
                        terms.append(f"{index} * ({stride})")
                at = " + ".join(terms)
                lines.add(f"tcf::prefetch<{tensor.raw}, {lane.width}>({tensor.name}, {at});")

    def _at_index(
        self, tensor: Tensor, affine: Polynomial, computed: Sequence[_Subscript]
    ) -> Value:
        """A read at an index that all lanes share: checked once, then like any other."""
        lines = self._lines_for(Value("", Weak.INT))
        for subscript in computed:
            index = converted(subscript.value, DType.INT64)
            key = ("index", index, str(subscript.size))
            hoisted = self.lane.hoisted if lines is not self.lines and self.lane else {}
            if key not in hoisted:
                name = self.frame.names.fresh("at")
                hoisted[key] = name
                lines.add(f"const int64_t {name} = {index};")
                inside = _scalar_inside(name, subscript)
                lines.add(f"if (!({inside})) {{ *fault = 1; return; }}")
            affine = affine + Polynomial.factor(hoisted[key]) * subscript.stride
        return read(tensor, affine, self.lane, computed=lines is self.lines)

    def _looked_up(
        self,
        tensor: Tensor,
        affine: Polynomial,
        computed: Sequence[_Subscript],
        lane: LaneLoop,
    ) -> Value:
        """A read by lanes at indices whose types keep them inside."""
        width = lane.width
        if not affine.terms and tensor.shape == (256,):
            (only,) = computed
            at = spread(only.value, DType.UINT8, width)
            text = f"tcf::lookup<{tensor.raw}, {width}>({tensor.name}, {at})"
            return Value(tensor.decoded(text), tensor.dtype, True)
        index = lane_index(affine, lane)
        for subscript in computed:
            at = spread(subscript.value, DType.INT64, width)
            index = f"({index} + {at} * tcf::splat<int64_t, {width}>({subscript.stride}))"
        text = f"tcf::gather<{tensor.raw}, {width}>({tensor.name}, {index})"
        return Value(tensor.decoded(text), tensor.dtype, True)

    def _checked(
        self,
        access: Access,
        tensor: Tensor,
        affine: Polynomial,
        computed: Sequence[_Subscript],
        loose: Sequence[_Subscript],
    ) -> Value:
        """A read that may miss its tensor: guarded by a ternary, or checked at run time."""
        guard = self.place.guard_of.get(id(access), ())
        if loose and not guard:
            raise UnsupportedError(f"an access of {access.tensor} may leave the tensor")
        held = self._register(access, tensor, affine) if tensor.register else None
        if held and not any(s.faulty for s in (*computed, *loose)):
            return held
        lane = self.lane
        varying = lane is not None and (
            affine.mentions(lane.iterator)
            or any(s.value.varying for s in (*computed, *loose))
            or any(self.values[key].varying for key, _ in guard)
        )
        if varying:
            assert lane is not None
            return self._checked_lanes(tensor, affine, computed, loose, guard, lane, held)
        return self._checked_scalar(tensor, affine, computed, loose, guard, held)

    def _register(self, access: Access, tensor: Tensor, affine: Polynomial) -> Value:
        """The only element there is, wherever one is needed."""
        if access_map(self.frame.scop, self.place.statement, access).is_empty():
            # None ever is, so the register may belong to other loops.
            return Value("", tensor.dtype, literal=0)
        return read(tensor, affine, self.lane)

    def _checked_scalar(
        self,
        tensor: Tensor,
        affine: Polynomial,
        computed: Sequence[_Subscript],
        loose: Sequence[_Subscript],
        guard: Guard,
        held: Value | None,
    ) -> Value:
        wanted = " && ".join(
            converted(self.values[key], DType.BOOL)
            if expected
            else f"!{converted(self.values[key], DType.BOOL)}"
            for key, expected in guard
        )
        terms, checks = [f"({affine})"], []
        for subscript in computed:
            index = self.frame.names.fresh("at")
            value = converted(subscript.value, DType.INT64)
            self._lines_for(subscript.value).add(f"const int64_t {index} = {value};")
            terms.append(f"{index} * ({subscript.stride})")
            checks.append(_scalar_inside(index, subscript))
        for subscript in loose:
            checks.append(_scalar_inside(converted(subscript.value, DType.INT64), subscript))
        ok = self.frame.names.fresh("ok")
        lines = self._lines_for(Value("", Weak.INT))
        condition = " && ".join([f"({wanted})"] * bool(wanted) + checks)
        lines.add(f"const bool {ok} = {condition};")
        if computed or any(subscript.faulty for subscript in loose):
            missed = f"({wanted}) && !{ok}" if wanted else f"!{ok}"
            lines.add(f"if ({missed}) *fault = 1;")
        if held:
            return held
        text = f"tcf::load_if<{tensor.raw}>({tensor.name}, {' + '.join(terms)}, {ok})"
        name = self.frame.names.fresh("got")
        lines.add(f"const auto {name} = {tensor.decoded(text)};")
        return Value(name, tensor.dtype)

    def _lines_for(self, value: Value) -> Lines:
        """Where a uniform value's computation goes: before the lanes loop if there is one."""
        if self.lane is not None and not value.varying and self.lane.hoists:
            return self.lane.before
        return self.lines

    def _checked_lanes(
        self,
        tensor: Tensor,
        affine: Polynomial,
        computed: Sequence[_Subscript],
        loose: Sequence[_Subscript],
        guard: Guard,
        lane: LaneLoop,
        held: Value | None,
    ) -> Value:
        width = lane.width
        wanted = f"tcf::first_lanes<{width}>({lane.partial or width})"
        for key, expected in guard:
            condition = spread(self.values[key], DType.BOOL, width)
            wanted = (
                f"tcf::and_({wanted}, {condition if expected else f'tcf::not_({condition})'})"
            )
        index = lane_index(affine, lane)
        for subscript in sorted(loose, key=lambda s: s.faulty):
            where = spread(subscript.value, DType.INT64, width)
            found = f"tcf::inside<{width}>({where}, {subscript.size})"
            if subscript.faulty:
                wanted = self._kept(found, wanted, width)
            else:
                wanted = f"tcf::and_({wanted}, {found})"
        for subscript in computed:
            name = self.frame.names.fresh("at")
            value = spread(subscript.value, DType.INT64, width)
            self.lines.add(f"const auto {name} = {value};")
            found = f"tcf::inside<{width}>({name}, {subscript.size})"
            wanted = self._kept(found, wanted, width)
            index = f"({index} + {name} * tcf::splat<int64_t, {width}>({subscript.stride}))"
        if tensor.lanes:  # of the rows that lie lane by lane, each lane reads its own
            index = f"({index} + tcf::iota<int64_t, {width}>())"
        if held:
            return held
        text = f"tcf::gather_if<{tensor.raw}, {width}>({tensor.name}, {index}, {wanted})"
        stride = lane_stride(tensor, affine, lane)
        if not computed and stride is not None and stride.number == 1:
            at = f"{tensor.name} + {affine}"
            text = f"tcf::load_where<{tensor.raw}, {width}>({at}, {wanted})"
        got = self.frame.names.fresh("got")
        self.lines.add(f"const auto {got} = {tensor.decoded(text)};")
        return Value(got, tensor.dtype, True)

    def _kept(self, found: str, wanted: str, width: str) -> str:
        """The wanted lanes whose index was found inside; a fault when that is not all."""
        name = self.frame.names.fresh("ok")
        self.lines.add(f"const auto {name} = tcf::checked<{width}>({found}, {wanted}, fault);")
        return name


def _scalar_inside(index: str, subscript: _Subscript) -> str:
    """Whether an index lies inside its dimension, in one comparison."""
    return f"uint64_t({index}) < uint64_t({subscript.size})"
