"""Symbolic shape inference: every value gets its element type and, where it can be, its shape.

One forward pass in the order of the nodes.  Each node is asked by a rule of ours that keeps
expressions exact, else by ONNX's own inference.  Only graph inputs and initializers are
believed; what the file says of inner values may be stale, and is used for operators nobody
knows only.  Sizes nobody can tell are named ``d0, d1, ...``.

What is known of the numbers in small integer tensors travels along (``elements``), because
models compute the targets of their ``Reshape`` from the shapes they meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from tcfuse.graph import (  # noqa: F401 - importing these registers their rules
    shape_attention,
    shape_blocked,
    shape_contraction,
    shape_contrib,
    shape_elements,
    shape_movement,
    shape_pointwise,
    shape_reduction,
    shape_signal,
    shape_sizes,
    shape_spatial,
    shape_views,
)
from tcfuse.graph.constants import constant_tensor, constant_value
from tcfuse.graph.element_arithmetic import ELEMENT_TYPES
from tcfuse.graph.equalities import Equalities
from tcfuse.graph.function_calls import LARGEST_TOTAL, instantiate
from tcfuse.graph.onnx_inference import infer_with_onnx
from tcfuse.graph.shape_call import (
    ELEMENT_RULES,
    MAX_ELEMENTS,
    SHAPE_RULES,
    Call,
    Elements,
    Known,
    UnknownShapeError,
    rule_name,
)
from tcfuse.graph.shape_control import CONTROL_RULES
from tcfuse.graph.shape_types import output_types, schema_of, tensor_type
from tcfuse.graph.symbols import (
    PLAIN_NAME,
    Dim,
    Dims,
    dims,
    from_float,
    is_long,
    parse,
    set_dims,
    symbol,
)

__all__ = ["Dim", "Dims", "dims", "elements", "infer_shapes", "restore_interface", "symbol"]

_T = TypeVar("_T")
_ANONYMOUS = frozenset(("?", "*", "-1", "None", "unknown", "dynamic"))  # no names, say tools
_ELEMENTS = "tcfuse.elements"
_DECLARED = "tcfuse.declared"
# A rule may meet a node that is malformed in any way; its outputs are then unknown.
_MALFORMED = (
    *(ArithmeticError, AttributeError, IndexError, KeyError, RuntimeError, TypeError),
    ValueError,
)
# Numbers beyond these wrap around, or are not exact.
_LIMITS = {
    ir.DataType.INT32: 1 << 31,
    ir.DataType.INT64: 1 << 63,
    ir.DataType.FLOAT: 1 << 24,
    ir.DataType.DOUBLE: 1 << 53,
}


def infer_shapes(model: ir.Model, after_node: Callable[[ir.Node], None] | None = None) -> None:
    """Give every value of ``model``'s graph and its bodies its type and shape, in place.

    Args:
        model: Nodes in topological order; functions are left alone.
        after_node: Called when a node's outputs are known; it may replace the node by
            constants, which the nodes behind it then see.
    """
    _Inference(model, after_node).run()


def elements(value: ir.Value) -> Elements | None:
    """The numbers in a scalar or short vector: ``int``, expression, or ``None`` if unknown."""
    if _ELEMENTS not in value.meta:
        value.meta[_ELEMENTS] = _constant_elements(value)
    found: Elements | None = value.meta[_ELEMENTS]
    return found


def restore_interface(model: ir.Model) -> None:
    """Give graph inputs and outputs the shapes back that the file declares for them."""
    for value in (*model.graph.inputs, *model.graph.outputs):
        if _DECLARED in value.meta:
            value.shape = value.meta[_DECLARED]


class _Inference:
    """The state of one pass; the ``Scope`` of every call."""

    def __init__(self, model: ir.Model, after_node: Callable[[ir.Node], None] | None) -> None:
        self.graph = model.graph
        self.opsets = dict(model.graph.opset_imports)
        self.functions = model.functions
        self.after_node = after_node
        self.depth = 0
        self.final = True
        self._calling: list[ir.Function] = []
        self._in_functions = 0
        self.equalities = Equalities()
        self._common: dict[frozenset[Dim], Dim] = {}
        self._created: list[Dim] = []
        self._taken = _texts(model.graph)
        self._names = {text for text in self._taken if PLAIN_NAME.fullmatch(text)}
        self._next = 0

    def run(self) -> None:
        """Infer the main graph."""
        for value in (*self.graph.inputs, *self.graph.outputs):
            value.meta.setdefault(_DECLARED, value.shape)
        for value in self.graph.inputs:
            self._declare(value)
        self._visit_nodes(self.graph)
        if self.equalities:
            self._resolve_all()

    # -- what rules ask ------------------------------------------------------------------

    def fresh(self) -> Dim:
        """A size with a name the model does not use."""
        while f"d{self._next}" in self._taken:
            self._next += 1
        size = symbol(f"d{self._next}")
        self._next += 1
        self._created.append(size)
        self.equalities.allow(size)
        return size

    def common(self, candidates: frozenset[Dim]) -> Dim:
        """One name for what these sizes broadcast to, wherever they meet."""
        if candidates not in self._common:
            self._common[candidates] = self.fresh()
        return self._common[candidates]

    def require(self, a: Dim, b: Dim) -> None:
        """Note that a run is only valid when these sizes are equal; a body may never run."""
        if self.depth == 0:
            self.equalities.require(a, b)

    def shape_of(self, value: ir.Value) -> Dims | None:
        """The shape found so far."""
        return dims(value) if tensor_type(value) is not None else None

    def elements_of(self, value: ir.Value) -> Elements | None:
        """The elements found so far, read from a constant on first use."""
        return elements(value)

    def array_of(self, value: ir.Value) -> np.ndarray | None:
        """The constant value."""
        return constant_value(value)

    def known(self, value: ir.Value) -> Known:
        """Type, shape and elements found so far."""
        return Known(tensor_type(value), self.shape_of(value), self.elements_of(value))

    def infer_body(
        self, graph: ir.Graph, inputs: Sequence[Known], *, final: bool
    ) -> list[Known]:
        """Infer a body whose inputs are these; what holds of its outputs outside of it.

        Args:
            graph: The body.
            inputs: What is known of its inputs; the declared type where that is nothing.
            final: Not an attempt: constants may be folded.
        """
        before, was_final = len(self._created), self.final
        for k, value in enumerate(graph.inputs):
            known = inputs[k] if k < len(inputs) else Known()
            if known.shape is None and known.dtype is None:
                self._declare(value)
            else:
                self._record(value, known)
        self.depth += 1
        self.final = was_final and final
        self._visit_nodes(graph)
        self.depth -= 1
        self.final = was_final
        inner = set(self._created[before:])
        return [self._outside(self.known(value), inner) for value in graph.outputs]

    def _outside(self, known: Known, inner: set[Dim]) -> Known:
        """``known`` with new names for what exists inside a body only."""
        if known.shape is None or not inner:
            return Known(known.dtype, known.shape)
        shape = tuple(
            d if isinstance(d, int) or not d.free_symbols & inner else self.fresh()
            for d in known.shape
        )
        return Known(known.dtype, shape)

    # -- the pass ------------------------------------------------------------------------

    def _declare(self, value: ir.Value) -> None:
        """Believe what the file says of ``value``; sizes it leaves open get names."""
        value.meta[_ELEMENTS] = None
        if value.shape is None or tensor_type(value) is None:
            return
        shape: list[Dim] = []
        for dim in value.shape:
            if isinstance(dim, int):
                shape.append(dim if dim >= 0 else self.fresh())
            elif dim.value and dim.value not in _ANONYMOUS:
                shape.append(parse(dim.value, self._names))
            else:
                shape.append(self.fresh())
        set_dims(value, tuple(shape))

    def _record(self, value: ir.Value, known: Known) -> None:
        if known.dtype is not None and value.dtype != known.dtype:
            value.dtype = known.dtype
        if known.shape is None:
            value.shape = None
        else:
            shape = self.equalities.resolve_all(known.shape)
            set_dims(value, tuple(self.fresh() if is_long(d) else d for d in shape))
        value.meta[_ELEMENTS] = known.elements

    def _visit_nodes(self, graph: ir.Graph) -> None:
        for value in graph.initializers.values():
            tensor = value.const_value
            if tensor is not None and not value.is_graph_input():
                value.dtype = tensor.dtype
                value.shape = ir.Shape(tensor.shape.numpy())
        for node in graph:
            self._visit(node)
            if self.final and self.after_node is not None:
                self.after_node(node)

    def _resolve_all(self) -> None:
        """Say equal what turned out to be equal, everywhere."""
        for node in self.graph.all_nodes():
            for value in node.outputs:
                shape = dims(value)
                if shape is None or all(isinstance(d, int) for d in shape):
                    continue
                resolved = self.equalities.resolve_all(shape)
                if resolved != shape:
                    set_dims(value, resolved)
                numbers = elements(value)
                if numbers is not None:
                    value.meta[_ELEMENTS] = tuple(
                        None if e is None else self.equalities.resolve(e) for e in numbers
                    )

    def _visit(self, node: ir.Node) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = node.version or self.opsets.get(node.domain) or self.opsets.get(domain, 1)
        call = Call(node, opset, self)
        function = self.functions.get(node.op_identifier())
        found: list[Known] | None = None
        if function is not None:
            found = self._call_function(function, node)
        elif domain not in self.opsets and node.domain not in self.opsets:
            found = None
        elif not domain and node.op_type in CONTROL_RULES:
            found = _attempt(CONTROL_RULES[node.op_type], call)
        elif rule_name(call) in SHAPE_RULES or schema_of(node.op_type, domain, opset):
            found = self._ordinary(call)
        if found is None:
            self._visit_unknown(node)
            return
        for k, value in enumerate(node.outputs):
            known = found[k] if k < len(found) else Known()
            believed = function is not None or (value.is_graph_output() and self.depth == 0)
            if believed and (known.shape is None or known.dtype is None):
                self._declare(value)
            else:
                self._store(value, known)

    def _call_function(self, function: ir.Function, node: ir.Node) -> list[Known] | None:
        """What a call of a function of the model gives; ``None`` when it calls too many."""
        self._in_functions += len(function)
        if function in self._calling or self._in_functions > LARGEST_TOTAL:
            return None
        try:
            body = instantiate(function, node)
        except (RuntimeError, ValueError):
            return None
        inputs = [Known() if value is None else self.known(value) for value in node.inputs]
        outer, self.opsets = self.opsets, dict(function.opset_imports)
        self._calling.append(function)
        found = self.infer_body(body, inputs, final=False)
        self._calling.pop()
        self.opsets = outer
        return found

    def _visit_unknown(self, node: ir.Node) -> None:
        """An operator nobody knows: the file's word is all there is."""
        for attribute in node.attributes.values():
            if attribute.type is ir.AttributeType.GRAPH and not attribute.is_ref():
                self.infer_body(attribute.as_graph(), [], final=True)
        for value in node.outputs:
            self._declare(value)

    def _ordinary(self, call: Call) -> list[Known]:
        types = _attempt(output_types, call) or [None] * call.n_outputs
        rule = SHAPE_RULES.get(rule_name(call))
        shapes = None if rule is None else _attempt(rule, call)
        found = [
            Known(dtype, shapes[k] if shapes is not None and k < len(shapes) else None)
            for k, dtype in enumerate(types)
        ]
        if any(f.shape is None or f.dtype is None for f in found):
            for ours, theirs in zip(found, _attempt(infer_with_onnx, call) or (), strict=False):
                ours.dtype = ours.dtype or theirs.dtype
                ours.shape = theirs.shape if ours.shape is None else ours.shape
        self._add_elements(call, found)
        return found

    def _add_elements(self, call: Call, found: list[Known]) -> None:
        rule = ELEMENT_RULES.get(rule_name(call))
        if rule is None or found[0].dtype not in ELEMENT_TYPES or not _is_short(found[0].shape):
            return
        for known, numbers in zip(found, _attempt(rule, call) or (), strict=False):
            if numbers is None or not _is_short(known.shape):
                continue
            (length,) = known.shape or (1,)
            if len(numbers) == length and known.dtype in ELEMENT_TYPES:
                known.elements = tuple(_kept(e, known.dtype) for e in numbers)

    def _store(self, value: ir.Value, known: Known) -> None:
        if known.dtype is None and value.type is not None and tensor_type(value) is None:
            return  # a sequence or a map
        tensor = constant_tensor(value)
        if tensor is not None:
            known = Known(tensor.dtype, tuple(tensor.shape.numpy()), _constant_elements(value))
        self._record(value, known)


