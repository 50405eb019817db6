"""Values in ONNX Runtime's blocked layout (NCHWc), as its optimized models hold them.

A blocked value has the shape (N, C, H, W), with C rounded up to whole blocks, but its elements
lie in the order (N, C / b, H, W, b): b neighbouring channels of a pixel side by side.  Written
in that *memory shape* the changes between the layouts are transposes, and all that is done to
elements one by one is the same in both.

The block b is not in the model: ``mark`` notes it with the nodes, where shape inference and
composition find it.

Source: https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/optimizer/nchwc_transformer.cc
"""

from __future__ import annotations

from typing import TypeAlias

import onnx
import onnx_ir as ir

from tcfuse.graph.symbols import Dims, dims

NCHWC = "com.microsoft.nchwc"
"""Domain of the operators on blocked tensors."""

BLOCK_KEY = "tcfuse.block"
"""Metadata of a node of that domain: how many channels a block has."""

_CACHE = "tcfuse.block"
STANDARD = ("", "ai.onnx")


def is_blocked_model(model: onnx.ModelProto) -> bool:
    """Whether a model of ONNX Runtime's making has operators on blocked tensors."""
    return any(node.domain == NCHWC for node in model.graph.node)


def mark(model: onnx.ModelProto, block: int) -> None:
    """Note with every operator on blocked tensors how many channels a block has, in place."""
    for node in model.graph.node:
        if node.domain == NCHWC:
            node.metadata_props.add(key=BLOCK_KEY, value=str(block))


def block_of_node(node: ir.Node) -> int:
    """Channels in a block of what ``node`` works on; 0 for an operator on plain tensors."""
    return int(node.metadata_props.get(BLOCK_KEY, 0)) if node.domain == NCHWC else 0


def block_of(value: ir.Value) -> int:
    """Channels in a block of ``value``; 0 when it is plain, or not known to be blocked.

    Calling a plain value blocked, or the other way round, makes no kernel wrong: a reader that
    sees it otherwise has the same bytes in another shape.
    """
    waiting = [value]
    while waiting:
        current = waiting[-1]
        producer = current.producer()
        if _CACHE in current.meta or producer is None:
            waiting.pop()
            continue
        before = [v for v in _carriers(producer) if _CACHE not in v.meta and v.producer()]
        if before:
            waiting += before
            continue
        current.meta[_CACHE] = _made_by(producer, current)
        waiting.pop()
    block: int = value.meta.get(_CACHE, 0)
    return block


