"""A case's kernels as one call, its inputs, and how much work it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

import tcfuse
from op_library import papers
from scripts.paper_kernels.case import Case, Step
from tcfuse.tc.ast import Access, Binary, Call, Const, Expr, Select, Unary, Var, children
from tcfuse.tc.binding import number, size_value
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.parser import parse_file
from tcfuse.tc.sema import check

Arrays = dict[str, np.ndarray]


def checked_of(step: Step) -> CheckedDef:
    """The definition of a step."""
    for definition in parse_file(papers.text(step.kernel), step.kernel):
        if definition.name == step.definition:
            return check(definition, affine=False)
    raise KeyError(f"{step.kernel}.tc has no definition {step.definition!r}")


def shape_of(checked: CheckedDef, tensor: str, step: Step) -> tuple[int, ...]:
    """The shape of a tensor at the sizes of a step."""
    return tuple(size_value(size, step.sizes) for size in checked.tensors[tensor].shape)


@dataclass(frozen=True)
class Workload:
    """The inputs of a case, and what it costs at least.

    Attributes:
        inputs: Every input that no step computes, in the last shape a step reads it in.
        outputs: Names of the outputs that are compared.
        n_bytes: What has to be read and written once, in every step.
        flops: Additions, multiplications, divisions and functions, each one operation.
        terms: The longest sum.
    """

    inputs: Arrays
    outputs: tuple[str, ...]
    n_bytes: int
    flops: int
    terms: int


def workload(case: Case) -> Workload:
    """Random inputs, the same in every run."""
    rng = np.random.default_rng(0)
    inputs: Arrays = {}
    made: set[str] = set()
    n_bytes = flops = terms = 0
    checked = checked_of(case.steps[0])
    for step in case.steps:
        checked = checked_of(step)
        for name in checked.inputs:
            shape = shape_of(checked, name, step)
            size = prod(shape) * checked.tensors[name].dtype.bytes
            n_bytes += case.touched.get(name, size)
            if name in inputs:
                inputs[name] = inputs[name].reshape(shape)
            elif name not in made:
                inputs[name] = random_array(case, checked, name, shape, rng)
        made.update(checked.outputs)
        for name in checked.outputs:
            shape = shape_of(checked, name, step)
            n_bytes += prod(shape) * checked.tensors[name].dtype.bytes
        flops += sum(operations(s, step.sizes) for s in checked.statements)
        terms += sum(points(s, s.reduction, step.sizes) for s in checked.statements)
    return Workload(inputs, case.outputs or checked.outputs, n_bytes, flops, terms)


def random_array(
    case: Case,
    checked: CheckedDef,
    name: str,
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> np.ndarray:
    """Positions inside a table, or normally distributed numbers."""
    dtype = checked.tensors[name].dtype.numpy
    if name in case.positions:
        return rng.integers(0, case.positions[name], shape).astype(dtype)
    return rng.standard_normal(shape, np.float32).astype(dtype, copy=False)


def points(
    statement: CheckedStatement, variables: tuple[str, ...], sizes: Mapping[str, int]
) -> int:
    """How many values some variables of a statement take together."""
    ranges = {r.name: r for r in statement.ranges}
    bounds = ((number(ranges[v].low, sizes), number(ranges[v].high, sizes)) for v in variables)
    return prod(high - low for low, high in bounds)


def operations(statement: CheckedStatement, sizes: Mapping[str, int]) -> int:
    """The arithmetic of a statement, without that on indices and sizes."""
    written = statement.comprehension
    indices = {r.name for r in statement.ranges} | set(sizes)
    each = sum(
        arithmetic(e, indices) for e in (written.value, *(x.value for x in written.lets))
    )
    each += written.assign.is_reduction
    return each * points(statement, tuple(r.name for r in statement.ranges), sizes)


def arithmetic(expr: Expr, indices: set[str]) -> int:
    """The operations on elements of tensors in an expression."""
    match expr:
        case Access() | Const() | Var():
            return 0
        case Select(_, then, otherwise):
            return arithmetic(then, indices) + arithmetic(otherwise, indices)
    below = sum(arithmetic(x, indices) for x in children(expr))
    own = isinstance(expr, Binary | Call | Unary) and not is_index(expr, indices)
    return below + own


def is_index(expr: Expr, indices: set[str]) -> bool:
    """Whether an expression is computed from indices and sizes alone."""
    match expr:
        case Const():
            return True
        case Var(name):
            return name in indices
        case Access():
            return False
    return all(is_index(x, indices) for x in children(expr))


def runner(case: Case, inputs: Arrays, *, symbolic: bool) -> tuple[Callable[[], Any], Arrays]:
    """The case's kernels as one call, bound to arrays, and these arrays."""
    known = dict(inputs)
    calls: list[Callable[[], Any]] = []
    for step in case.steps:
        checked = checked_of(step)
        layers = tcfuse.define(
            papers.text(step.kernel), sizes=None if symbolic else fixed(step), quiet=True
        )
        layer = layers[step.definition]
        given = [known[name].reshape(shape_of(checked, name, step)) for name in checked.inputs]
        outs = [
            np.empty(shape_of(checked, name, step), checked.tensors[name].dtype.numpy)
            for name in checked.outputs
        ]
        known |= dict(zip(checked.outputs, outs, strict=True))
        out = outs[0] if len(outs) == 1 else tuple(outs)
        calls.append(layer.bind(*given, out=out))

    def call() -> None:
        for each in calls:
            each()

    return (calls[0] if len(calls) == 1 else call), known


def fixed(step: Step) -> dict[str, int]:
    """The sizes of a step, for a kernel that is made for them."""
    return dict(step.sizes)


def namespace(arrays: Mapping[str, np.ndarray], dtype: type | None = None) -> SimpleNamespace:
    """Arrays as attributes, floats in another type if one is given."""
    wide = {
        name: array.astype(dtype) if dtype is not None and array.dtype.kind == "f" else array
        for name, array in arrays.items()
    }
    return SimpleNamespace(**wide)
