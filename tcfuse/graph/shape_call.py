"""One node as shape rules see it, and the registry of the rules.

A shape rule maps a call to the shapes of the node's outputs, in order; an output whose shape it
does not know is ``None``.  A rule that needs what is not known raises ``UnknownShapeError``.

The *elements* of a value are the numbers in it, when it is a scalar or a vector of at most
``MAX_ELEMENTS``: integers, expressions over sizes, ``None`` for one that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import onnx_ir as ir

from tcfuse.graph.symbols import Dim, Dims

MAX_ELEMENTS = 64
MAX_RANK = 64

Elements: TypeAlias = tuple[Dim | None, ...]
Shapes: TypeAlias = Sequence[Dims | None]


class UnknownShapeError(Exception):
    """A rule cannot say anything; never leaves shape inference."""


class Scope(Protocol):
    """What a call needs to know of the inference it is part of."""

    depth: int

    def shape_of(self, value: ir.Value) -> Dims | None:
        """The shape found so far."""

    def elements_of(self, value: ir.Value) -> Elements | None:
        """The elements found so far."""

    def array_of(self, value: ir.Value) -> np.ndarray | None:
        """The constant value."""

    def fresh(self) -> Dim:
        """A size with a new name."""

    def common(self, candidates: frozenset[Dim]) -> Dim:
        """The one size that broadcasting these different sizes gives."""

    def require(self, a: Dim, b: Dim) -> None:
        """Note that a run is only valid when these sizes are equal."""

    def known(self, value: ir.Value) -> Known:
        """Type, shape and elements found so far."""

    def infer_body(
        self, graph: ir.Graph, inputs: Sequence[Known], *, final: bool
    ) -> list[Known]:
        """Infer a body with these inputs; what is known of its outputs."""


class Known:
    """Element type and shape of a value, and its elements."""

    __slots__ = ("dtype", "elements", "shape")

    def __init__(
        self,
        dtype: ir.DataType | None = None,
        shape: Dims | None = None,
        elements: Elements | None = None,
    ) -> None:
        self.dtype, self.shape, self.elements = dtype, shape, elements


class Call:
    """A node with what is known of its inputs."""

    __slots__ = ("node", "opset", "scope")

    def __init__(self, node: ir.Node, opset: int, scope: Scope) -> None:
        self.node, self.opset, self.scope = node, opset, scope

    def input(self, k: int) -> ir.Value | None:
        """Input ``k``; ``None`` when it is absent."""
        return self.node.inputs[k] if k < len(self.node.inputs) else None

    @property
    def n_outputs(self) -> int:
        """Number of outputs the node names."""
        return len(self.node.outputs)

    def shape(self, k: int) -> Dims:
        """Shape of input ``k``.

        Raises:
            UnknownShapeError: The input is absent or its rank unknown.
        """
        value = self.input(k)
        shape = None if value is None else self.scope.shape_of(value)
        if shape is None:
            raise UnknownShapeError
        return shape

    def shape_or_none(self, k: int) -> Dims | None:
        """Shape of input ``k``; ``None`` when it is absent or unknown."""
        value = self.input(k)
        return None if value is None else self.scope.shape_of(value)

    def elements(self, k: int) -> Elements | None:
        """Elements of input ``k``; ``None`` when it is absent or nothing is known."""
        value = self.input(k)
        return None if value is None else self.scope.elements_of(value)

    def integers(self, k: int) -> tuple[int, ...] | None:
        """Elements of input ``k`` when all are numbers; ``None`` when it is absent.

        Raises:
            UnknownShapeError: The input is there and an element is not known.
        """
        if self.input(k) is None:
            return None
        elements = self.elements(k)
        if elements is None:
            raise UnknownShapeError
        if not all(isinstance(e, int) for e in elements):
            raise UnknownShapeError
        return tuple(e for e in elements if isinstance(e, int))

    def array(self, k: int) -> np.ndarray | None:
        """Value of input ``k`` when it is a constant."""
        value = self.input(k)
        return None if value is None else self.scope.array_of(value)

    def attribute(self, name: str, default: Any = None) -> Any:
        """Attribute ``name`` as a Python value; ``default`` when it is absent."""
        attribute = self.node.attributes.get(name)
        if attribute is None:
            return default
        if attribute.is_ref():
            raise UnknownShapeError
        return attribute.value

    def axis(self, rank: int, default: int = 0, name: str = "axis") -> int:
        """The attribute ``axis`` counted from the front of ``rank`` axes."""
        return normalize_axis(int(self.attribute(name, default)), rank)

    def fresh(self) -> Dim:
        """A size with a new name."""
        return self.scope.fresh()


def normalize_axis(axis: int, rank: int) -> int:
    """``axis`` counted from the front.

    Raises:
        UnknownShapeError: There is no such axis.
    """
    if not -rank <= axis < rank:
        raise UnknownShapeError
    return axis % rank


def vector_length(call: Call, k: int) -> int:
    """Number of elements of input ``k``, which is a vector of sizes.

    Raises:
        UnknownShapeError: It is not known, or larger than any rank.
    """
    (length,) = call.shape(k) or (1,)
    if not isinstance(length, int) or length > MAX_RANK:
        raise UnknownShapeError
    return length


def sizes_input(call: Call, k: int) -> Elements:
    """Elements of input ``k``; ``None`` for each when only their number is known."""
    elements = call.elements(k)
    return (None,) * vector_length(call, k) if elements is None else elements


def axes_of(call: Call, since: int) -> tuple[int, ...] | None:
    """Axes from input 1 from opset ``since`` on, from the attribute before."""
    if call.opset >= since:
        return call.integers(1)
    axes = call.attribute("axes")
    return None if axes is None else tuple(axes)


def needed(call: Call, k: int) -> Elements:
    """Elements of input ``k``.

    Raises:
        UnknownShapeError: Nothing is known.
    """
    elements = call.elements(k)
    if elements is None:
        raise UnknownShapeError
    return elements


ShapeRule: TypeAlias = Callable[[Call], Shapes]
ElementRule: TypeAlias = Callable[[Call], Sequence[Elements | None]]

SHAPE_RULES: dict[str, ShapeRule] = {}
ELEMENT_RULES: dict[str, ElementRule] = {}


def rule_name(call: Call) -> str:
    """What the rules of an operator are registered under: ``Add``, ``com.microsoft::Gelu``."""
    domain = call.node.domain
    return call.node.op_type if domain in ("", "ai.onnx") else f"{domain}::{call.node.op_type}"


def shape_rule(*op_types: str) -> Callable[[ShapeRule], ShapeRule]:
    """Register the decorated rule for these operators (see ``rule_name``)."""

    def register(rule: ShapeRule) -> ShapeRule:
        for op_type in op_types:
            assert op_type not in SHAPE_RULES, f"two shape rules for {op_type}"
            SHAPE_RULES[op_type] = rule
        return rule

    return register


def element_rule(*op_types: str) -> Callable[[ElementRule], ElementRule]:
    """Register the decorated rule for the elements of these operators' outputs."""

    def register(rule: ElementRule) -> ElementRule:
        for op_type in op_types:
            assert op_type not in ELEMENT_RULES, f"two element rules for {op_type}"
            ELEMENT_RULES[op_type] = rule
        return rule

    return register
