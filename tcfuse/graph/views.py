"""Reshapes whose target is computed at run time and yet known.

Exporters of models with symbolic sizes write ``Reshape(x, Concat(Shape(x)[0], Shape(x)[1], 12,
64))``. Shape inference knows the result, ``(B, S, 12, 64)``, so a kernel needs no target at
all, and the fallback can use one that is constant: ``(0, 0, 12, 64)``, where 0 copies a size
from the input.
"""

from __future__ import annotations

import onnx_ir as ir

from tcfuse.graph.shapes import dims


def reshape_target(node: ir.Node) -> tuple[int, ...] | None:
    """A constant target that makes ``node``, a Reshape, give the same result.

    ``None`` when there is none: more than one size is neither a number nor the size that the
    input has at the same place.
    """
    if node.op_type != "Reshape" or node.inputs[0] is None:
        return None
    before, after = dims(node.inputs[0]), dims(node.outputs[0])
    if before is None or after is None:
        return None
    target = [_entry(k, size, before) for k, size in enumerate(after)]
    return tuple(target) if target.count(-1) <= 1 else None


def _entry(k: int, size: object, before: tuple[object, ...]) -> int:
    """The target's number for the size at place ``k``: itself, 0 (copied) or -1 (the rest)."""
    if isinstance(size, int) and size != 0:
        return size
    return 0 if k < len(before) and before[k] == size else -1
