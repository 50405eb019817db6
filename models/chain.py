"""A chain of elementwise operators: the shape of a graph that breaks recursive compilers."""

from __future__ import annotations

import onnx_ir as ir

from models.draft import Draft, Size


def build(n_nodes: int = 30, n: Size = "N") -> ir.Model:
    """``n_nodes`` operators one after the other on ``X(n)``; values stay between -2 and 2."""
    g = Draft("chain")
    value = g.input("x", [n])
    steps = (
        lambda v: g.op("Mul", v, g.constant(0.75)),
        lambda v: g.op("Add", v, g.constant(0.25)),
        lambda v: g.op("Tanh", v),
        lambda v: g.op("Neg", v),
        lambda v: g.op("Abs", v),
        lambda v: g.op("Sub", v, g.constant(0.5)),
    )
    for k in range(n_nodes):
        value = steps[k % len(steps)](value)
    g.output(value, "y", [n])
    return g.model()
