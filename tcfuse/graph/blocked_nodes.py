"""New nodes on blocked values, put before one node of a graph; each knows its type and shape.

Operators that treat channels and pixels differently, or broadcast, see a blocked value in its
memory shape (``graph.blocked``), between two Reshapes that move nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir as ir

from tcfuse.graph.blocked import BLOCK_KEY, NCHWC, blocked_shape
from tcfuse.graph.names import names_of, unused_name
from tcfuse.graph.symbols import Dims, dims, set_dims


class BlockedNodes:
    """Makes nodes of one graph; all values are of 32-bit floats.

    Attributes:
        block: Channels in a block.
    """

    def __init__(self, model: ir.Model, block: int) -> None:
        self.graph, self.block = model.graph, block
        self._names = names_of(model)
        self._constants: dict[bytes, ir.Value] = {}

    def reorder_output(self, blocked: ir.Value, shape: Dims, before: ir.Node) -> ir.Value:
        """``blocked`` as a plain value of that shape."""
        attributes = [
            ir.AttrInt64("channels", _number(shape[1])),
            ir.AttrInt64("channels_last", 0),
        ]
        return self.node(NCHWC, "ReorderOutput", [blocked], attributes, shape, before)

    def reorder_input(self, plain: ir.Value, before: ir.Node) -> ir.Value:
        """``plain`` with its channels in blocks."""
        shape = self.padded(dims(plain) or ())
        attributes = [ir.AttrInt64("channels_last", 0)]
        return self.node(NCHWC, "ReorderInput", [plain], attributes, shape, before)

    def padded(self, shape: Dims) -> Dims:
        """The shape of a blocked value that holds a plain one of that shape."""
        images, channels, *spatial = shape
        blocks = -(-_number(channels) // self.block)
        return (images, blocks * self.block, *spatial)

    def apart(self, blocked: ir.Value, before: ir.Node) -> ir.Value:
        """``blocked`` in its memory shape."""
        shape = self.apart_shape(dims(blocked) or ())
        target = [0, _number(shape[1]), *[0] * (len(shape) - 3), self.block]
        return self._reshape(blocked, target, shape, before)

    def apart_shape(self, shape: Dims) -> Dims:
        """The memory shape of a blocked value of that shape."""
        return blocked_shape(shape, self.block)

    def together(self, value: ir.Value, before: ir.Node) -> ir.Value:
        """A value in its memory shape as a blocked one."""
        images, blocks, *spatial, block = dims(value) or ()
        channels = _number(blocks) * _number(block)
        target = [0, channels, *[0] * len(spatial)]
        return self._reshape(value, target, (images, channels, *spatial), before)

    def channel_constant(self, array: np.ndarray, fill: float) -> ir.Value:
        """One number for each channel, in the memory shape; ``fill`` in the rest of a block."""
        blocks = -(-array.size // self.block)
        padded = np.full(blocks * self.block, fill, array.dtype)
        padded[: array.size] = array.reshape(-1)
        return self.constant(padded.reshape(1, blocks, 1, 1, self.block))

    def constant(self, array: np.ndarray) -> ir.Value:
        """An initializer; equal ones are one."""
        key = array.tobytes() + repr((array.shape, array.dtype)).encode()
        if key not in self._constants:
            name = unused_name("blocked_constant", self._names)
            tensor = ir.tensor(array, name=name)
            value = ir.Value(name=name, const_value=tensor)
            value.shape, value.type = ir.Shape(array.shape), ir.TensorType(tensor.dtype)
            self.graph.register_initializer(value)
            self._constants[key] = value
        return self._constants[key]

    def node(
        self,
        domain: str,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Iterable[ir.Attr],
        shape: Dims,
        before: ir.Node,
    ) -> ir.Value:
        """The output of a new node."""
        metadata = {BLOCK_KEY: str(self.block)} if domain == NCHWC else {}
        name = unused_name(f"blocked_{op_type}", self._names)
        node = ir.Node(domain, op_type, inputs, attributes, name=name, metadata_props=metadata)
        (value,) = node.outputs
        value.name = unused_name(f"{name}_output", self._names)
        value.type = ir.TensorType(ir.DataType.FLOAT)
        set_dims(value, shape)
        assert isinstance(before.graph, ir.Graph)
        before.graph.insert_before(before, node)
        return value

    def _reshape(
        self, value: ir.Value, target: Sequence[int], shape: Dims, before: ir.Node
    ) -> ir.Value:
        wanted = self.constant(np.array(target, np.int64))
        return self.node("", "Reshape", [value, wanted], [], shape, before)


def _number(size: object) -> int:
    assert isinstance(size, int)
    return size
