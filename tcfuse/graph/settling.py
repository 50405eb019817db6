"""Inputs that are computed when the model runs, and could as well be constants.

Exporters write ``x[:, :x.shape[1] - 1]`` and ``mask.expand(x.shape[0], 8)`` with sizes that the
graph computes.  Shape inference knows them as expressions; where a constant says the same for
every size, the definition of the operator can have it.

Rewrite:
    Slice(x, [0], Shape(x)[0] - 1)  ->  Slice(x, [0], [-1])
    Expand(x, [Shape(x)[0], 8])     ->  Expand(x, [1, 8])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from tcfuse.graph.shapes import dims, elements
from tcfuse.graph.symbols import Dim, equal, subtract


def settled(node: ir.Node) -> dict[int, np.ndarray]:
    """Constants that may take the place of computed inputs of ``node``, by position."""
    rule = _RULES.get(node.op_type)
    if rule is None or node.domain not in ("", "ai.onnx"):
        return {}
    return rule(node)


def _slice(node: ir.Node) -> dict[int, np.ndarray]:
    """Starts and ends that are the sliced size, or one less."""
    shape = None if node.inputs[0] is None else dims(node.inputs[0])
    axes = _integers(node, 3)
    steps = _integers(node, 4)
    if shape is None or (steps is not None and min(steps, default=1) < 1):
        return {}
    found: dict[int, np.ndarray] = {}
    for position in (1, 2):
        bounds = _computed(node, position)
        if bounds is None:
            continue
        along = range(len(bounds)) if axes is None else axes
        if len(along) != len(bounds) or any(not -len(shape) <= a < len(shape) for a in along):
            return {}
        value = node.inputs[position]
        assert value is not None
        assert value.dtype is not None
        last = int(np.iinfo(value.dtype.numpy()).max)
        numbers = [_bound(b, shape[a], last) for b, a in zip(bounds, along, strict=True)]
        if all(isinstance(n, int) for n in numbers):
            found[position] = np.array(numbers, value.dtype.numpy())
    return found


def _bound(bound: Dim | None, size: Dim, last: int) -> int | None:
    """The number that means the same as ``bound`` along a dimension of ``size``.

    ``size - 2`` has none: where the size is 1 it is -1, the last element.
    """
    if bound is None or isinstance(bound, int):
        return bound
    if equal(bound, size):
        return last
    return -1 if equal(bound, subtract(size, 1)) else None


def _expand(node: ir.Node) -> dict[int, np.ndarray]:
    """Sizes of the target that the input has at the same place anyway: 1 keeps them."""
    shape = None if node.inputs[0] is None else dims(node.inputs[0])
    target = _computed(node, 1)
    if shape is None or target is None:
        return {}
    own: list[Dim | None] = [*[None] * (len(target) - len(shape)), *shape]
    own = own[len(own) - len(target) :]
    numbers = [_size(size, there) for size, there in zip(target, own, strict=True)]
    known = all(isinstance(n, int) for n in numbers)
    return {1: np.array(numbers, np.int64)} if known else {}


def _size(size: Dim | None, there: Dim | None) -> int | None:
    """The number that means the same as ``size`` where the input has the size ``there``."""
    if size is None or isinstance(size, int):
        return size
    return 1 if there is not None and equal(size, there) else None


def _computed(node: ir.Node, position: int) -> Sequence[Dim | None] | None:
    """The elements of an input, if some are expressions."""
    value = node.inputs[position] if position < len(node.inputs) else None
    found = None if value is None else elements(value)
    if found is None or all(e is None or isinstance(e, int) for e in found):
        return None
    return found


def _integers(node: ir.Node, position: int) -> list[int] | None:
    """The elements of an input; ``None`` where it is absent, nothing valid where unknown."""
    value = node.inputs[position] if position < len(node.inputs) else None
    if value is None:
        return None
    return [e if isinstance(e, int) else -(1 << 62) for e in elements(value) or (None,)]


_RULES: dict[str, Callable[[ir.Node], dict[int, np.ndarray]]] = {
    "Slice": _slice,
    "Expand": _expand,
}
