"""A block of a small CNN: convolution, normalization and a hard-swish spelled out."""

from __future__ import annotations

import onnx_ir as ir

from models.draft import Draft, Size


def build(n: Size = "N", channels: int = 16, side: Size = 32, blocks: int = 2) -> ir.Model:
    """``blocks`` times ``Y = hardswish(conv(X))`` for ``X(n, channels, side, side)``."""
    g = Draft("hardswish")
    x = g.input("x", [n, channels, side, side])
    value = x
    for _ in range(blocks):
        weight, bias = g.weight(channels, channels, 3, 3), g.weight(channels)
        value = g.op("Conv", value, weight, bias, pads=[1, 1, 1, 1], kernel_shape=[3, 3])
        shifted = g.op("Add", value, g.constant(3.0))
        gate = g.op("Clip", shifted, g.constant(0.0), g.constant(6.0))
        value = g.op("Div", g.op("Mul", value, gate), g.constant(6.0))
    g.output(value, "y", [n, channels, side, side])
    return g.model()
