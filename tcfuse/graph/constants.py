"""Which values are constants, and what they are."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

_CONSTANT_ATTRIBUTES = {
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
}


def constant_tensor(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The tensor behind a constant, unread; ``None`` when ``value`` is not one.

    A constant is an initializer of any enclosing graph that is not also a graph input (the
    caller may feed another value there), or the output of a ``Constant`` node.
    """
    if value is None:
        return None
    node = value.producer()
    if node is not None:
        return _of_constant_node(node)
    if value.is_initializer() and not value.is_graph_input():
        return value.const_value
    return None


def _of_constant_node(node: ir.Node) -> ir.TensorProtocol | None:
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    for name, attribute in node.attributes.items():
        if attribute.is_ref():
            return None
        if name == "value":
            tensor: ir.TensorProtocol = attribute.value
            return tensor
        if name in _CONSTANT_ATTRIBUTES:
            return ir.tensor(np.asarray(attribute.value, dtype=_CONSTANT_ATTRIBUTES[name]))
    return None


def constant_value(value: ir.Value | None) -> np.ndarray | None:
    """The array of a constant, memory-mapped when its data is; ``None`` when it is not one."""
    tensor = constant_tensor(value)
    return None if tensor is None else tensor.numpy()


def renamed(tensor: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
    """The data of ``tensor``, shared and unread, under another name."""
    if isinstance(tensor, ir.ExternalTensor):
        return ir.ExternalTensor(
            tensor.location,
            tensor.offset,
            tensor.length,
            tensor.dtype,
            shape=ir.Shape(tensor.shape.numpy()),
            name=name,
            base_dir=tensor.base_dir,
        )
    shape = ir.Shape(tensor.shape.numpy())
    if tensor.dtype is ir.DataType.STRING:
        return ir.StringTensor(tensor.numpy(), shape=shape, name=name)
    return ir.LazyTensor(lambda: tensor, tensor.dtype, shape, name=name)
