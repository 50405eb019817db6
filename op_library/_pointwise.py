"""Operators whose output elements need one element of each input: broadcasting, done once.

The value of an operator is a template: ``{0}``, ``{1}`` stand for the inputs at the output's
point, ``{T}`` for the output's element type, and attributes stand under their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from op_library._text import (
    at,
    attribute,
    broadcast,
    definition,
    loops,
    needed,
    only_output,
    statement,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import TensorType

Templates: TypeAlias = Mapping[str, str]


def parameters(call: OpCall, inputs: Sequence[str]) -> dict[str, TensorType | None]:
    """Names for the inputs of a node: ``inputs`` if given, else ``X``, or ``A``, ``B``, ..."""
    count = len(call.inputs)
    if not inputs:
        inputs = (
            ("X",) if count == 1 else "ABCD" if count <= 4 else [f"X{k}" for k in range(count)]
        )
    return dict(zip(inputs, call.inputs, strict=False))


def pointwise(
    call: OpCall,
    value: str,
    lets: Templates | None = None,
    inputs: Sequence[str] = (),
    **words: str,
) -> str:
    """The definition of an operator whose output is ``value`` at every point.

    Args:
        call: The node.
        value: Template of the right side.
        lets: Templates of named subexpressions.
        inputs: Names of the inputs.
        words: What other placeholders stand for.
    """
    output = only_output(call)
    point = loops(output.shape)
    params = parameters(call, inputs)
    operands = [
        at(name, broadcast(type_, point)) if type_ else "" for name, type_ in params.items()
    ]
    words["T"] = output.dtype.tc

    def fill(template: str) -> str:
        return template.format(*operands, **words)

    named = {name: fill(text) for name, text in (lets or {}).items()}
    body = statement("Y", point, fill(value), lets=named)
    return definition(call, params, {"Y": output}, [body])


@dataclass(frozen=True, slots=True)
class Row:
    """An operator that is one scalar expression.

    Attributes:
        since: First opset the row holds for.
        value: Template of the result.
        integer: Template for integer inputs, where it differs.
        attributes: Float attributes that the templates mention, with their defaults.
        lets: Templates of named subexpressions.
        inputs: Names of the inputs.
        domain: The operator's domain.
    """

    since: int
    value: str
    integer: str | None = None
    attributes: Mapping[str, float] = field(default_factory=dict)
    lets: Templates = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    domain: str = ""

    def lower(self, call: OpCall) -> str:
        """The definition of a node of this operator."""
        words = {name: attribute(call, name, value) for name, value in self.attributes.items()}
        use_integer = self.integer is not None and not needed(call, 0).dtype.is_float
        value = self.integer if use_integer and self.integer is not None else self.value
        return pointwise(call, value, self.lets, self.inputs, **words)


def register(table: Mapping[str, Row]) -> None:
    """Register every row of a table under its operator's name."""
    for op_type, row in table.items():
        onnx_op(op_type, since=row.since, kind=Kind.ELEMENTWISE, domain=row.domain)(row.lower)


def chain(call: OpCall, join: Callable[[str, str], str]) -> str:
    """``join`` folded over placeholders for all inputs, the first innermost.

    Raises:
        UnsupportedError: There is no input.
    """
    if not call.inputs:
        raise UnsupportedError(f"{call.op_type} without inputs")
    value = "{0}"
    for k in range(1, len(call.inputs)):
        value = join(value, f"{{{k}}}")
    return value
