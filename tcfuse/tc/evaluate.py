"""Run a definition on NumPy arrays in float64: the reference everything else is held against.

Statements run in order and each sees the whole result of the earlier ones.  A domain too large
for memory is cut into boxes, outermost index first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from types import EllipsisType

import numpy as np

from tcfuse.errors import TcError
from tcfuse.tc.ast import (
    Access,
    Comprehension,
    Const,
    Def,
    Expr,
    Select,
    Var,
    children,
    post_order,
)
from tcfuse.tc.binding import bind_sizes, number, size_value
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.functions import OPERATORS
from tcfuse.tc.sema import check
from tcfuse.tc.typing import Weak
from tcfuse.tc.unparse import unparse_expr
from tcfuse.tc.values import Box, Tensor, convert
from tcfuse.types import Array, DType

_POINTS = 1 << 20


def evaluate(
    definition: Def | CheckedDef,
    inputs: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
    *,
    exact_types: bool = False,
    round_casts: bool = True,
    flushes: Collection[str] = (),
) -> dict[str, Array]:
    """The value of every output.

    Elements that no statement writes are NaN, or the least integer.

    Args:
        definition: What to run.
        inputs: An array for each parameter, and for each in-out output what it starts from,
            which stays as it is; floats may come in any width and any strides.
        sizes: Values of size names that the shapes of the inputs do not give.
        exact_types: Return floats in their declared types instead of float64.
        round_casts: Whether an explicit cast to a short float rounds.
        flushes: Functions whose results below the least normal number of their type are 0.

    Raises:
        TcError: The definition is ill-formed, the inputs do not fit, or it reads out of bounds.
    """
    checked = check(definition, affine=False) if isinstance(definition, Def) else definition
    arrays = {name: np.asarray(array) for name, array in inputs.items()}
    known = bind_sizes(checked, arrays, sizes or {})
    run = _Run(checked, known, round_casts=round_casts, flushes=flushes)
    with np.errstate(all="ignore"):
        for condition in checked.preconditions:
            if not number(condition, known):
                message = f"the sizes do not satisfy {unparse_expr(condition)}"
                raise TcError(message, hint="pass arrays of other sizes", code="TC30")
        for name in checked.inout:
            run.tensors[name] = run.old(name, arrays[name])
        for name in checked.inputs:
            dtype = checked.tensors[name].dtype
            run.tensors[name] = _held(arrays[name], dtype)
        for statement in checked.statements:
            run.statement(statement)
        results = {name: run.tensors[name].elements for name in checked.outputs}
        for name, array in results.items():
            dtype = checked.tensors[name].dtype
            if exact_types or not dtype.is_float:
                results[name] = array.astype(dtype.numpy, copy=False)
    return results


def _held(array: Array, dtype: DType) -> Tensor:
    """A parameter; a large one, maybe a table of which few rows are read, as it is given."""
    origin = (0,) * array.ndim
    if array.size > _POINTS:
        return Tensor(array, origin, narrow=dtype)
    return Tensor(convert(array, dtype), origin)


class _Run:
    """The tensors after a number of statements."""

    def __init__(
        self,
        checked: CheckedDef,
        known: Mapping[str, int],
        *,
        round_casts: bool,
        flushes: Collection[str],
    ) -> None:
        self.checked, self.known = checked, known
        self.round_casts, self.flushes = round_casts, flushes
        self.tensors: dict[str, Tensor] = {}

    def statement(self, checked: CheckedStatement) -> None:
        """Execute one statement."""
        statement = checked.comprehension
        ranges = {
            r.name: (number(r.low, self.known), number(r.high, self.known))
            for r in checked.ranges
        }
        target = self.target(statement, [ranges[v] for v in statement.indices])
        dtype = self.checked.tensors[statement.tensor].dtype
        if statement.assign.resets:
            target.elements[_window(statement, ranges, target)] = _identity(
                statement.assign.operator, dtype
            )
        guarded, lifetimes = _guarded(statement), _lifetimes(statement)
        for box in _boxes(ranges):
            value = self.value(statement, box, guarded, lifetimes)
            update(statement, target.elements[_window(statement, box, target)], value, dtype)
        self.tensors[statement.tensor] = target

    def old(self, name: str, array: Array) -> Tensor:
        """What the caller's buffer holds for the in-out output ``name``."""
        dtype = self.checked.tensors[name].dtype
        return Tensor(convert(array, dtype), self.origin(name))

    def origin(self, name: str) -> tuple[int, ...]:
        """The subscripts of the first element of ``name``."""
        zeros = (Const(0),) * self.checked.tensors[name].rank
        return tuple(number(e, self.known) for e in self.checked.origins.get(name, zeros))

    def target(self, statement: Comprehension, written: Sequence[tuple[int, int]]) -> Tensor:
        """The tensor to write to, which is not the one the statement reads."""
        name = statement.tensor
        old = self.tensors.get(name)
        if old is None:
            declared = self.checked.tensors[name]
            shape = tuple(max(size_value(s, self.known), 0) for s in declared.shape)
            old = Tensor(np.full(shape, *_unwritten(declared.dtype)), self.origin(name))
        else:
            old = Tensor(old.elements.copy(), old.origin)
        shape = old.elements.shape
        for (low, high), origin, extent in zip(written, old.origin, shape, strict=True):
            if low < high and not origin <= low <= high <= origin + extent:
                raise TcError(
                    f"{low}:{high} is written in a dimension of {name!r} that is "
                    f"{origin}:{origin + extent}",
                    statement.left_span,
                    f"declare the shape of {name!r} in the returns",
                    code="TC45",
                )
        return old

    def value(
        self,
        statement: Comprehension,
        ranges: Mapping[str, tuple[int, int]],
        guarded: frozenset[int],
        lifetimes: Sequence[Sequence[str]],
    ) -> Array:
        """The right-hand side over a box, with an axis for each variable."""
        known = self.tensors, self.checked.tensors
        box = Box(ranges, *known, guarded, self.round_casts, self.flushes)
        box.names.update((name, (size, Weak.INT)) for name, size in self.known.items())
        for axis, (name, (low, high)) in enumerate(ranges.items()):
            shape = [1] * len(ranges)
            shape[axis] = -1
            box.names[name] = (np.arange(low, high).reshape(shape), Weak.INT)
        for let, finished in zip(statement.lets, lifetimes, strict=True):
            box.names[let.name] = box.evaluate(let.value)
            for name in finished:
                del box.names[name]
        value, _ = box.evaluate(statement.value)
        dtype = self.checked.tensors[statement.tensor].dtype
        extents = tuple(high - low for low, high in ranges.values())
        return np.broadcast_to(convert(value, dtype), extents)


