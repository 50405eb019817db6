"""The statements of a group's nodes one after the other, over names of this group."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from tcfuse.errors import UnsupportedError
from tcfuse.graph.blocked import shown
from tcfuse.graph.plan import FusionGroup
from tcfuse.graph.symbols import Dims, dims
from tcfuse.opdef import Kind, OpCall, OpDef, find
from tcfuse.tc.ast import Access, Comprehension, Expr
from tcfuse.tc.draft import Draft, View
from tcfuse.tc.literals import literal
from tcfuse.tc.lower import Lowered, attributes_of, digest, lower, small_constant
from tcfuse.tc.pool import Pool
from tcfuse.tc.reshapes import reshapes
from tcfuse.tc.sizes import Sizes
from tcfuse.types import DType, Size, TensorType


class ComposeError(UnsupportedError):
    """A group cannot be composed; ``node`` is the member at fault."""

    def __init__(self, message: str, node: ir.Node) -> None:
        super().__init__(message)
        self.node = node


class TooLargeError(UnsupportedError):
    """A group has too many statements for one kernel; parts of it may do."""


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """A group before any transformation.

    Attributes:
        names: The tensor that holds each value.
        tensors: Type of every tensor; of inputs and outputs in their ONNX shapes.
        baked: A digest of the nodes and of the constants that became part of the text.
    """

    group: FusionGroup
    draft: Draft
    pool: Pool
    sizes: Sizes
    names: Mapping[ir.Value, str]
    tensors: Mapping[str, TensorType]
    baked: str


def build(group: FusionGroup, opsets: Mapping[str, int]) -> Built:
    """The statements and views of ``group``.

    Raises:
        ComposeError: A member has no definition, or one that does not cover it.
    """
    return _Builder(group, opsets).built()


class _Builder:
    """The state after a number of nodes."""

    def __init__(self, group: FusionGroup, opsets: Mapping[str, int]) -> None:
        self.group, self.opsets = group, opsets
        self.pool = Pool()
        self.sizes = Sizes.bind(d for v in group.inputs if (d := dims(v)) is not None)
        self.names = {value: f"x{k}" for k, value in enumerate(group.inputs)}
        self.names |= {value: f"o{k}" for k, value in enumerate(group.outputs)}
        self.tensors: dict[str, TensorType] = {}
        self.literals: dict[ir.Value, Expr | None] = {}
        self.body: list[Comprehension] = []
        self.views: list[View] = []
        self.seen_as: dict[tuple[str, tuple[Size, ...]], str] = {}
        self.baked = hashlib.sha256()

    def built(self) -> Built:
        """Everything, after all nodes."""
        group, names = self.group, self.names
        for value in group.inputs:
            user = next(node for node in group.nodes if value in node.inputs)
            self.tensors[names[value]] = self._type(value, user)
        for position, node in enumerate(group.nodes):
            try:
                self._add(position, node)
            except ComposeError:
                raise
            except UnsupportedError as error:
                raise ComposeError(str(error), node) from error
        draft = Draft(
            tuple(names[v] for v in group.inputs),
            tuple(names[v] for v in group.outputs),
            dict(self.tensors),
            tuple(self.body),
            tuple(self.views),
        )
        baked = self.baked.hexdigest()
        ports = {names[v]: self._type(v, group.nodes[-1]) for v in group.outputs}
        types = {**self.tensors, **ports}
        return Built(group, draft, self.pool, self.sizes, names, types, baked)

    def _add(self, position: int, node: ir.Node) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = self.opsets.get(domain, self.opsets.get(node.domain, 1))
        definition = find(node.op_type, opset, domain)
        call = self._call(node, definition, opset)
        if not any(call.outputs):
            return  # nobody reads what it makes
        self.baked.update(digest(definition, call).encode())
        outputs = [
            self._output(v, t, node) for v, t in zip(node.outputs, call.outputs, strict=True)
        ]
        if definition.kind is Kind.VIEW and not any(call.outputs[1:]):
            source, result = node.inputs[0], outputs[0]
            assert source is not None
            assert result is not None
            self.views.append(View(self._name(source, node), result, position))
            return
        lowered = lower(definition, call)
        given = [
            (v, t)
            for k, (v, t) in enumerate(zip(node.inputs, call.inputs, strict=True))
            if v is not None and t is not None and k not in definition.static
        ]
        self._instantiate(lowered, given, [name for name in outputs if name], position)

    def _call(self, node: ir.Node, definition: OpDef, opset: int) -> OpCall:
        read, made = shown(node)
        inputs = zip(node.inputs, read, strict=True)
        outputs = zip(node.outputs, made, strict=True)
        return OpCall(
            node.op_type,
            opset,
            tuple(None if v is None else self._type(v, node, s) for v, s in inputs),
            tuple(self._type(v, node, s) if self._is_used(v) else None for v, s in outputs),
            attributes_of(node),
            tuple(small_constant(v) for v in node.inputs),
            definition.domain,
        )

    def _is_used(self, value: ir.Value | None) -> bool:
        if value is None or not value.name:
            return False
        return value in self.names or value.is_graph_output() or bool(value.uses())

    def _type(self, value: ir.Value, node: ir.Node, shape: Dims | None = None) -> TensorType:
        dtype = None if value.dtype is None else DType.from_onnx(int(value.dtype))
        shape = dims(value) if shape is None else shape
        if dtype is None:
            raise ComposeError(f"{node.op_type} has an operand of type {value.dtype}", node)
        if shape is None:
            raise ComposeError(f"{node.op_type} has an operand of unknown rank", node)
        try:
            return TensorType(dtype, tuple(map(self.sizes.size, shape)))
        except UnsupportedError as error:
            raise ComposeError(str(error), node) from error

    def _output(self, value: ir.Value, type_: TensorType | None, node: ir.Node) -> str | None:
        if type_ is None:
            return None
        name = self.names.setdefault(value, f"t{len(self.tensors)}")
        self.tensors[name] = type_
        return name

    def _name(self, value: ir.Value, node: ir.Node) -> str:
        name = self.names.get(value)
        if name is None:
            raise ComposeError(
                f"{node.op_type} reads {value.name}, which nothing provides", node
            )
        return name

    def _name_as(self, value: ir.Value, type_: TensorType, node: ir.Node, position: int) -> str:
        """The tensor that holds ``value`` in a shape of as many elements."""
        name = self._name(value, node)
        if self.tensors[name].shape == type_.shape:
            return name
        key = (name, type_.shape)
        if key not in self.seen_as:
            self.seen_as[key] = f"t{len(self.tensors)}"
            self.tensors[self.seen_as[key]] = type_
            self.views.append(View(name, self.seen_as[key], position))
        return self.seen_as[key]

    def _literal(self, value: ir.Value) -> Expr | None:
        """The one element of a constant, as a literal of its type; otherwise ``None``."""
        if value not in self.literals:
            constant = small_constant(value)
            dtype = None if constant is None else _dtype_of(constant)
            self.literals[value] = (
                self.pool.add(literal(dtype, constant.reshape(()).item()))
                if constant is not None and dtype is not None and constant.size == 1
                else None
            )
        return self.literals[value]

    def _instantiate(
        self,
        lowered: Lowered,
        given: list[tuple[ir.Value, TensorType]],
        made: list[str],
        position: int,
    ) -> None:
        """Append the statements of a node with the names of this group."""
        node = self.group.nodes[position]
        if len(given) != len(lowered.inputs) or len(made) != len(lowered.outputs):
            raise ComposeError(f"the definition of {node.op_type} has another signature", node)
        literals: dict[str, Expr] = {}
        names = dict(zip(lowered.outputs, made, strict=True))
        for parameter, (value, type_) in zip(lowered.inputs, given, strict=True):
            constant = self._literal(value)
            if constant is not None:
                literals[parameter] = constant
            else:
                names[parameter] = self._name_as(value, type_, node, position)
        for local, type_ in lowered.tensors.items():
            if local not in names and local not in literals:
                names[local] = f"t{len(self.tensors)}"
                self.tensors[names[local]] = type_

        def rule(expr: Expr) -> Expr:
            if not isinstance(expr, Access):
                return expr
            known = literals.get(expr.tensor)
            return known or Access(names[expr.tensor], expr.subscripts)

        reshaped = reshapes(lowered.body, lowered.tensors, lowered.inputs)
        for k, s in enumerate(lowered.body):
            if k in reshaped:
                self.views.append(View(names[reshaped[k]], names[s.tensor], position))
                continue
            expr = self.pool.rewrite(s.value, rule, {})
            self.body.append(replace(s, tensor=names[s.tensor], value=expr, span=None))


def _dtype_of(array: np.ndarray) -> DType | None:
    return next((d for d in DType if d.numpy == array.dtype), None)
