"""The Gaussian error linear unit as exporters write it: five operators, or nine with tanh."""

from __future__ import annotations

import onnx_ir as ir

from models.draft import Draft, Size


def build(n: Size = "N", features: Size = 256, approximate: bool = False) -> ir.Model:
    """``Y = gelu(X)`` for ``X(n, features)``."""
    g = Draft("gelu")
    x = g.input("x", [n, features])
    g.output(gelu(g, x, approximate=approximate), "y", [n, features])
    return g.model()


def gelu(g: Draft, x: ir.Value, *, approximate: bool = False) -> ir.Value:
    """The operators for one value."""
    half = g.op("Mul", x, g.constant(0.5))
    if approximate:
        cube = g.op("Mul", g.op("Mul", x, x), x)
        inner = g.op("Add", x, g.op("Mul", cube, g.constant(0.044715)))
        curve = g.op("Tanh", g.op("Mul", inner, g.constant(0.7978845608)))
    else:
        curve = g.op("Erf", g.op("Div", x, g.constant(1.4142135624)))
    return g.op("Mul", half, g.op("Add", curve, g.constant(1.0)))
