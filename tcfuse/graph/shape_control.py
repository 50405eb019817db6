"""Shapes through ``If``, ``Loop`` and ``Scan``: their bodies are inferred, then their outputs.

A size that only exists inside a body (a count of elements found in one iteration) gets a new
name outside: it may differ each time the body runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import onnx_ir as ir

from tcfuse.graph.shape_call import Call, Known, Scope, UnknownShapeError, normalize_axis
from tcfuse.graph.symbols import Dim, Dims, equal

_ROUNDS = 4  # attempts to find shapes that a loop body keeps

ControlRule: TypeAlias = Callable[[Call], list[Known]]
Body: TypeAlias = Callable[[list[Known], bool], list[Known]]


def _body(call: Call, name: str) -> ir.Graph:
    graph = call.attribute(name)
    if not isinstance(graph, ir.Graph):
        raise UnknownShapeError
    return graph


def _known(call: Call, k: int) -> Known:
    value = call.input(k)
    return Known() if value is None else call.scope.known(value)


def _same_or_fresh(a: Dims | None, b: Dims | None, scope: Scope) -> Dims | None:
    """The shape two results share: where they differ, a size of its own."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if equal(x, y) else scope.fresh() for x, y in zip(a, b, strict=True))


def if_(call: Call) -> list[Known]:
    """What both branches agree on, or the branch a constant condition takes."""
    scope = call.scope
    taken, other = (
        scope.infer_body(_body(call, name), [], final=True)
        for name in ("then_branch", "else_branch")
    )
    condition = call.elements(0)
    if condition is not None and len(condition) == 1 and isinstance(condition[0], int):
        return taken if condition[0] else other
    return [
        Known(a.dtype or b.dtype, _same_or_fresh(a.shape, b.shape, scope))
        for a, b in zip(taken, other, strict=False)
    ]


def _widen(
    carried: Known, result: Known, open_axes: set[int], scope: Scope
) -> tuple[Known, bool]:
    """``carried`` made wide enough to hold ``result``, and whether that changed it."""
    before, after = carried.shape, result.shape
    if before is None:
        return carried, False
    if after is None or len(before) != len(after):
        return Known(carried.dtype), True
    shape: list[Dim] = list(before)
    grown = {k for k in range(len(shape)) if not equal(before[k], after[k])} - open_axes
    for k in grown:
        shape[k] = scope.fresh()
    open_axes |= grown
    return Known(carried.dtype, tuple(shape)), bool(grown)


def _stable(
    call: Call, carried: list[Known], skip: int, run: Body
) -> tuple[list[Known], list[Known]]:
    """Shapes of the carried values that hold in every iteration, and the body's results.

    Args:
        call: The loop.
        carried: Before the first iteration.
        skip: Number of results in front of the carried ones.
        run: Infers the body for these carried values; finally, or as an attempt.
    """
    states = [Known(c.dtype, c.shape) for c in carried]
    open_axes: list[set[int]] = [set() for _ in states]
    attempts = _ROUNDS if call.scope.depth <= 2 else 0
    for _ in range(attempts):
        results = run(states, False)[skip : skip + len(states)]
        widened = [
            _widen(s, r, o, call.scope)
            for s, r, o in zip(states, results, open_axes, strict=True)
        ]
        states = [state for state, _ in widened]
        if not any(changed for _, changed in widened):
            break
    else:
        states = [Known(s.dtype) for s in states]
    final = run(states, True)
    for state, start, axes in zip(states, carried, open_axes, strict=True):
        if state.shape is not None and start.shape is not None:
            state.shape = tuple(
                call.fresh() if k in axes else d for k, d in enumerate(start.shape)
            )
    return states, final


def loop(call: Call) -> list[Known]:
    """Carried values, then one stacked result an iteration for the others."""
    body = _body(call, "body")
    n = len(call.node.inputs) - 2
    counter = [Known(ir.DataType.INT64, ()), Known(ir.DataType.BOOL, ())]

    def run(states: list[Known], final: bool) -> list[Known]:
        return call.scope.infer_body(body, [*counter, *states], final=final)

    states, results = _stable(call, [_known(call, k + 2) for k in range(n)], 1, run)
    trips: Dim = call.fresh()
    scans = [_stacked(r, trips, 0) for r in results[1 + n :]]
    return [*states, *scans]


def _stacked(result: Known, trips: Dim, axis: int) -> Known:
    if result.shape is None:
        return Known(result.dtype)
    at = normalize_axis(axis, len(result.shape) + 1)
    return Known(result.dtype, (*result.shape[:at], trips, *result.shape[at:]))


def scan(call: Call) -> list[Known]:
    """States, then one stacked result a step.

    Raises:
        UnknownShapeError: Before opset 9 there was a batch axis.
    """
    if call.opset < 9:
        raise UnknownShapeError
    body = _body(call, "body")
    n_scans = int(call.attribute("num_scan_inputs", 0))
    n = len(call.node.inputs) - n_scans
    axes: Sequence[int] = call.attribute("scan_input_axes") or (0,) * n_scans
    trips: Dim | None = None
    slices: list[Known] = []
    for k, axis in enumerate(axes):
        whole = _known(call, n + k)
        if whole.shape is None:
            slices.append(Known(whole.dtype))
            continue
        at = normalize_axis(axis, len(whole.shape))
        trips = whole.shape[at] if trips is None else trips
        slices.append(Known(whole.dtype, whole.shape[:at] + whole.shape[at + 1 :]))

    def run(states: list[Known], final: bool) -> list[Known]:
        return call.scope.infer_body(body, [*states, *slices], final=final)

    states, results = _stable(call, [_known(call, k) for k in range(n)], 0, run)
    out_axes: Sequence[int] = call.attribute("scan_output_axes") or (0,) * (len(results) - n)
    steps = call.fresh() if trips is None else trips
    stacked = [_stacked(r, steps, a) for r, a in zip(results[n:], out_axes, strict=False)]
    return [*states, *stacked]


CONTROL_RULES: dict[str, ControlRule] = {"If": if_, "Loop": loop, "Scan": scan}
