"""Definitions run by plain loops: slow, and nothing shared with the evaluator."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tcfuse.tc.ast import (
    Access,
    Binary,
    Call,
    Cast,
    Comprehension,
    Const,
    Def,
    Expr,
    Select,
    Unary,
    Var,
)

Number = int | float | bool

IDENTITIES = {"+": 0.0, "*": 1.0, "min": math.inf, "max": -math.inf}


@dataclass(frozen=True)
class Placed:
    """An array and the subscripts of its first element."""

    elements: np.ndarray
    origin: tuple[int, ...]

    def position(self, subscripts: tuple[Number, ...]) -> tuple[int, ...]:
        found = tuple(int(s) - low for s, low in zip(subscripts, self.origin, strict=True))
        fits = zip(found, self.elements.shape, strict=True)
        assert all(0 <= p < extent for p, extent in fits), "out of bounds"
        return found


def run(
    definition: Def,
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    bounds: Mapping[str, tuple[tuple[int, int], ...]],
    sums: Mapping[str, tuple[int, int]],
    given: Sequence[Mapping[str, tuple[int, int]]] | None = None,
) -> dict[str, np.ndarray]:
    """The value of every tensor.

    Args:
        definition: What to run.
        arrays: The inputs.
        sizes: Values of size names.
        bounds: Lowest subscript and extent of each dimension of each written tensor.
        sums: ``[low, high)`` of the variables that stand on the right-hand side alone; in one
            statement only when the name is that of its tensor, a point and the variable.
        given: Every range of every statement, instead of all these.
    """
    tensors = {name: Placed(array, (0,) * array.ndim) for name, array in arrays.items()}
    for position, statement in enumerate(definition.body):
        if given is not None:
            _statement(statement, tensors, sizes, bounds[statement.tensor], given[position])
            continue
        ranges = {
            v: (low, low + extent)
            for v, (low, extent) in zip(
                statement.indices, bounds[statement.tensor], strict=True
            )
        }
        for key, ends in sums.items():
            tensor, _, v = key.rpartition(".")
            if tensor in ("", statement.tensor) and v not in statement.indices:
                ranges[v] = ends
        for r in statement.ranges:
            ranges[r.name] = (int(value(r.low, sizes, {})), int(value(r.high, sizes, {})))
        _statement(statement, tensors, sizes, bounds[statement.tensor], ranges)
    return {name: placed.elements for name, placed in tensors.items()}


def _statement(
    statement: Comprehension,
    tensors: dict[str, Placed],
    sizes: Mapping[str, int],
    bounds: tuple[tuple[int, int], ...],
    ranges: Mapping[str, tuple[int, int]],
) -> None:
    name, operator = statement.tensor, statement.assign.operator
    if name not in tensors:
        empty = np.full([extent for _, extent in bounds], np.nan)
        tensors[name] = Placed(empty, tuple(low for low, _ in bounds))
    old = tensors[name]
    target = Placed(old.elements.copy(), old.origin)
    used = {v.name for v in _variables(statement)} | {r.name for r in statement.ranges}
    reduced = [v for v in ranges if v in used and v not in statement.indices]
    for point in itertools.product(*(range(*ranges[v]) for v in statement.indices)):
        position = target.position(point)
        if statement.assign.resets:
            target.elements[position] = IDENTITIES[operator]
        for rest in itertools.product(*(range(*ranges[v]) for v in reduced)):
            names: dict[str, Number] = {**sizes}
            names |= dict(zip((*statement.indices, *reduced), (*point, *rest), strict=True))
            for let in statement.lets:
                names[let.name] = value(let.value, names, tensors)
            new = value(statement.value, names, tensors)
            old_value = target.elements[position]
            target.elements[position] = combine(operator, old_value, new) if operator else new
    tensors[name] = target


def _variables(statement: Comprehension) -> Iterator[Var]:
    stack = [statement.value, *(let.value for let in statement.lets), *statement.exists]
    while stack:
        node = stack.pop()
        if isinstance(node, Var):
            yield node
        for field in ("subscripts", "arguments"):
            stack += getattr(node, field, ())
        for field in ("operand", "left", "right", "condition", "then", "otherwise"):
            stack += [getattr(node, field)] if hasattr(node, field) else []


def combine(operator: str, a: Number, b: Number) -> Number:
    """A binary operation, by the book."""
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a // b if isinstance(a, int) and isinstance(b, int) else a / b
        case "%":
            return a % b
        case "min" | "max":
            return (min if operator == "min" else max)(a, b)
        case "&&" | "||":
            return (a and b) if operator == "&&" else (a or b)
        case _:
            comparisons = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
            return {**comparisons, "==": a == b, "!=": a != b}[operator]


def value(expr: Expr, names: Mapping[str, Number], tensors: Mapping[str, Placed]) -> Number:
    """The value of an expression at one point."""
    match expr:
        case Const(found):
            return found
        case Var(name):
            return names[name]
        case Access(name, subscripts):
            placed = tensors[name]
            position = placed.position(tuple(value(s, names, tensors) for s in subscripts))
            return placed.elements[position].item()
        case Unary(operator, operand):
            found = value(operand, names, tensors)
            return (not found) if operator == "!" else -found
        case Binary(operator, left, right):
            a = value(left, names, tensors)
            return combine(operator, a, value(right, names, tensors))
        case Select(condition, then, otherwise):
            chosen = then if value(condition, names, tensors) else otherwise
            return value(chosen, names, tensors)
        case Cast(dtype, operand):
            return dtype.numpy.type(value(operand, names, tensors)).item()
        case Call(function, arguments):
            special = {"fmax": max, "fmin": min}
            method = special.get(function) or getattr(math, function)
            return method(*(value(a, names, tensors) for a in arguments))
