"""Each definition of a tensor as a tensor of its own.

Loops, storage and the order of statements are found for programs that write an element once, or
by one chain of updates.  People also write ``A(i) = ...``, ``B(i) = f(A(i))``,
``A(i) = A(i) + 1``: here the second ``A`` is another tensor, ``A_1`` and ``A``, and nothing has
to wait for the readers of the first.  The last one of a returned tensor has its name.

What is left of a tensor that is written in parts stays one tensor.  The right-hand side of
``O(i) = O(i + 1)`` means ``O`` as it was before the statement, and loops would overwrite what
later iterations still read, so that the old elements are copied first.  A reset of a part
becomes an assignment of the neutral element and updates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tcfuse.tc.ast import (
    Access,
    AssignKind,
    Binary,
    Cast,
    Comprehension,
    Const,
    Expr,
    Range,
    Unary,
    Var,
    children,
    post_order,
)
from tcfuse.tc.linear import Linear
from tcfuse.tc.rebuild import rebuild_statement
from tcfuse.tc.typing import Type, resolve, type_of
from tcfuse.types import DType, TensorType

Shape = tuple[Linear, ...]


@dataclass(slots=True)
class _Current:
    """The version of a tensor that is read now.

    Attributes:
        number: Counted from zero.
        whole: Whether its first statement writes every element.
    """

    number: int
    whole: bool


class Versions:
    """Rewrites the statements of a definition, one after the other."""

    def __init__(
        self,
        types: Mapping[str, TensorType],
        shapes: Mapping[str, Shape],
        inputs: Mapping[str, str],
        name: Callable[[str], str],
    ) -> None:
        """Nothing yet.

        Args:
            types: Of every tensor.
            shapes: The same over affine sizes, of those that were written so far.
            inputs: For each output that starts from old elements, the parameter that has them.
            name: Makes a name that is not taken from one that is wanted.
        """
        self.types, self.shapes, self.inputs, self.name = dict(types), shapes, inputs, name
        self._current = {tensor: _Current(0, whole=True) for tensor in inputs}
        self._done: list[_Step] = []
        self._indices: list[str] = []

    def add(self, statement: Comprehension, *, reduces: bool) -> None:
        """One more statement; ``reduces`` tells whether it writes elements more than once."""
        tensor = statement.tensor
        keeps = statement.assign.is_reduction and not statement.assign.resets
        starts = not keeps and self._is_whole(statement)
        now = self._current.get(tensor)
        if now is None:
            self._current[tensor] = _Current(0, starts)
            self._done.append(self._step(statement, 0, 0))
            return
        if now.number == 0 and tensor in self.inputs and not starts:
            self._start(self._whole(tensor, tensor), now)
        if starts and now.whole:
            self._start(statement, now)
            return
        for part in self._in_place(statement, reduces):
            self._done.append(self._step(part, now.number, now.number))

    def finish(self, returned: Iterable[str]) -> tuple[Comprehension, ...]:
        """All statements, without those that nothing needs."""
        names = {
            _mark(tensor, number): self._final(tensor, number, now.number)
            for tensor, now in self._current.items()
            for number in range(now.number + 1)
        }
        body: list[Comprehension] = []
        for step in self._done:
            tensor = step.original.tensor
            written = replace(
                _reading(step.marked, names),
                tensor=names.get(step.marked.tensor, step.marked.tensor),
            )
            if step.starts and written.tensor != tensor:
                written = replace(written, value=self._typed(step.original, written.value))
            body.append(written)
        return _needed(body, set(returned))

    def _final(self, tensor: str, number: int, last: int) -> str:
        if number == last:
            return tensor
        if number == 0 and tensor in self.inputs:
            return self.inputs[tensor]
        return self.name(f"{tensor}_{number}")

    def _start(self, statement: Comprehension, now: _Current) -> None:
        """A statement that starts another version."""
        self._done.append(self._step(statement, now.number, now.number + 1))
        now.number += 1

    def _step(self, statement: Comprehension, old: int, new: int) -> _Step:
        """A statement that reads the version ``old`` of the tensor it writes."""
        marks = {name: _mark(name, now.number) for name, now in self._current.items()}
        tensor = statement.tensor
        if tensor not in marks:  # a copy, which has one version
            return _Step(_reading(statement, marks), statement, starts=False)
        marks[tensor] = _mark(tensor, old)
        marked = replace(_reading(statement, marks), tensor=_mark(tensor, new))
        first = all(step.marked.tensor != marked.tensor for step in self._done)
        return _Step(marked, statement, starts=first)

    def _in_place(self, statement: Comprehension, reduces: bool) -> Iterator[Comprehension]:
        """A statement that changes elements of the current version, made fit for loops."""
        tensor = statement.tensor
        if _reads_old_elements(statement, reduces):
            copy = self.name(f"{tensor}_old")
            self.types[copy] = self.types[tensor]
            yield self._whole(copy, tensor)
            statement = _reading(statement, {tensor: copy})
        if statement.assign.resets:
            kept = set(statement.indices)
            yield replace(
                statement,
                assign=AssignKind.SET,
                value=neutral(statement.assign.operator, self.types[tensor].dtype),
                ranges=tuple(r for r in statement.ranges if r.name in kept),
                lets=(),
            )
            statement = replace(statement, assign=AssignKind(statement.assign.value[:-1]))
        yield statement

    def _whole(self, target: str, source: str) -> Comprehension:
        """``target(i, j) = source(i, j)`` over all elements of ``source``."""
        shape = self.shapes[source]
        while len(self._indices) < len(shape):
            self._indices.append(self.name(f"i{len(self._indices)}"))
        indices = tuple(self._indices[: len(shape)])
        ranges = tuple(
            Range(v, Const(0), size.expr) for v, size in zip(indices, shape, strict=True)
        )
        value = Access(source, tuple(map(Var, indices)))
        return Comprehension(target, indices, AssignKind.SET, value, ranges)

    def _is_whole(self, statement: Comprehension) -> bool:
        """Whether every element is written."""
        ranges = {r.name: r for r in statement.ranges}
        return all(
            ranges[v].low == Const(0) and ranges[v].high == extent.expr
            for v, extent in zip(statement.indices, self.shapes[statement.tensor], strict=True)
        )

    def _typed(self, statement: Comprehension, value: Expr) -> Expr:
        """``value`` with a cast, where a temporary would else get another type."""
        names: dict[str, Type] = {}
        for let in statement.lets:
            names[let.name] = type_of(let.value, self.types, names)
        found = resolve(type_of(statement.value, self.types, names))
        wanted = self.types[statement.tensor].dtype
        if statement.assign.operator in ("+", "*"):
            found, wanted = found.compute, wanted.compute  # what a temporary sums in
        return value if found is wanted else Cast(wanted, value)


@dataclass(frozen=True, slots=True)
class _Step:
    """A statement.

    Attributes:
        marked: With the numbers of versions in the names of tensors.
        original: Without.
        starts: Whether it is the first of its version.
    """

    marked: Comprehension
    original: Comprehension
    starts: bool


def neutral(operator: str, dtype: DType) -> Expr:
    """The element that a reduction starts from."""
    if operator in ("+", "*"):
        return Const(int(operator == "*"))
    if dtype is DType.BOOL:
        return Const(operator == "min")
    if dtype.is_float:
        return Const(math.inf if operator == "min" else -math.inf)
    most = Const(int(dtype.limits[1]))
    if operator == "min":
        return most
    return Binary("-", Unary("-", most), Const(1)) if dtype.is_signed else Const(0)


def _reads_old_elements(statement: Comprehension, reduces: bool) -> bool:
    """Whether some read of the statement's own tensor is not of the element it writes.

    Args:
        statement: The statement.
        reduces: Whether it writes an element more than once, so that even that element's old
            value is gone after the first time.
    """
    written = tuple(map(Var, statement.indices))
    for expr in statement.values:
        for node in post_order(expr):
            own = isinstance(node, Access) and node.tensor == statement.tensor
            if own and (reduces or children(node) != written):
                return True
    return False


def _reading(statement: Comprehension, names: Mapping[str, str]) -> Comprehension:
    """``statement`` with other names for the tensors it reads."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, Access) and node.tensor in names:
            return replace(node, tensor=names[node.tensor])
        return node

    return rebuild_statement(statement, rule)


def _needed(body: Iterable[Comprehension], needed: set[str]) -> tuple[Comprehension, ...]:
    """The statements that ``needed`` tensors depend on."""
    kept: list[Comprehension] = []
    for statement in reversed(tuple(body)):
        if statement.tensor in needed:
            kept.append(statement)
            for expr in statement.values:
                needed.update(n.tensor for n in post_order(expr) if isinstance(n, Access))
    return tuple(reversed(kept))


def _mark(tensor: str, number: int) -> str:
    return f"{tensor}@{number}"
