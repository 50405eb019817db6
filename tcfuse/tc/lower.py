"""One ONNX node as statements: its definition's text, parsed, with every range resolved."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import onnx_ir as ir

from tcfuse.errors import TcError, UnsupportedError
from tcfuse.graph.constants import constant_tensor
from tcfuse.opdef import OpCall, OpDef
from tcfuse.tc.ast import Binary, Comprehension, Expr, Var
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.linear import linear_of, linear_of_size
from tcfuse.tc.parser import parse
from tcfuse.tc.pool import Pool
from tcfuse.tc.sema import check
from tcfuse.types import TensorType

MOST_ELEMENTS = 4096  # of a constant that a definition may see

# What a definition may meet in a node whose inputs or attributes do not fit each other.
_MALFORMED = (ArithmeticError, AssertionError, IndexError, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Lowered:
    """The statements of a definition; lets expanded, expressions not in any pool yet.

    Attributes:
        inputs: Names of the parameters, in order.
        outputs: Names of the returned tensors, in order.
        tensors: Type of every tensor.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, TensorType]
    body: tuple[Comprehension, ...]


def lower(definition: OpDef, call: OpCall) -> Lowered:
    """The statements of ``call``.

    Raises:
        UnsupportedError: The definition does not cover this call.
    """
    try:
        text = definition.lower(call)
    except _MALFORMED as error:
        given = ", ".join("none" if type_ is None else str(type_) for type_ in call.inputs)
        raise UnsupportedError(f"{call.op_type} does not take ({given})") from error
    return _lower(call.op_type, text)


@lru_cache(maxsize=2048)
def _lower(op_type: str, text: str) -> Lowered:
    try:
        checked = check(parse(text, f"<{op_type}>"), affine=False)
    except TcError as error:
        raise UnsupportedError(f"{op_type}: {error.message}") from error
    if _open_conditions(checked) or checked.origins or checked.inout:
        raise UnsupportedError(f"{op_type} holds under conditions on sizes only")
    body = tuple(
        replace(s.comprehension, ranges=s.ranges, value=_expanded(s.comprehension), lets=())
        for s in checked.statements
    )
    return Lowered(checked.inputs, checked.outputs, dict(checked.tensors), body)


def _open_conditions(checked: CheckedDef) -> list[Binary]:
    """The preconditions that do not follow from the shapes of inputs and outputs."""
    params = (*checked.definition.params, *checked.definition.returns)
    never_negative = {linear_of_size(s) for p in params if p.type for s in p.type.shape}
    found: list[Binary] = []
    for condition in checked.preconditions:
        assert isinstance(condition, Binary)
        less, more = linear_of(condition.left, {}), linear_of(condition.right, {})
        if less is None or more is None or more - less not in never_negative:
            found.append(condition)
    return found


def _expanded(statement: Comprehension) -> Expr:
    """The value with lets replaced by what they stand for, as a shared graph."""
    pool = Pool()
    values: dict[str, Expr] = {}

    def rule(node: Expr) -> Expr:
        return values.get(node.name, node) if isinstance(node, Var) else node

    for let in statement.lets:
        values[let.name] = pool.rewrite(let.value, rule, {})
    return pool.rewrite(statement.value, rule, {})


def digest(definition: OpDef, call: OpCall) -> str:
    """A name for everything that determines the text of ``call``."""
    hasher = hashlib.sha256()
    head = (definition.domain, definition.op_type, definition.since, call.opset)
    hasher.update(repr((head, call.inputs, call.outputs)).encode())
    for name in sorted(call.attributes):
        hasher.update(f"{name}={_content(call.attributes[name])}".encode())
    for constant in call.constants:
        hasher.update(_content(constant).encode())
    return hasher.hexdigest()


def _content(value: Any) -> str:
    """A text that differs where values do."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tobytes().hex()}"
    return repr(value)


def attributes_of(node: ir.Node) -> dict[str, Any]:
    """The attributes of ``node`` as an ``OpCall`` holds them.

    Raises:
        UnsupportedError: One refers to a function's attribute, or holds a graph.
    """
    found: dict[str, Any] = {}
    for name, attribute in node.attributes.items():
        if attribute.is_ref() or attribute.type in (
            ir.AttributeType.GRAPH,
            ir.AttributeType.GRAPHS,
        ):
            raise UnsupportedError(f"attribute {name} of {node.op_type} is not a plain value")
        value = attribute.value
        if attribute.type is ir.AttributeType.TENSOR:
            value = value.numpy()
        elif isinstance(value, Sequence) and not isinstance(value, str):
            value = tuple(value)
        found[name] = value
    return found


def small_constant(value: ir.Value | None) -> np.ndarray | None:
    """The array of a constant that a definition may see."""
    tensor = constant_tensor(value)
    if tensor is None or tensor.size > MOST_ELEMENTS:
        return None
    return tensor.numpy()
