"""Operators on plain values as operators on the blocked values that these are made of.

Elementwise operators do the same in any order of the elements; pools, Pad, Concat and operands
that are one number for each channel have a blocked counterpart.  A rule makes the nodes for it,
or says with ``None`` that there is none.

The channels that fill the last block hold numbers that depend on no input: an activation of
zero, and what constants make of it.  The filters behind have zeros for them, so any finite
number will do; operators that could make infinity of it keep to the plain value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from tcfuse.graph.blocked import NCHWC, STANDARD
from tcfuse.graph.blocked_nodes import BlockedNodes
from tcfuse.graph.constants import constant_value
from tcfuse.graph.symbols import Dims, dims, equal

Rule: TypeAlias = Callable[[BlockedNodes, ir.Node], "ir.Value | None"]

FINITE = frozenset(
    {
        *("Abs", "Add", "Celu", "Clip", "Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish"),
        *("LeakyRelu", "Max", "Min", "Mish", "Mul", "Neg", "QuickGelu", "Relu", "Selu"),
        *("Sigmoid", "Softplus", "Softsign", "Sub", "Sum", "Tanh", "ThresholdedRelu"),
    }
)
"""Elementwise operators that make moderate numbers of moderate ones."""

MODERATE = (1e-4, 1e4)
"""Magnitudes of constants that do not change that, but for the zero."""

POOLS = frozenset({"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"})


def rule_of(node: ir.Node) -> Rule | None:
    """How ``node`` may work on blocked values, if it may."""
    if node.domain not in (*STANDARD, "com.microsoft") or not node.outputs:
        return None
    result = node.outputs[0]
    shape = dims(result)
    is_image = shape is not None and len(shape) == 4 and isinstance(shape[1], int)
    if not is_image or result.dtype is not ir.DataType.FLOAT:
        return None
    return RULES.get(node.op_type)


def shrinks(node: ir.Node) -> bool:
    """Whether a change of layout is cheaper behind ``node`` than before it."""
    return node.op_type in POOLS or node.op_type == "ReduceMean"


def twin_of(value: ir.Value | None) -> ir.Value | None:
    """The blocked value that a plain one is made of."""
    node = value.producer() if value is not None else None
    if node is None or node.domain != NCHWC or node.op_type != "ReorderOutput":
        return None
    return None if node.attributes.get_int("channels_last", 0) else node.inputs[0]


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """One operand of an elementwise operator on blocked values.

    Attributes:
        given: As it is.
        twin: The blocked value it is made of.
        array: What it is, if it is constant.
        per_channel: It is one number for each channel, or for each of every image.
    """

    given: ir.Value
    twin: ir.Value | None
    array: np.ndarray | None
    per_channel: bool = False

    @property
    def is_single(self) -> bool:
        """Whether it is one number."""
        return not self.per_channel and self.twin is None

    @property
    def is_moderate(self) -> bool:
        """Whether it makes no number large or small."""
        if self.array is None:
            return not self.is_single
        sizes = np.abs(self.array)
        return bool(np.all((sizes == 0) | ((MODERATE[0] <= sizes) & (sizes <= MODERATE[1]))))

    def apart(self, make: BlockedNodes, node: ir.Node) -> ir.Value:
        """In the memory shape, or as it is when it is one number."""
        if self.is_single:
            return self.given
        if self.array is not None:
            return make.channel_constant(self.array, 1.0 if node.op_type == "Div" else 0.0)
        return make.apart(self.twin or make.reorder_input(self.given, node), node)


def operand_of(value: ir.Value, shape: Dims) -> Operand | None:
    """What is known of an operand of an operator whose output has that shape.

    Returns:
        ``None`` when it cannot be had blocked.
    """
    own, array, twin = dims(value), constant_value(value), twin_of(value)
    if own is None or value.dtype is not ir.DataType.FLOAT:
        return None
    if all(size == 1 for size in own):
        return Operand(value, None, array)
    if _same(own, shape):
        return Operand(value, twin, array) if twin is not None else None
    if not _is_per_channel(own, shape):
        return None
    if array is not None:
        fits = array.size == shape[1]
        return Operand(value, None, array, per_channel=True) if fits else None
    return Operand(value, twin, None, per_channel=True) if len(own) == 4 else None


def _is_per_channel(own: Dims, shape: Dims) -> bool:
    """Whether a shape is one number for each channel, or for each of every image."""
    if len(own) < 3 or own[-2:] != (1, 1) or own[-3] != shape[1]:
        return False
    return len(own) == 3 or own[0] == 1 or equal(own[0], shape[0])


def elementwise(make: BlockedNodes, node: ir.Node) -> ir.Value | None:
    """All operands blocked, and as they lie in memory where one is broadcast."""
    shape = dims(node.outputs[0]) or ()
    padded, operands = make.padded(shape), list[Operand | None]()
    for value in node.inputs:
        operand = operand_of(value, shape) if value is not None else None
        if value is not None and operand is None:
            return None
        operands.append(operand)
    known = [operand for operand in operands if operand is not None]
    if all(operand.per_channel or operand.is_single for operand in known):
        return None
    if padded != shape and not _stays_finite(node, known):
        return None
    attributes = node.attributes.values()
    if not any(operand.per_channel for operand in known):
        values = [None if o is None else o.twin or o.given for o in operands]
        return make.node(node.domain, node.op_type, values, attributes, padded, node)
    values = [None if o is None else o.apart(make, node) for o in operands]
    sizes = make.apart_shape(padded)
    return make.together(
        make.node(node.domain, node.op_type, values, attributes, sizes, node), node
    )


def _stays_finite(node: ir.Node, operands: list[Operand]) -> bool:
    """Whether what fills the last block stays moderate."""
    if not all(operand.is_moderate for operand in operands):
        return False
    if node.op_type == "Div":
        divisor = operands[1].array
        return divisor is not None and bool(np.all(divisor != 0))
    return node.op_type in FINITE


def pool(make: BlockedNodes, node: ir.Node) -> ir.Value | None:
    """The same pool of blocked values."""
    twin, shape = twin_of(node.inputs[0]), dims(node.outputs[0])
    by_columns = bool(node.attributes.get_int("storage_order", 0))
    if twin is None or shape is None or by_columns or len(node.outputs) > 1:
        return None
    attributes = node.attributes.values()
    return make.node(NCHWC, node.op_type, [twin], attributes, make.padded(shape), node)


def mean(make: BlockedNodes, node: ir.Node) -> ir.Value | None:
    """The mean of all pixels."""
    twin, shape, axes = twin_of(node.inputs[0]), dims(node.outputs[0]), _axes(node)
    if twin is None or shape is None or sorted(axis % 4 for axis in axes) != [2, 3]:
        return None
    return make.node(NCHWC, "GlobalAveragePool", [twin], [], make.padded(shape), node)


def _axes(node: ir.Node) -> tuple[int, ...]:
    """The axes of a reduction; none where they are not known."""
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        axes = constant_value(node.inputs[1])
        return () if axes is None else tuple(int(axis) for axis in axes.reshape(-1))
    return tuple(node.attributes.get_ints("axes", ()))


def pad(make: BlockedNodes, node: ir.Node) -> ir.Value | None:
    """Constants around the pixels."""
    twin, shape, pads = twin_of(node.inputs[0]), dims(node.outputs[0]), _pads(node)
    if twin is None or pads is None or shape is None:
        return None
    top, left, bottom, right = pads
    wide = make.constant(np.array([0, 0, top, left, 0, 0, 0, bottom, right, 0], np.int64))
    inputs = [make.apart(twin, node), wide, *node.inputs[2:3]]
    sizes = make.apart_shape(make.padded(shape))
    attributes = node.attributes.values()
    return make.together(make.node("", "Pad", inputs, attributes, sizes, node), node)


def _pads(node: ir.Node) -> list[int] | None:
    """Rows and columns before and behind the pixels, where nothing else is padded."""
    given = constant_value(node.inputs[1]) if len(node.inputs) > 1 else None
    fill = node.inputs[2] if len(node.inputs) > 2 else None
    value = np.zeros(1) if fill is None else constant_value(fill)
    by_axes = any(v is not None for v in node.inputs[3:])
    if given is None or given.size != 8 or by_axes or value is None:
        return None
    pads = given.reshape(2, 4)
    if pads[:, :2].any() or not np.isfinite(value).all():
        return None
    return [int(n) for n in pads[:, 2:].reshape(-1)]


def concat(make: BlockedNodes, node: ir.Node) -> ir.Value | None:
    """Whole blocks of channels one after the other."""
    shape, twins = dims(node.outputs[0]), [twin_of(value) for value in node.inputs]
    pairs = zip(node.inputs, twins, strict=True)
    whole = all(v and t and _same(dims(v) or (), dims(t) or ()) for v, t in pairs)
    if shape is None or node.attributes.get_int("axis", 0) not in (1, -3) or not whole:
        return None
    return make.node("", "Concat", twins, [ir.AttrInt64("axis", 1)], shape, node)


def _same(a: Dims, b: Dims) -> bool:
    """Whether two shapes are equal for all sizes."""
    return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(FINITE | {"Div"}, elementwise),
    **dict.fromkeys(POOLS, pool),
    "Concat": concat,
    "Pad": pad,
    "ReduceMean": mean,
}
