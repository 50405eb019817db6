"""The value of an expression over a whole box of index values at once.

Every variable is an array along its own axis and everything else broadcasts, so a subexpression
is as large as the variables it depends on.  Floats are float64 whatever their declared type;
integers and booleans have theirs, those below a byte int32.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

import numpy as np

from tcfuse.errors import TcError
from tcfuse.tc.ast import (
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Select,
    Unary,
    Var,
    children,
    post_order,
)
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.functions import EXACT, FLOAT, OPERATORS
from tcfuse.tc.typing import Type, Weak, is_bool, is_float, match, node_type, promote, resolve
from tcfuse.types import Array, DType, TensorType

Value: TypeAlias = Array | int | float | bool


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor's elements and the subscripts of its first one.

    Attributes:
        narrow: Their type where they are kept in it; else they are as they are computed with.
    """

    elements: Array
    origin: tuple[int, ...]
    narrow: DType | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Values of all variables, and what is known while an expression is evaluated over them.

    Attributes:
        ranges: ``[low, high)`` of each variable; its position is its axis.
        guarded: Identities of reads that a ternary may switch off.
        flushes: Functions whose results below the least normal number are 0.
        names: Sizes, variables and the lets so far, each with its type.
        chosen: Where each ternary took its first branch, by the identity of its node.
        missed: Guarded reads that leave their tensors, and where.
    """

    ranges: Mapping[str, tuple[int, int]]
    tensors: Mapping[str, Tensor]
    types: Mapping[str, TensorType]
    guarded: Collection[int]
    round_casts: bool
    flushes: Collection[str] = ()
    names: dict[str, tuple[Value, Type]] = field(default_factory=dict)
    chosen: dict[int, Array] = field(default_factory=dict)
    missed: list[tuple[Access, Array, TcError]] = field(default_factory=list)

    def evaluate(self, expr: Expr) -> tuple[Value, Type]:
        """The value and type of ``expr``; needs no recursion.

        Raises:
            TcError: A read leaves its tensor where no ternary switches it off.
        """
        order = post_order(expr)
        uses = Counter(id(operand) for node in order for operand in children(node))
        found: dict[int, tuple[Value, Type]] = {}
        for node in order:
            operands = children(node)
            known = [found[id(operand)] for operand in operands]
            for operand in operands:
                # An array is let go as soon as nobody needs it any more.
                uses[id(operand)] -= 1
                if not uses[id(operand)]:
                    found.pop(id(operand), None)
            found[id(node)] = self.node(node, known)
        if self.missed:
            needed = _needed(order, self.chosen)
            for access, outside, error in self.missed:
                if np.any(outside & needed[id(access)]):
                    raise error
            self.missed.clear()
        return found[id(expr)]

    def node(self, node: Expr, operands: list[tuple[Value, Type]]) -> tuple[Value, Type]:
        """The value and type of ``node`` from those of its operands."""
        if isinstance(node, Var):
            return self.names[node.name]
        values = [value for value, _ in operands]
        kinds = tuple(kind for _, kind in operands)
        kind = node_type(node, kinds, self.types, {})
        match node:
            case Const(value):
                return value, kind
            case Access():
                return self.read(node, values), kind
            case Unary("-"):
                return np.negative(convert(values[0], kind)), kind
            case Unary():
                return np.logical_not(convert(values[0], kind)), kind
            case Binary(operator):
                return _binary(operator, values, kinds), kind
            case Call(function):
                result = _call(function, values, kinds)
                return _flushed(result, kind) if function in self.flushes else result, kind
            case Cast(dtype):
                return cast(values[0], kinds[0], dtype, rounds=self.round_casts), kind
            case Select():
                then, otherwise = (convert(v, kind) for v in values[1:])
                chosen = np.asarray(values[0], np.bool_)
                if self.guarded:
                    self.chosen[id(node)] = chosen
                return np.where(chosen, then, otherwise), kind

    def read(self, read: Access, subscripts: list[Value]) -> Array:
        """Elements of a tensor; what lies outside is an error unless the read is guarded."""
        tensor = self.tensors[read.tensor]
        positions: list[Array] = []
        for axis, (subscript, extent) in enumerate(
            zip(subscripts, tensor.elements.shape, strict=True)
        ):
            position = np.asarray(subscript).astype(np.int64, copy=False) - tensor.origin[axis]
            outside = (position < 0) | (position >= extent)
            if np.any(outside):
                wrong = position[outside].flat[0] + tensor.origin[axis]
                error = TcError(
                    f"subscript {axis} of {read.tensor!r} is {wrong}, outside its "
                    f"{extent} elements from {tensor.origin[axis]} on",
                    read.span,
                    "guard the read with a ternary, or narrow the range with 'where'",
                    code="TC47",
                )
                if id(read) not in self.guarded:
                    raise error
                self.missed.append((read, outside, error))
                position = np.clip(position, 0, max(extent - 1, 0))
            positions.append(position)
        if not tensor.elements.size:
            # Nothing can be read, so every read is switched off.
            shape = np.broadcast_shapes(*(p.shape for p in positions))
            return np.zeros(shape, tensor.elements.dtype)
        view = self.slices(read, tensor)
        found = tensor.elements[tuple(positions)] if view is None else view
        return found if tensor.narrow is None else convert(found, tensor.narrow)

    def slices(self, read: Access, tensor: Tensor) -> Array | None:
        """The read as a view without copying, when its subscripts are different variables."""
        names = [s.name for s in read.subscripts if isinstance(s, Var)]
        names = [name for name in names if name in self.ranges]
        if not names or len(set(names)) < tensor.elements.ndim or id(read) in self.guarded:
            return None
        window = tuple(
            slice(self.ranges[name][0] - origin, self.ranges[name][1] - origin)
            for name, origin in zip(names, tensor.origin, strict=True)
        )
        axes = [list(self.ranges).index(name) for name in names]
        view = tensor.elements[window].transpose(np.argsort(axes))
        missing = [axis for axis in range(len(self.ranges)) if axis not in axes]
        return np.expand_dims(view, tuple(missing))


def _needed(order: Sequence[Expr], chosen: Mapping[int, Array]) -> dict[int, Array]:
    """Where the value of each node is used, the last of ``order`` everywhere."""
    found = {id(order[-1]): np.asarray(True)}
    for node in reversed(order):
        here = found[id(node)]
        for position, operand in enumerate(children(node)):
            where = here
            if isinstance(node, Select) and position:
                where = here & (chosen[id(node)] ^ (position == 2))
            if id(operand) in found:
                where = where | found[id(operand)]
            found[id(operand)] = where
    return found


def convert(value: Value, kind: Type) -> Array:
    """``value`` as an array of the type that holds ``kind``; integers wrap."""
    if is_float(kind):
        return np.asarray(value, dtype=np.float64)
    dtype = resolve(kind).compute.numpy
    if isinstance(value, int) and not isinstance(value, bool):
        unsigned = np.dtype(f"u{dtype.itemsize}")
        return np.array(value % (1 << 8 * dtype.itemsize), unsigned).view(dtype)
    return np.asarray(value).astype(dtype, copy=False)


def cast(value: Value, kind: Type, dtype: DType, *, rounds: bool = True) -> Array:
    """``value`` converted as C does it.

    Args:
        value: A value of type ``kind``.
        kind: Its type.
        dtype: The type to convert to.
        rounds: Whether a conversion to a float of two or four bytes rounds.
    """
    if dtype is DType.BOOL:
        return np.asarray(np.not_equal(value, 0))
    if dtype.is_float:
        exact = np.asarray(value, dtype=np.float64)
        if dtype.bytes == 1:
            # Not a matter of precision: a code stands for a number.
            return dtype.nearest(exact.astype(np.float32)).astype(np.float64)
        rounded: Array = exact.astype(dtype.numpy).astype(np.float64)
        return rounded if rounds else exact
    if dtype.bits < 8:
        return _wrapped(cast(value, kind, DType.INT64), dtype)
    if not is_float(kind):
        return convert(int(value) if isinstance(value, bool) else value, dtype)
    whole = np.trunc(np.asarray(value, dtype=np.float64))
    signed = whole.astype(np.int64)
    if dtype is DType.UINT64:
        return np.where(whole < 0, signed.astype(np.uint64), whole.astype(np.uint64))
    return signed.astype(dtype.numpy, copy=False)


def _wrapped(value: Array, dtype: DType) -> Array:
    """The low bits of 64-bit integers as a type of less than a byte."""
    span, least = 1 << dtype.bits, dtype.limits[0]
    return ((value - least) % span + least).astype(dtype.compute.numpy)


def _bits(value: Value, kind: Type, dtype: DType) -> Array:
    """The bits of ``value``, whose type has as many, read as ``dtype``."""
    codes = np.array(convert(value, kind), resolve(kind).numpy)
    if dtype.bits < 8:
        codes = codes.view(np.uint8) & ((1 << dtype.bits) - 1)
    if dtype.bits < 8 and not dtype.is_float:
        return cast(codes, DType.UINT8, dtype)
    return convert(codes.view(dtype.numpy), dtype)


def _binary(operator: str, values: list[Value], kinds: tuple[Type, ...]) -> Array:
    """The value of a binary operation."""
    kind = match(*kinds) if is_bool(kinds[0]) else promote(*kinds)
    left, right = (convert(value, kind) for value in values)
    if operator == "/":
        divide = np.divide if is_float(kind) else np.floor_divide
        return np.asarray(divide(left, right))
    return np.asarray(OPERATORS[operator](left, right))


def _call(function: str, values: list[Value], kinds: tuple[Type, ...]) -> Array:
    """The value of a call."""
    if (target := BUILTINS[function].bits) is not None:
        return _bits(values[0], kinds[0], target)
    kind = reduce(promote, kinds, kinds[0])
    if BUILTINS[function].keeps_type:
        return np.asarray(EXACT[function](*(convert(value, kind) for value in values)))
    arguments = [convert(value, Weak.FLOAT) for value in values]
    if function == "nextafter" and kind is not DType.FLOAT64:
        # The one function whose result depends on the width of its type.
        arguments = [argument.astype(np.float32) for argument in arguments]
    return np.asarray(FLOAT[function](*arguments)).astype(
        np.bool_ if BUILTINS[function].result is DType.BOOL else np.float64, copy=False
    )


def _flushed(result: Array, kind: Type) -> Array:
    """``result`` with 0 for what is below the least normal number of its type."""
    dtype = np.float64 if kind is DType.FLOAT64 else np.float32
    return np.where(np.abs(result) < np.finfo(dtype).tiny, 0.0, result)
