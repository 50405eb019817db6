"""Which values ONNX Runtime keeps in its blocked (NCHWc) layout on the CPU.

Its convolutions work on blocks of channels and hand blocked tensors to each other through the
few operators that keep them blocked.  A fused node reads and writes plain tensors, so one put
between two convolutions costs a reorder of every blocked value it touches.  That price is known
before anything is compiled, and it decides whether a region between convolutions can win.

Source: the rules of ONNX Runtime's NCHWc transformer as its optimized models show them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import onnx_ir as ir

from tcfuse.graph.cost import MACHINE, n_bytes
from tcfuse.graph.legality import is_fixed
from tcfuse.graph.shapes import dims

BLOCK = 8
"""Channels in a block (16 with AVX-512; a multiple of 16 is one of 8)."""

REORDER_RATE = 20e3
"""Bytes in and out a microsecond of a change of layout, as measured in whole models."""

POOLS = frozenset({"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"})
RESIZES = frozenset({"Resize", "Upsample"})
UNARY = frozenset({"BatchNormalization", "Relu", "Sigmoid", "Tanh"})
CONV_EPILOGUES = frozenset({"Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh"})
BINARY = frozenset({"Add", "Mul", "Sum"})


def blocked_values(nodes: Iterable[ir.Node]) -> frozenset[ir.Value]:
    """The values that are blocked when ONNX Runtime runs ``nodes``, in topological order."""
    blocked: set[ir.Value] = set()
    for node in nodes:
        rule = RULES.get(node.op_type)
        if rule is not None and node.outputs and rule(node, blocked):
            blocked.add(node.outputs[0])
    return frozenset(blocked)


def wants_blocked(node: ir.Node) -> bool:
    """Whether ``node`` takes its first input blocked, and reorders it otherwise."""
    return _is_blocked_conv(node, ()) or (
        node.op_type in POOLS and _channels(node) % BLOCK == 0
    )


def reorder_us(
    members: Collection[ir.Node], blocked: Collection[ir.Value]
) -> tuple[float, float]:
    """Time of the reorders at and in a region: as ONNX Runtime runs it, and with it fused."""
    native = fused = 0.0
    if not blocked:
        return native, fused
    made = {v for node in members for v in node.outputs}
    touched = dict.fromkeys(v for node in members for v in (*node.inputs, *node.outputs) if v)
    for value in touched:
        if value not in made and value not in blocked:
            continue
        moved = 2 * n_bytes(value)
        cost = moved / min(REORDER_RATE, MACHINE.copy_rate(moved))
        readers = {user for user, _ in value.uses()}
        plain = {user for user in readers if not _keeps_blocked(user, blocked)}
        if value in made:
            taken = any(wants_blocked(user) for user in readers if user not in members)
            is_plain = bool(plain) or value.is_graph_output()
            native += cost if (is_plain if value in blocked else taken) else 0
            fused += cost if taken else 0
        elif not plain - set(members):
            native += cost if plain else 0
            fused += cost
    return native, fused


def _keeps_blocked(node: ir.Node, blocked: Collection[ir.Value]) -> bool:
    """Whether ``node`` reads a blocked value without a reorder."""
    return wants_blocked(node) or any(v in blocked for v in node.outputs)


def _channels(node: ir.Node) -> int:
    """Channels of a four-dimensional first output; -1 when there is no such thing."""
    shape = dims(node.outputs[0])
    if shape is None or len(shape) != 4 or not isinstance(shape[1], int):
        return -1
    return shape[1]


def _is_blocked_conv(node: ir.Node, _: Collection[ir.Value]) -> bool:
    """A float convolution of two spatial dimensions with constant weights."""
    if node.op_type != "Conv" or node.outputs[0].dtype is not ir.DataType.FLOAT:
        return False
    channels = _channels(node)
    if channels < 0 or node.inputs[1] is None or not is_fixed(node.inputs[1]):
        return False
    return node.attributes.get_int("group", 1) == 1 or channels % BLOCK == 0


def _same_layout(node: ir.Node, blocked: Collection[ir.Value]) -> bool:
    """All operands are blocked and of one shape, or a constant is folded into a convolution."""
    shapes = {dims(v) for v in node.inputs if v is not None}
    if all(v in blocked for v in node.inputs):
        return len(shapes) == 1
    others = [v for v in node.inputs if v is not None and v not in blocked]
    maker = next((v.producer() for v in node.inputs if v is not None and v in blocked), None)
    return (
        maker is not None
        and maker.op_type == "Conv"
        and len(maker.outputs[0].uses()) == 1
        and all(is_fixed(v) for v in others)
    )


def _first_is_blocked(node: ir.Node, blocked: Collection[ir.Value]) -> bool:
    """The operator keeps the layout of its first input."""
    return node.inputs[0] in blocked


def _conv_epilogue(node: ir.Node, blocked: Collection[ir.Value]) -> bool:
    """An activation that becomes part of the convolution, or keeps the layout by itself."""
    value = node.inputs[0]
    if value is None or value not in blocked:
        return False
    maker = value.producer()
    fused = maker is not None and maker.op_type == "Conv" and len(value.uses()) == 1
    return fused or node.op_type in UNARY


def _concat(node: ir.Node, blocked: Collection[ir.Value]) -> bool:
    """Blocked operands put one after the other along the channels, in whole blocks."""
    makers = [v.producer() for v in node.inputs if v is not None]
    whole = all(m is not None and _channels(m) % BLOCK == 0 for m in makers)
    return (
        whole
        and node.attributes.get_int("axis", 0) == 1
        and all(v in blocked for v in node.inputs)
    )


Rule = Callable[[ir.Node, Collection[ir.Value]], bool]

RULES: Mapping[str, Rule] = {
    "Conv": _is_blocked_conv,
    "Concat": _concat,
    **dict.fromkeys(BINARY, _same_layout),
    **dict.fromkeys(POOLS | RESIZES | {"BatchNormalization"}, _first_is_blocked),
    **dict.fromkeys(CONV_EPILOGUES, _conv_epilogue),
}