def update(statement: Comprehension, target: Array, value: Array, dtype: DType) -> None:
    """Store ``value`` in ``target``, reduced over the axes ``target`` does not have."""
    operator = statement.assign.operator
    if not operator:
        target[...] = value
        return
    combine = OPERATORS[operator]
    assert isinstance(combine, np.ufunc)
    axes = tuple(range(target.ndim, value.ndim))
    initial = _identity(operator, dtype)
    partial = combine.reduce(value, axis=axes, dtype=value.dtype, initial=initial)
    combine(target, partial, out=target)


def _boxes(ranges: Mapping[str, tuple[int, int]]) -> Iterator[dict[str, tuple[int, int]]]:
    """Parts of the domain of at most ``_POINTS`` points, in lexicographic order."""
    extents = [high - low for low, high in ranges.values()]
    if any(extent <= 0 for extent in extents):
        return
    points = prod(extents)
    axis = next((name for name, (low, high) in ranges.items() if high - low > 1), None)
    if points <= _POINTS or axis is None:
        yield dict(ranges)
        return
    low, high = ranges[axis]
    step = max((high - low) * _POINTS // points, 1)
    for start in range(low, high, step):
        yield from _boxes({**ranges, axis: (start, min(start + step, high))})


def _window(
    statement: Comprehension, box: Mapping[str, tuple[int, int]], target: Tensor
) -> tuple[slice | EllipsisType, ...]:
    """Where a box lies in the elements of ``target``."""
    window = [
        slice(box[name][0] - origin, max(box[name]) - origin)
        for name, origin in zip(statement.indices, target.origin, strict=True)
    ]
    # The ellipsis makes the result a view, of a tensor without dimensions too.
    return (*window, ...)


def _guarded(statement: Comprehension) -> frozenset[int]:
    """Identities of the reads that stand in branches of ternaries only."""
    roots = [*(let.value for let in statement.lets), statement.value]
    everywhere = {id(n) for root in roots for n in post_order(root) if isinstance(n, Access)}
    seen: set[int] = set()
    stack: list[Expr] = list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            stack.extend(children(node)[:1] if isinstance(node, Select) else children(node))
    return frozenset(everywhere - seen)


def _lifetimes(statement: Comprehension) -> list[list[str]]:
    """For each let, the lets that nothing needs any more once it is evaluated."""
    last = {let.name: position for position, let in enumerate(statement.lets)}
    names = set(last)
    for position, let in enumerate(statement.lets):
        last.update(dict.fromkeys(_used(let.value) & names, position))
    for name in _used(statement.value) & names:
        del last[name]
    finished: list[list[str]] = [[] for _ in statement.lets]
    for name, position in last.items():
        finished[position].append(name)
    return finished


def _used(expr: Expr) -> set[str]:
    """The names in ``expr``."""
    return {node.name for node in post_order(expr) if isinstance(node, Var)}


def _identity(operator: str, dtype: DType) -> float | int | bool:
    """The neutral element of a reduction."""
    if operator in ("+", "*"):
        return int(operator == "*")
    if dtype is DType.BOOL:
        return operator == "min"
    if dtype.is_float:
        return np.inf if operator == "min" else -np.inf
    least, largest = dtype.compute.limits
    return int(largest if operator == "min" else least)


def _unwritten(dtype: DType) -> tuple[float | int | bool, np.dtype]:
    """What an element holds before it is written, and the type it is stored in."""
    if dtype.is_float:
        return np.nan, np.dtype(np.float64)
    return (False if dtype is DType.BOOL else dtype.limits[0]), dtype.compute.numpy
