"""A model for ONNX Runtime without its weights, which it is handed where they are.

A message with weights of 400 MB in it is built, written out and parsed: three copies, and time
that sessions opened one after the other pay again and again.  ONNX Runtime takes initializers
that the message only names from memory; it packs what its kernels want packed, as ever.

Seen in 1.32: the optimizer makes of such a model exactly what it makes of the whole one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from tcfuse.ort.arrays import to_value

LARGE_BYTES = 1 << 16
SINCE = (1, 32)  # of ONNX Runtime: it is not known of versions before what they optimize then


@dataclass(frozen=True, slots=True, eq=False)
class Injected:
    """A model in two parts.

    Attributes:
        message: The model; large initializers are only named in it.
        weights: These, by name.
        arrays: What ``weights`` look into; to be kept as long as they are used.
    """

    message: bytes
    weights: dict[str, Any]
    arrays: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, model: ir.Model) -> Injected:
        """The parts of ``model``, which stays as it was."""
        copy = model.clone()
        weights: dict[str, Any] = {}
        arrays: list[np.ndarray] = []
        for name, value in copy.graph.initializers.items():
            tensor = value.const_value
            if tensor is None or not can_be_injected(tensor):
                continue
            arrays.append(np.asarray(tensor.numpy(), order="C"))
            weights[name] = to_value(arrays[-1])
            shape = ir.Shape(tensor.shape.numpy())
            about = tensor.nbytes, tensor.dtype
            value.const_value = ir.ExternalTensor("memory", 0, *about, shape=shape, name=name)
        return cls(ir.to_proto(copy).SerializeToString(), weights, tuple(arrays))


def can_be_injected(tensor: ir.TensorProtocol) -> bool:
    """Whether a tensor is large enough to matter, and lies in memory as ONNX Runtime has it."""
    return (
        tensor.nbytes > LARGE_BYTES
        and not isinstance(tensor, ir.ExternalTensor)
        and tensor.dtype is not ir.DataType.STRING
        and tensor.dtype.bitwidth >= 8
    )
