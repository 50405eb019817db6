"""A selective scan whose steps are written out, as exporters leave it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from models.draft import Draft


def build(steps: int = 16, channels: int = 8, states: int = 4) -> ir.Model:
    """State = keep * state + add at every step, and its product with a row of ``rows``."""
    g = Draft("scan")
    keep = g.op("Sigmoid", g.input("keep", [steps, channels, states]))
    add = g.input("add", [steps, channels, states])
    rows = g.input("rows", [steps, states])
    state, sums = None, []
    for k in range(steps):
        at = g.constant(k, np.int64)
        added = g.op("Gather", add, at, axis=0)
        if state is not None:
            kept = g.op("Mul", g.op("Gather", keep, at, axis=0), state)
            added = g.op("Add", kept, added)
        state = added
        product = g.op("Mul", state, g.op("Gather", rows, at, axis=0))
        total = g.op("ReduceSum", product, g.constant([-1], np.int64), keepdims=0)
        sums.append(g.op("Unsqueeze", total, g.constant([0], np.int64)))
    g.output(g.op("Tanh", g.op("Concat", *sums, axis=0)), "y", [steps, channels])
    return g.model()