def blocked_shape(shape: Dims, block: int) -> Dims:
    """The memory shape of a blocked tensor of shape (N, C, H, W)."""
    images, channels, *spatial = shape
    assert isinstance(channels, int)
    return (images, channels // block, *spatial, block)


Shown: TypeAlias = tuple[tuple[Dims | None, ...], tuple[Dims | None, ...]]


def shown(node: ir.Node) -> Shown:
    """The shapes in which the definition of ``node`` sees its inputs and outputs.

    Each holds the bytes of the operand in row-major order; a change of layout is a transpose
    between two of them, and other operators on blocked operands see these as they lie in
    memory.
    """
    inputs, outputs = tuple(map(_dims, node.inputs)), tuple(map(_dims, node.outputs))
    block = block_of_node(node)
    if block:
        return _shown_blocked(node, inputs, outputs, block)
    block = block_of(node.outputs[0]) if outputs and node.op_type != "Reshape" else 0
    if not block:
        return inputs, outputs
    seen = tuple(
        shape if value is None or _is_one(value) else _in_memory(shape, block)
        for value, shape in zip(node.inputs, inputs, strict=True)
    )
    return seen, tuple(_in_memory(shape, block) for shape in outputs)


def _shown_blocked(
    node: ir.Node,
    inputs: tuple[Dims | None, ...],
    outputs: tuple[Dims | None, ...],
    block: int,
) -> Shown:
    """``shown`` of an operator on blocked tensors."""
    match node.op_type:
        case "ReorderOutput":
            plain = _channels_apart(node, outputs[0], block)
            return (_in_memory(inputs[0], block),), (plain,)
        case "ReorderInput":
            plain = _channels_apart(node, inputs[0], block)
            return (plain,), (_in_memory(outputs[0], block),)
        case "GlobalAveragePool":
            return (_in_memory(inputs[0], block),), (_in_memory(outputs[0], block),)
        case "Conv" if is_scaling(node):
            seen = (_in_memory if k in (0, 3) else _in_blocks for k in range(len(inputs)))
            data = tuple(f(shape, block) for f, shape in zip(seen, inputs, strict=True))
            return data, (_in_memory(outputs[0], block),)
    return inputs, outputs


def is_scaling(node: ir.Node) -> bool:
    """Whether a blocked convolution multiplies each channel by a number of its own."""
    filters = _dims(node.inputs[1]) if len(node.inputs) > 1 else None
    if node.domain != NCHWC or node.op_type != "Conv" or filters is None:
        return False
    strides = node.attributes.get_ints("strides", ())
    pads = node.attributes.get_ints("pads", ())
    alone = filters == (node.attributes.get_int("group", 1), 1, 1, 1)
    return alone and all(n == 1 for n in strides) and not any(pads)


def _in_blocks(shape: Dims | None, block: int) -> Dims | None:
    """The shape of one number for each channel, in blocks."""
    if shape is None or not isinstance(shape[0], int):
        return None
    return (shape[0] // block, block)


def _dims(value: ir.Value | None) -> Dims | None:
    return None if value is None else dims(value)


def _in_memory(shape: Dims | None, block: int) -> Dims | None:
    """The memory shape of a blocked tensor of shape (N, C, H, W)."""
    return None if shape is None else blocked_shape(shape, block)


def _channels_apart(node: ir.Node, shape: Dims | None, block: int) -> Dims | None:
    """The plain shape next to a change of layout, with whole blocks of channels apart."""
    at = -1 if node.attributes.get_int("channels_last", 0) else 1
    if shape is None or len(shape) != 4 or not isinstance(channels := shape[at], int):
        return shape
    if channels % block:
        return shape
    apart = (channels // block, block)
    return (*shape[:-1], *apart) if at == -1 else (shape[0], *apart, *shape[2:])


def _carriers(node: ir.Node) -> list[ir.Value]:
    """The inputs whose layout decides that of the output."""
    if node.domain == NCHWC or len(node.outputs) != 1:
        return []
    return [v for v in node.inputs if v is not None and v.const_value is None and dims(v)]


def _made_by(node: ir.Node, value: ir.Value) -> int:
    """The block of what ``node`` makes, given those of its inputs."""
    shape = dims(value)
    if shape is None or len(shape) != 4 or not isinstance(shape[1], int):
        return 0
    if node.domain == NCHWC:
        found = 0 if node.op_type == "ReorderOutput" else block_of_node(node)
    elif node.op_type == "Reshape" and node.domain in STANDARD:
        found = _put_together(node, shape)
    elif node.op_type == "Concat" and node.domain in STANDARD:
        axis = node.attributes.get_int("axis", 0)
        found = _shared(_carriers(node)) if axis == 1 else 0
    else:
        found = _shared(_carriers(node)) if keeps_layout(node) else 0
    return found if found and shape[1] % found == 0 else 0


def keeps_layout(node: ir.Node) -> bool:
    """Whether the operands of ``node`` are of its output's shape, or one element each."""
    shape = dims(node.outputs[0])
    return all(dims(v) == shape or _is_one(v) for v in node.inputs if v is not None)


def _is_one(value: ir.Value) -> bool:
    return all(size == 1 for size in dims(value) or (0,))


def _shared(values: list[ir.Value]) -> int:
    """The one block of all ``values``."""
    blocks = {v.meta.get(_CACHE, 0) for v in values if not _is_one(v)}
    return blocks.pop() if len(blocks) == 1 else 0


def _put_together(node: ir.Node, shape: Dims) -> int:
    """The block of a Reshape from a memory shape back to (N, C, H, W)."""
    source = dims(node.inputs[0]) if node.inputs[0] is not None else None
    if source is None or len(source) != 5 or not isinstance(source[-1], int) or source[-1] < 8:
        return 0
    block = source[-1]
    channels = shape[1]
    assert isinstance(channels, int)
    fits = channels % block == 0 and source == blocked_shape(shape, block)
    return block if fits else 0
