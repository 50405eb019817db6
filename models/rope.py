"""Rotary position embedding: halves are swapped, negated and mixed."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from models.draft import Draft, Size


def build(heads: Size = 4, rows: Size = "S", features: int = 64) -> ir.Model:
    """``Y = X * cos + rotate_half(X) * sin`` for ``X(heads, rows, features)``."""
    g = Draft("rope")
    x = g.input("x", [heads, rows, features])
    cos, sin = g.input("cos", [rows, features]), g.input("sin", [rows, features])

    def ints(*values: int) -> ir.Value:
        return g.constant(values, np.int64)

    low = g.op("Slice", x, ints(0), ints(features // 2), ints(2))
    high = g.op("Slice", x, ints(features // 2), ints(features), ints(2))
    rotated = g.op("Concat", g.op("Neg", high), low, axis=2)
    mixed = g.op("Add", g.op("Mul", x, cos), g.op("Mul", rotated, sin))
    g.output(mixed, "y", [heads, rows, features])
    return g.model()
