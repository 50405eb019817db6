"""A model larger than a protobuf can be: its weights lie in a file beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir

from models.draft import FLOAT, Draft

_BLOCK = 1 << 20  # numbers drawn at a time


def save(path: Path, layers: int, width: int = 4096) -> int:
    """Write ``layers`` products with gated activations between to ``path``; bytes of weights.

    The weights are never in memory as a whole.
    """
    g = Draft("heavy")
    data = path.with_suffix(".data")
    x = g.input("x", ["N", width])
    rng = np.random.default_rng(0)
    with data.open("wb") as file:
        for layer in range(layers):
            weight = _external(g, f"w{layer}", data.name, file.tell(), width)
            for start in range(0, width * width, _BLOCK):
                count = min(_BLOCK, width * width - start)
                file.write(rng.standard_normal(count, np.float32) / np.float32(width**0.5))
            y = g.op("Add", g.op("MatMul", x, weight), g.weight(width))
            x = g.op("Add", g.op("Mul", g.op("Sigmoid", y), g.op("Tanh", y)), x)
        total = file.tell()
    g.output(x, "y", ["N", width])
    ir.save(g.model(), path)
    return total


def _external(g: Draft, name: str, location: str, offset: int, width: int) -> ir.Value:
    """An initializer whose data is in a file."""
    tensor = ir.ExternalTensor(
        location, offset, 4 * width * width, FLOAT, shape=ir.Shape([width, width]), name=name
    )
    value = ir.Value(
        name=name, shape=ir.Shape([width, width]), type=ir.TensorType(FLOAT), const_value=tensor
    )
    g.graph.register_initializer(value)
    return value