def _attempt(rule: Callable[[Call], _T], call: Call) -> _T | None:
    """What the rule says; ``None`` when it cannot say anything."""
    try:
        return rule(call)
    except (UnknownShapeError, *_MALFORMED):
        return None


def _texts(graph: ir.Graph) -> set[str]:
    """Every text the model uses as a size."""
    texts: set[str] = set()
    values = [*graph.inputs]
    for node in graph.all_nodes():
        values.extend(node.outputs)
    for value in values:
        if value.shape is not None:
            texts.update(d.value for d in value.shape if not isinstance(d, int) and d.value)
    return texts


def _is_short(shape: Dims | None) -> bool:
    """Whether a value of that shape is a scalar or a short vector."""
    if shape is None or len(shape) > 1:
        return False
    return not shape or (isinstance(shape[0], int) and shape[0] <= MAX_ELEMENTS)


def _kept(element: Dim | None, dtype: ir.DataType | None) -> Dim | None:
    """``element`` if it fits its type and is short enough to work with."""
    if element is None:
        return None
    if isinstance(element, int):
        limit = _LIMITS.get(dtype) if dtype is not None else None
        return element if limit is None or -limit <= element < limit else None
    return None if is_long(element) else element


def _constant_elements(value: ir.Value) -> Elements | None:
    tensor = constant_tensor(value)
    if (
        tensor is None
        or tensor.dtype not in ELEMENT_TYPES
        or not _is_short(tuple(tensor.shape.numpy()))
    ):
        return None
    array = tensor.numpy().ravel()
    if array.dtype.kind == "f":
        return tuple(from_float(float(e)) for e in array)
    return tuple(int(e) for e in array)
