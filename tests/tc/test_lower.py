"""Definitions that meet nodes of another kind than they are written for."""

from __future__ import annotations

import pytest

from tcfuse.errors import UnsupportedError
from tcfuse.opdef import OpCall, find
from tcfuse.tc.lower import lower
from tcfuse.types import DType, TensorType

X, PLAIN = TensorType(DType.FLOAT32, (2, 3)), TensorType(DType.FLOAT32, ())


@pytest.mark.parametrize("inputs", [(X, X, X), (X, PLAIN, PLAIN), (X,), (), (X, None, X)])
@pytest.mark.parametrize("outputs", [(X,), (PLAIN, X)])
@pytest.mark.parametrize(
    ("op_type", "opset", "domain"),
    [
        ("Attention", 25, ""),
        ("RotaryEmbedding", 23, ""),
        ("CausalConvWithState", 27, ""),
        ("LinearAttention", 27, ""),
        ("MultiHeadAttention", 1, "com.microsoft"),
        ("EmbedLayerNormalization", 1, "com.microsoft"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(op_type, opset, domain, inputs, outputs):
    call = OpCall(op_type, opset, inputs, outputs, domain=domain)
    with pytest.raises(UnsupportedError):
        lower(find(op_type, opset, domain), call)
