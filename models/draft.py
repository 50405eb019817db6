"""A few lines of sugar over ``onnx_ir`` for writing models down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

Size = int | str
FLOAT = ir.DataType.FLOAT


class Draft:
    """A model in the making."""

    def __init__(self, name: str, opset: int = 17) -> None:
        self.graph = ir.Graph([], [], nodes=[], opset_imports={"": opset}, name=name)
        self._rng = np.random.default_rng(0)

    def input(self, name: str, shape: Sequence[Size], dtype: ir.DataType = FLOAT) -> ir.Value:
        """A graph input."""
        value = ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(dtype))
        self.graph.inputs.append(value)
        return value

    def constant(self, array: Any, dtype: Any = np.float32) -> ir.Value:
        """An initializer."""
        data = np.asarray(array, dtype)
        name = f"c{len(self.graph.initializers)}"
        value = ir.Value(
            name=name,
            shape=ir.Shape(data.shape),
            type=ir.TensorType(ir.DataType.from_numpy(data.dtype)),
            const_value=ir.tensor(data, name=name),
        )
        self.graph.register_initializer(value)
        return value

    def weight(self, *shape: int) -> ir.Value:
        """An initializer of random numbers, the same in every run."""
        return self.constant(self._rng.standard_normal(shape) / np.sqrt(shape[-1]))

    def op(self, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """The first output of a new node."""
        return self.ops(op_type, *inputs, **attributes)[0]

    def ops(
        self, op_type: str, *inputs: ir.Value | None, n: int = 1, **attributes: Any
    ) -> Sequence[ir.Value]:
        """Every output of a new node."""
        node = ir.node(op_type, inputs, attributes, num_outputs=n)
        node.name = f"{op_type}_{len(self.graph)}"
        for k, value in enumerate(node.outputs):
            value.name = f"{node.name}_{k}"
        self.graph.append(node)
        return node.outputs

    def output(
        self, value: ir.Value, name: str, shape: Sequence[Size], dtype: ir.DataType = FLOAT
    ) -> None:
        """Make ``value`` a graph output."""
        value.name, value.shape, value.dtype = name, ir.Shape(shape), dtype
        self.graph.outputs.append(value)

    def model(self) -> ir.Model:
        """The finished model."""
        return ir.Model(self.graph, ir_version=8, producer_name="tcfuse-models")
