"""A masked softmax over the last axis, as attention uses it."""

from __future__ import annotations

import onnx_ir as ir

from models.draft import Draft, Size


def build(heads: Size = 4, rows: Size = "S", columns: Size = "T") -> ir.Model:
    """``Y = softmax(X / 8 + mask)`` for ``X(heads, rows, columns)``."""
    g = Draft("softmax")
    x = g.input("x", [heads, rows, columns])
    mask = g.input("mask", [rows, columns])
    masked = g.op("Add", g.op("Div", x, g.constant(8.0)), mask)
    g.output(g.op("Softmax", masked, axis=-1), "y", [heads, rows, columns])
    return g.model()
