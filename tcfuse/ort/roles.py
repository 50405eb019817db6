"""What integers may be, by what a kernel's original operators do with them.

Places stay inside the tables they index and divisors away from zero: out of range the original
operators are undefined too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcfuse.targets.base import Interface
from tcfuse.types import Size

if TYPE_CHECKING:
    import onnx_ir as ir

_PASSES_ON = {
    *("Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Slice"),
    *("Split", "Expand", "Tile", "Concat"),
}
_INDEX_INPUTS = {
    **dict.fromkeys(("Gather", "GatherElements", "GatherND", "ReverseSequence"), 1),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), 1),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), 1),
    "TensorScatter": 2,
}
"""Which input of an operator holds places of its first input."""

_FROM_THE_FRONT = frozenset(
    {
        *("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "ReverseSequence"),
        "TensorScatter",
    }
)
"""Operators that do not count such places from the end."""


@dataclass(frozen=True, slots=True)
class Role:
    """What an integer input may hold: ``[low, high)``, never zero when ``nonzero``."""

    low: int
    high: Size
    nonzero: bool = False


def integer_roles(function: ir.Function | None, interface: Interface) -> dict[int, Role]:
    """What is known about each integer input, by position."""
    found: dict[int, Role] = {}
    integers = [i for i, port in enumerate(interface.inputs) if not port.type.dtype.is_float]
    if function is None:
        return found
    divides = any(
        node.op_type in ("Div", "Mod", "Pow", "BitShift") for node in function.all_nodes()
    )
    shapes: dict[str, tuple[Size, ...]] = {
        str(value.name): port.type.shape
        for value, port in zip(function.inputs, interface.inputs, strict=False)
    }
    for position in integers:
        if position >= len(function.inputs):
            continue
        if (role := _index_role(function.inputs[position], shapes)) is not None:
            found[position] = role
        elif divides:
            found[position] = Role(1, 8, nonzero=True)
    return found


def _index_role(value: ir.Value, shapes: Mapping[str, tuple[Size, ...]]) -> Role | None:
    """What ``value`` may hold where it indexes something; ``None`` where it does not."""
    queue, seen = [value], {value}
    while queue:
        for node, position in queue.pop().uses():
            if position == _INDEX_INPUTS.get(node.op_type):
                table = node.inputs[0]
                shape = shapes.get(str(table.name)) if table is not None else None
                size = 1 if shape is None else _places(node, shape)
                counts_back = size != 1 and node.op_type not in _FROM_THE_FRONT
                return Role(-1 if counts_back else 0, size)
            if node.op_type in _PASSES_ON and position == 0:
                queue.extend(v for v in node.outputs if v not in seen)
                seen.update(node.outputs)
    return None


def _places(node: ir.Node, shape: tuple[Size, ...]) -> Size:
    """How many places of a table of that shape the index of ``node`` tells apart, or fewer."""
    match node.op_type:
        case "GatherND" | "ScatterND":
            known = [size for size in shape if isinstance(size, int)]
            return min(known) if known and len(known) == len(shape) else 1
        case "NegativeLogLikelihoodLoss" | "SoftmaxCrossEntropyLoss":
            axis = 1
        case "TensorScatter":
            return 1
        case "ReverseSequence":
            axis = node.attributes.get_int("time_axis", 0)
        case _:
            axis = node.attributes.get_int("axis", 0)
    return shape[axis] if -len(shape) <= axis < len(shape) else 1
