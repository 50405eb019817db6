"""A graph of any number of nodes with few regions alike, and matrix products between them."""

from __future__ import annotations

import random

import onnx_ir as ir

from models.draft import Draft, Size
from models.layernorm import layernorm

_UNARY = ("Abs", "Exp", "Neg", "Relu", "Sigmoid", "Sin", "Sqrt", "Tanh")
_BINARY = ("Add", "Max", "Min", "Mul", "Sub")
_WIDTH = 32


def build(n_nodes: int, rows: Size = "N", kinds: int = 24) -> ir.Model:
    """About ``n_nodes`` operators on rows of 32 numbers.

    Args:
        n_nodes: After which the graph ends.
        rows: Rows of every tensor.
        kinds: Different blocks; a model of many layers is made of few of them.
    """
    g = Draft("mixed")
    x = g.input("x", [rows, _WIDTH])
    number = 0
    while len(g.graph) < n_nodes:
        x = _block(g, x, random.Random(number % kinds))
        number += 1
    g.output(x, "y", [rows, _WIDTH])
    return g.model()


def _block(g: Draft, x: ir.Value, rng: random.Random) -> ir.Value:
    """A product, elementwise operators on values chosen among the last, a normalization."""
    values = [x, g.op("MatMul", x, g.weight(_WIDTH, _WIDTH))]
    for _ in range(rng.randint(4, 16)):
        if rng.random() < 0.5:
            value = g.op(rng.choice(_UNARY), rng.choice(values[-3:]))
        else:
            value = g.op(rng.choice(_BINARY), rng.choice(values), values[-1])
        values.append(g.op("Clip", value, g.constant(-4), g.constant(4)))
    return layernorm(g, g.op("Add", values[-1], x), _WIDTH)
