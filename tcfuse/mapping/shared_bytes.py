"""Tensors whose elements share bytes, as kernels see them: tensors of whole bytes.

ONNX packs types of 4 and 2 bits, the first element into the lowest bits, in row-major order
without gaps.  Inside a kernel an element has a byte of its own.  So what is read is taken out
of the byte that holds it, and what is returned is made in a temporary, from which a last
statement makes whole bytes: no two instances write one byte, and all that has to be shown of
packing is what is shown of every kernel.

Rewrite:
    int4(N, 6) X -> (int4(N, 6) Y)  Y(i, j) = f(X(i, j))
    ->  uint8(N, 3) X -> (uint8(N, 3) Y)
        Y_whole(i, j) = f(int4(bitand(shr(int32(X(i, j / 2)), j % 2 * 4), 15)))
        Y(i, b) = uint8(bitor(bitand(Y_whole(i, 2 * b), 15),
                              shl(bitand(Y_whole(i, 2 * b + 1), 15), 4)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

from tcfuse.errors import UnsupportedError
from tcfuse.interface import Interface
from tcfuse.tc.ast import (
    Access,
    AssignKind,
    Binary,
    Call,
    Cast,
    Comprehension,
    Const,
    Expr,
    Range,
    Select,
    Var,
    walk,
)
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.parser import parse_expr
from tcfuse.tc.rebuild import rebuild_statement
from tcfuse.tc.rename import free_name, index_name
from tcfuse.types import DType, Size, TensorType


@dataclass(frozen=True, slots=True)
class Whole:
    """A definition without tensors of packed elements at its boundary.

    Attributes:
        interface: As given, with the sizes that count bytes.
        facts: As given, with what is known of those sizes.
    """

    checked: CheckedDef
    interface: Interface
    facts: tuple[str, ...]


def with_whole_bytes(checked: CheckedDef, interface: Interface, facts: Sequence[str]) -> Whole:
    """``checked`` with inputs and outputs of bytes for those of packed elements.

    Raises:
        UnsupportedError: Where an element is cannot be told from its place by isl.
    """
    boundary = (*checked.inputs, *checked.outputs)
    packed = [name for name in boundary if checked.tensors[name].dtype.bits < 8]
    if not packed:
        return Whole(checked, interface, tuple(facts))
    rewriting = _Rewriting(checked)
    for name in packed:
        rewriting.add(name)
    derived, known = tuple(rewriting.derived), tuple(rewriting.facts)
    names = tuple(name for name, _ in derived)
    interface = replace(
        interface,
        sizes=interface.sizes + names,
        derived=interface.derived + derived,
        facts=interface.facts + known,
    )
    return Whole(rewriting.result(), interface, (*facts, *known))


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the elements of a packed tensor are.

    Attributes:
        kind: The type of the tensor.
        kept: How many of its first dimensions are dimensions of the bytes too.
        count: Elements in the others together; these are packed one after the other.
        bytes: Bytes in the others together.
    """

    kind: TensorType
    kept: int
    count: Size
    bytes: Size

    @property
    def each(self) -> int:
        """Elements in a byte."""
        return 8 // self.kind.dtype.bits

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements between neighbours in each dimension that is not kept."""
        inner = [int(size) for size in self.kind.shape[self.kept + 1 :]]
        count = self.kind.rank - self.kept
        return tuple(prod(inner[k:]) for k in range(count))

    def read(self, node: Access) -> Expr:
        """The element that ``node`` reads, from its byte."""
        packed = node.subscripts[self.kept :]
        if len(packed) > 1 and any(isinstance(n, Access) for s in packed for n in walk(s)):
            # Together they may be inside although one alone is not.
            message = f"{node.tensor}, several elements a byte, is read where data says"
            raise UnsupportedError(message)
        terms = map(_times, packed, self.strides)
        place = reduce(lambda a, b: Binary("+", a, b), terms) if packed else Const(0)
        holder = Access(
            node.tensor,
            (*node.subscripts[: self.kept], Binary("/", place, Const(self.each))),
        )
        dtype = self.kind.dtype
        shift = Binary("*", Binary("%", place, Const(self.each)), Const(dtype.bits))
        code = _masked(Call("shr", (Cast(DType.INT32, holder), shift)), dtype)
        if dtype.is_float:
            return Call(f"as_{dtype.tc}", (Cast(DType.UINT4, code),))
        return Cast(dtype, code)

    def written(self, name: str, whole: str) -> CheckedStatement:
        """The statement that makes the bytes of ``name`` from the elements of ``whole``."""
        sizes = (*self.kind.shape[: self.kept], self.bytes)
        names = [index_name(k) for k in range(len(sizes))]
        ranges = tuple(map(_range, names, sizes))
        parts = [self._part(whole, names, part) for part in range(self.each)]
        value = Cast(DType.UINT8, reduce(lambda a, b: Call("bitor", (a, b)), parts))
        made = Comprehension(name, tuple(names), AssignKind.SET, value, ranges)
        return CheckedStatement(made, ranges, ())

    def _part(self, whole: str, names: Sequence[str], part: int) -> Expr:
        """The bits of element ``part`` of a byte; none where there is no such element."""
        *kept, byte = map(Var, names)
        place: Expr = Binary("*", byte, Const(self.each))
        place = Binary("+", place, Const(part)) if part else place
        subscripts: list[Expr] = list(kept)
        sizes = self.kind.shape[self.kept :]
        for k, stride in enumerate(self.strides):
            subscript = place if stride == 1 else Binary("/", place, Const(stride))
            subscripts.append(subscript if k == 0 else Binary("%", subscript, _expr(sizes[k])))
        element: Expr = Access(whole, tuple(subscripts))
        dtype = self.kind.dtype
        if dtype.is_float:
            element = Call("as_uint4", (element,))
        code = _masked(Cast(DType.INT32, element), dtype)
        if part:
            code = Call("shl", (code, Const(part * dtype.bits)))
        if part and not (isinstance(self.count, int) and self.count % self.each == 0):
            exists = Binary("<", place, _expr(self.count))
            code = Select(exists, code, Cast(DType.INT32, Const(0)))
        return code


class _Rewriting:
    """The definition so far, and the sizes that count bytes."""

    def __init__(self, checked: CheckedDef) -> None:
        self.checked = checked
        self.derived: list[tuple[str, str]] = []
        self.facts: list[str] = []
        self._layouts: dict[str, _Layout] = {}
        self._wholes: dict[str, str] = {}

    def add(self, name: str) -> None:
        """Let the tensor ``name`` be one of bytes."""
        self._layouts[name] = self._layout(name, self.checked.tensors[name])
        if name in self.checked.outputs:
            taken = {*self.checked.tensors, *self._wholes.values()}
            self._wholes[name] = free_name(f"{name}_whole", taken)

    def result(self) -> CheckedDef:
        """The definition."""
        checked = self.checked
        tensors = dict(checked.tensors)
        for name, layout in self._layouts.items():
            if name in self._wholes:
                tensors[self._wholes[name]] = layout.kind
            shape = (*layout.kind.shape[: layout.kept], layout.bytes)
            tensors[name] = TensorType(DType.UINT8, shape)
        statements = [self._rewritten(item) for item in checked.statements]
        statements += [self._layouts[n].written(n, w) for n, w in self._wholes.items()]
        sizes = checked.sizes + tuple(name for name, _ in self.derived)
        return replace(checked, statements=tuple(statements), tensors=tensors, sizes=sizes)

    def _rewritten(self, item: CheckedStatement) -> CheckedStatement:
        def rule(node: Expr) -> Expr:
            if not isinstance(node, Access) or node.tensor not in self._layouts:
                return node
            if node.tensor in self._wholes:
                return replace(node, tensor=self._wholes[node.tensor])
            return self._layouts[node.tensor].read(node)

        written = rebuild_statement(item.comprehension, rule)
        target = self._wholes.get(written.tensor, written.tensor)
        return replace(item, comprehension=replace(written, tensor=target))

    def _layout(self, name: str, kind: TensorType) -> _Layout:
        """The layout with the most dimensions kept."""
        each = 8 // kind.dtype.bits
        for kept in range(kind.rank - 1, -1, -1):
            inner = kind.shape[kept:]
            if not all(isinstance(size, int) for size in inner):
                break
            count = prod(int(size) for size in inner)
            if count % each == 0:
                return _Layout(kind, kept, count, count // each)
        if all(isinstance(size, int) for size in kind.shape):
            count = prod(int(size) for size in kind.shape)
            return _Layout(kind, 0, count, -(-count // each))
        first, *rest = kind.shape
        if not all(isinstance(size, int) for size in rest):
            raise UnsupportedError(f"{name} has several elements a byte and rows of any length")
        factor = prod(int(size) for size in rest)
        elements = f"{factor} * ({first})" if factor != 1 else f"({first})"
        taken = {*self.checked.sizes, *self.checked.tensors, *(n for n, _ in self.derived)}
        size = free_name(f"{name}_bytes", taken)
        self.derived.append((size, f"({elements} + {each - 1}) / {each}"))
        known = f"{elements} <= {each} * {size}", f"{each} * {size} <= {elements} + {each - 1}"
        self.facts.extend(known)
        return _Layout(kind, 0, elements, size)


def _masked(value: Expr, dtype: DType) -> Expr:
    """The bits of an ``int32`` that an element of ``dtype`` has."""
    return Call("bitand", (value, Const((1 << dtype.bits) - 1)))


def _times(value: Expr, factor: int) -> Expr:
    return value if factor == 1 else Binary("*", value, Const(factor))


def _expr(size: Size) -> Expr:
    return Const(size) if isinstance(size, int) else parse_expr(size)


def _range(index: str, size: Size) -> Range:
    return Range(index, Const(0), _expr(size))
