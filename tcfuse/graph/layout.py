"""Which values ONNX Runtime keeps in its blocked (NCHWc) layout on the CPU.

Its convolutions work on blocks of channels and hand blocked tensors to each other through the
few operators that keep them blocked.  A fused node reads and writes plain tensors, so one put
between two convolutions costs a reorder of every blocked value it touches.  That price is known
before anything is compiled, and it decides whether a region between convolutions can win.

Source: the rules of ONNX Runtime's NCHWc transformer as its optimized models show them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from tcfuse.graph.blocked import NCHWC
from tcfuse.graph.cost import RESIZES
from tcfuse.graph.legality import is_fixed
from tcfuse.graph.machine import MACHINE, Machine
from tcfuse.graph.shapes import dims
from tcfuse.graph.traffic import n_bytes

BLOCK = 8
"""Channels in a block (16 with AVX-512; a multiple of 16 is one of 8)."""

POOLS = frozenset({"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"})
UNARY = frozenset({"BatchNormalization", "Relu", "Sigmoid", "Tanh"})
CONV_EPILOGUES = frozenset({"Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh"})
BINARY = frozenset({"Add", "Mul", "Sum"})


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What is known of the values of one graph as ONNX Runtime runs it.

    Attributes:
        folded: Nodes that only constants go into; ONNX Runtime replaces them by constants.
        blocked: Values in the blocked layout.
        open: Those that come out of a convolution that can still take an epilogue.
        final: The graph is what ONNX Runtime has made of a model: what it fuses is fused, and
            changes of layout are operators.
    """

    folded: Collection[ir.Node] = frozenset()
    blocked: Collection[ir.Value] = frozenset()
    open: Collection[ir.Value] = frozenset()
    final: bool = False

    def is_fixed(self, value: ir.Value) -> bool:
        """Whether ``value`` is a constant by the time the model runs."""
        return is_fixed(value) or value.producer() in self.folded

    def takes_epilogue(self, value: ir.Value | None) -> bool:
        """Whether the only node that reads ``value`` can become part of a convolution."""
        return value in self.open and value is not None and len(value.uses()) == 1


def surroundings(nodes: Iterable[ir.Node], folded: Collection[ir.Node]) -> Surroundings:
    """What is known when ONNX Runtime runs ``nodes``, given in topological order."""
    nodes = list(nodes)
    if any(node.domain == NCHWC for node in nodes):
        return Surroundings(folded, final=True)
    blocked: set[ir.Value] = set()
    opened: set[ir.Value] = set()
    around = Surroundings(folded, blocked, opened)
    for node in nodes:
        rule = RULES.get(node.op_type)
        if rule is None or not node.outputs or not rule(node, around):
            continue
        blocked.add(node.outputs[0])
        if node.op_type == "Conv" or _is_folded_into_conv(node, around):
            opened.add(node.outputs[0])
    return around


def wants_blocked(node: ir.Node, around: Surroundings) -> bool:
    """Whether ``node`` takes its first input blocked, and reorders it otherwise."""
    return _is_blocked_conv(node, around) or (
        node.op_type in POOLS and _channels(node) % BLOCK == 0
    )


def reorder_us(
    members: Collection[ir.Node],
    around: Surroundings,
    machine: Machine = MACHINE,
    sizes: Mapping[str, int] | None = None,
) -> tuple[float, float]:
    """Time of the reorders at and in a region: as ONNX Runtime runs it, and with it fused."""
    native = fused = 0.0
    blocked = around.blocked
    if not blocked:
        return native, fused
    made = {v for node in members for v in node.outputs}
    touched = dict.fromkeys(v for node in members for v in (*node.inputs, *node.outputs) if v)
    for value in touched:
        if value not in made and value not in blocked:
            continue
        moved = 2 * n_bytes(value, sizes)
        cost = moved / min(machine.reorder_rate, machine.copy_rate(moved))
        readers = {user for user, _ in value.uses()}
        plain = {user for user in readers if not _keeps_blocked(user, around)}
        if value in made:
            taken = any(wants_blocked(user, around) for user in readers if user not in members)
            is_plain = bool(plain) or value.is_graph_output()
            native += cost if (is_plain if value in blocked else taken) else 0
            fused += cost if taken else 0
        elif not plain - set(members):
            native += cost if plain else 0
            fused += cost
    return native, fused


def _keeps_blocked(node: ir.Node, around: Surroundings) -> bool:
    """Whether ``node`` reads a blocked value without a reorder."""
    return wants_blocked(node, around) or any(v in around.blocked for v in node.outputs)


def _channels(node: ir.Node) -> int:
    """Channels of a four-dimensional first output; -1 when there is no such thing."""
    shape = dims(node.outputs[0])
    if shape is None or len(shape) != 4 or not isinstance(shape[1], int):
        return -1
    return shape[1]


def _is_blocked_conv(node: ir.Node, around: Surroundings) -> bool:
    """A float convolution of two spatial dimensions with constant weights."""
    if node.op_type != "Conv" or node.outputs[0].dtype is not ir.DataType.FLOAT:
        return False
    channels = _channels(node)
    if channels < 0 or node.inputs[1] is None or not around.is_fixed(node.inputs[1]):
        return False
    return node.attributes.get_int("group", 1) == 1 or channels % BLOCK == 0


def _is_folded_into_conv(node: ir.Node, around: Surroundings) -> bool:
    """Whether ``node`` combines a convolution with constants."""
    others = [v for v in node.inputs if v is not None and v not in around.open]
    taken = [v for v in node.inputs if around.takes_epilogue(v)]
    foldable = node.op_type in BINARY or node.op_type == "BatchNormalization"
    return foldable and len(taken) == 1 and all(around.is_fixed(v) for v in others)


def _same_layout(node: ir.Node, around: Surroundings) -> bool:
    """All operands are blocked and of one shape, or a constant is folded into a convolution."""
    if all(v in around.blocked for v in node.inputs):
        return len({dims(v) for v in node.inputs if v is not None}) == 1
    return _is_folded_into_conv(node, around)


def _first_is_blocked(node: ir.Node, around: Surroundings) -> bool:
    """The operator keeps the layout of its first input."""
    return node.inputs[0] in around.blocked


def _conv_epilogue(node: ir.Node, around: Surroundings) -> bool:
    """An activation that becomes part of the convolution, or keeps the layout by itself."""
    value = node.inputs[0]
    return around.takes_epilogue(value) or (node.op_type in UNARY and value in around.blocked)


def _concat(node: ir.Node, around: Surroundings) -> bool:
    """Blocked operands put one after the other along the channels, in whole blocks."""
    makers = [v.producer() for v in node.inputs if v is not None]
    return (
        node.attributes.get_int("axis", 0) == 1
        and all(m is not None and _channels(m) % BLOCK == 0 for m in makers)
        and all(v in around.blocked for v in node.inputs)
    )


Rule = Callable[[ir.Node, Surroundings], bool]

RULES: Mapping[str, Rule] = {
    "Conv": _is_blocked_conv,
    "Concat": _concat,
    **dict.fromkeys(BINARY, _same_layout),
    **dict.fromkeys(POOLS | RESIZES | {"BatchNormalization"}, _first_is_blocked),
    **dict.fromkeys(CONV_EPILOGUES, _conv_epilogue),
}
