"""A stack of encoder layers in the form exporters give BERT."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from models.attention import attention
from models.draft import Draft, Size
from models.gelu import gelu
from models.layernorm import layernorm


def build(
    layers: int = 2, batch: Size = "N", rows: Size = "S", heads: int = 4, width: int = 16,
    words: int = 100,
) -> ir.Model:  # fmt: skip
    """Word embedding and ``layers`` encoder layers for ``ids(batch, rows)``.

    BERT-base is ``build(12, heads=12, width=64, words=30522)``.
    """
    features = heads * width
    g = Draft("bert")
    ids = g.input("ids", [batch, rows], ir.DataType.INT64)
    mask = g.input("mask", [batch, rows])
    wide = g.op("Unsqueeze", mask, g.constant([1, 2], np.int64))
    x = layernorm(g, g.op("Gather", g.weight(words, features), ids), features)
    for _ in range(layers):
        mixed = g.op(
            "Add",
            g.op("MatMul", attention(g, x, wide, heads, width), g.weight(features, features)),
            g.weight(features),
        )
        x = layernorm(g, g.op("Add", mixed, x), features)
        inner = g.op("MatMul", x, g.weight(features, 4 * features))
        inner = gelu(g, g.op("Add", inner, g.weight(4 * features)))
        outer = g.op("MatMul", inner, g.weight(4 * features, features))
        outer = g.op("Add", outer, g.weight(features))
        x = layernorm(g, g.op("Add", outer, x), features)
    g.output(x, "y", [batch, rows, features])
    return g.model()
