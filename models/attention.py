"""The core of attention between its matrix products: scale, mask, softmax, reshape."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from models.draft import Draft, Size


def build(batch: Size = "N", rows: Size = "S", heads: int = 4, width: int = 16) -> ir.Model:
    """Self-attention of ``X(batch, rows, heads * width)`` with a mask of ones and zeros."""
    features = heads * width
    g = Draft("attention")
    x = g.input("x", [batch, rows, features])
    mask = g.input("mask", [batch, 1, 1, rows])
    g.output(attention(g, x, mask, heads, width), "y", [batch, rows, features])
    return g.model()


def attention(g: Draft, x: ir.Value, mask: ir.Value, heads: int, width: int) -> ir.Value:
    """The operators for one value."""
    features = heads * width

    def project(perm: list[int]) -> ir.Value:
        mixed = g.op("Add", g.op("MatMul", x, g.weight(features, features)), g.weight(features))
        split = g.op("Reshape", mixed, g.constant([0, 0, heads, width], np.int64))
        return g.op("Transpose", split, perm=perm)

    query, key = project([0, 2, 1, 3]), project([0, 2, 3, 1])
    scores = g.op("Div", g.op("MatMul", query, key), g.constant(np.sqrt(width)))
    hidden = g.op("Mul", g.op("Sub", g.constant(1.0), mask), g.constant(-10000.0))
    weights = g.op("Softmax", g.op("Add", scores, hidden), axis=-1)
    mixed = g.op("Transpose", g.op("MatMul", weights, project([0, 2, 1, 3])), perm=[0, 2, 1, 3])
    return g.op("Reshape", mixed, g.constant([0, 0, features], np.int64))
