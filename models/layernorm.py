"""Layer normalization written with nine primitive operators."""

from __future__ import annotations

import onnx_ir as ir

from models.draft import Draft, Size


def build(n: Size = "N", features: int = 256, residual: bool = False) -> ir.Model:
    """``Y = normalized(X [+ R]) * scale + bias`` for ``X(n, features)``."""
    g = Draft("layernorm")
    x = g.input("x", [n, features])
    if residual:
        x = g.op("Add", x, g.input("r", [n, features]))
    g.output(layernorm(g, x, features), "y", [n, features])
    return g.model()


def layernorm(g: Draft, x: ir.Value, features: int) -> ir.Value:
    """The operators for one value."""
    mean = g.op("ReduceMean", x, axes=[-1], keepdims=1)
    centred = g.op("Sub", x, mean)
    squared = g.op("Pow", centred, g.constant(2.0))
    variance = g.op("ReduceMean", squared, axes=[-1], keepdims=1)
    deviation = g.op("Sqrt", g.op("Add", variance, g.constant(1e-5)))
    normal = g.op("Div", centred, deviation)
    return g.op("Add", g.op("Mul", normal, g.weight(features)), g.weight(features))
