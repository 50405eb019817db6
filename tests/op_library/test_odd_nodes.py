"""Nodes that are not as ONNX defines them are refused, whatever is wrong with them."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

from tcfuse import opdef
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import OpCall
from tcfuse.tc.lower import lower
from tcfuse.types import DType, TensorType

SIZES = (0, 1, 2, 3, 4, "N", "M", "2*N")
DTYPES = (DType.FLOAT32, DType.FLOAT16, DType.INT64, DType.INT32, DType.UINT8, DType.BOOL)
CONSTANTS = ([0], [1, 2], [-1], [300], 2, [], [0, 1, 0, 2], 0.5)
ATTRIBUTES = {
    **dict.fromkeys(("axis", "batch_axis", "time_axis", "batch_dims"), (0, 1, -1, 5, -7)),
    **dict.fromkeys(("axes", "perm", "split", "starts", "ends"), ((0,), (9,), (1, 2), ())),
    **dict.fromkeys(("kernel_shape", "strides", "pads"), ((2,), (2, 2), (0, 1, 1, 0))),
    **dict.fromkeys(("keepdims", "largest", "reverse", "inverse", "onesided"), (0, 1)),
    **dict.fromkeys(("group", "num_groups", "blocksize", "k", "p"), (0, 1, 2, 3)),
    **dict.fromkeys(("mode", "reduction", "direction"), ("none", "add", "mean", "", "linear")),
    "ignore_index": (-1, 2),
    "training_mode": (0, 1),
}


def odd_call(rng: random.Random, op_type: str, opset: int, domain: str) -> OpCall:
    """A node with any number of inputs and outputs, of any type, constant or not."""

    def drawn(n: int, like: TensorType) -> list[TensorType | None]:
        alike = rng.random() < 0.5
        return [
            TensorType(rng.choice(DTYPES), like.shape if alike else shape())
            if rng.random() < 0.9
            else None
            for _ in range(n)
        ]

    def shape() -> tuple[int | str, ...]:
        return tuple(rng.choice(SIZES) for _ in range(rng.randint(0, 5)))

    first = TensorType(rng.choice(DTYPES), shape())
    inputs = (first, *drawn(rng.randint(0, 6), first))
    known = (np.array(rng.choice(CONSTANTS)) if rng.random() < 0.5 else None for _ in inputs)
    return OpCall(
        op_type,
        opset,
        inputs,
        tuple(drawn(rng.randint(1, 3), first)),
        {name: rng.choice(v) for name, v in ATTRIBUTES.items() if rng.random() < 0.3},
        tuple(v if t else None for v, t in zip(known, inputs, strict=True)),
        domain,
    )


@pytest.mark.parametrize("seed", range(4))
def test_an_odd_node_is_refused_with_a_sentence(seed):
    rng = random.Random(seed)
    warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, about constants
    for definition in opdef.registered():
        for _ in range(8):
            call = odd_call(rng, definition.op_type, definition.since, definition.domain)
            try:
                lower(definition, call)
            except UnsupportedError as reason:
                assert str(reason)  # noqa: PT017 - a node that happens to be well formed is fine
