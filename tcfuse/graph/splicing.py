"""Copies of bodies among the nodes of the graph around them, under names of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from tcfuse.graph.constants import renamed
from tcfuse.graph.names import names_of
from tcfuse.graph.regions import bodies


class Splicer:
    """Puts nodes before one node of a graph; names are new in the whole model.

    Attributes:
        n_nodes: How many have been put in so far, those in bodies counted.
    """

    def __init__(self, model: ir.Model) -> None:
        self.n_nodes = 0
        self._has_initializers = (model.ir_version or 0) >= 4
        self._opset = model.graph.opset_imports.get("", 1)
        self._names = names_of(model)
        self._numbers: dict[str, int] = {}
        self._made: set[ir.Node] = set()

    def body(
        self, body: ir.Graph, arguments: Sequence[ir.Value], before: ir.Node
    ) -> list[ir.Value]:
        """A copy of ``body``, called with ``arguments``; what it returns."""
        graph = _graph_of(before)
        self._close(body, graph)
        copy = body.clone(allow_outer_scope_values=True)
        results = list(copy.outputs)
        copy.outputs.clear()
        given = dict(zip(copy.inputs, arguments, strict=True))
        for parameter, argument in given.items():
            parameter.replace_all_uses_with(argument)
        nodes = tuple(copy)
        copy.remove(nodes)
        for node in nodes:
            node.name = self._unused(node.name or node.op_type)
            for value in node.outputs:
                if value.name:
                    value.name = self._unused(value.name)
        graph.insert_before(before, nodes)
        self._made.update(nodes)
        self.n_nodes += n_nodes(body)
        return [given.get(value, value) for value in results]

    def can_take(self, body: ir.Graph) -> bool:
        """Whether the model's format has a place for everything in ``body``."""
        constants = body.initializers.values()
        if not self._has_initializers:
            return not constants
        return not any(v.is_graph_input() or v.const_value is None for v in constants)

    def _close(self, body: ir.Graph, graph: ir.Graph) -> None:
        """Let ``body`` itself make what it returns, and ``graph`` hold its constants."""
        for value in tuple(body.initializers.values()):
            assert value.name is not None
            assert value.const_value is not None
            name = self._unused(value.name)
            outer = ir.Value(
                name=name,
                type=value.type,
                shape=value.shape,
                const_value=renamed(value.const_value, name),
            )
            graph.register_initializer(outer)
            value.replace_all_uses_with(outer, replace_graph_outputs=True)
            del body.initializers[value.name]
        for k, value in enumerate(body.outputs):
            if value.graph is not body:
                node = ir.Node("", "Identity", [value])
                node.outputs[0].name = value.name
                body.append(node)
                body.outputs[k] = node.outputs[0]

    def constant(self, array: np.ndarray, before: ir.Node) -> ir.Value:
        """A constant; shape inference makes an initializer of it where there are any."""
        value = ir.AttrTensor("value", ir.tensor(array))
        return self._node("Constant", [], [value], before)

    def taken(self, whole: ir.Value, position: int, axis: int, before: ir.Node) -> ir.Value:
        """``whole`` at one ``position`` along ``axis``, which goes away."""
        index = self.constant(np.array(position, np.int64), before)
        return self._node("Gather", [whole, index], [ir.AttrInt64("axis", axis)], before)

    def stacked(self, parts: Sequence[ir.Value], axis: int, before: ir.Node) -> ir.Value:
        """``parts`` side by side along a new ``axis``."""
        slices = [self._with_axis(part, axis, before) for part in parts]
        if len(slices) == 1:
            return slices[0]
        return self._node("Concat", slices, [ir.AttrInt64("axis", axis)], before)

    def _with_axis(self, value: ir.Value, axis: int, before: ir.Node) -> ir.Value:
        """``value`` with one more axis, of size one."""
        if self._opset < 13:
            return self._node("Unsqueeze", [value], [ir.AttrInt64s("axes", [axis])], before)
        axes = self.constant(np.array([axis], np.int64), before)
        return self._node("Unsqueeze", [value, axes], [], before)

    def replace(self, node: ir.Node, results: Sequence[ir.Value]) -> None:
        """Remove ``node``, whose bodies go with it, and read ``results`` in its place."""
        graph = _graph_of(node)
        for old, new in zip(node.outputs, results, strict=False):
            if old.is_graph_output():
                self._return(old, new, node)
            else:
                old.replace_all_uses_with(new)
        for body in bodies(node):
            _detach(body)
        graph.remove(node, safe=True)

    def _return(self, old: ir.Value, new: ir.Value, before: ir.Node) -> None:
        """Return ``new`` where ``old`` was, under its name; one value is returned once."""
        if new.producer() not in self._made or new.is_graph_output():
            new = self._node("Identity", [new], [], before)
        new.type, new.shape, new.doc_string = old.type, old.shape, old.doc_string
        new.metadata_props.update(old.metadata_props)
        new.meta.update(old.meta)
        name, old.name = old.name, None
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        new.name = name

    def _node(
        self,
        op_type: str,
        inputs: Sequence[ir.Value],
        attributes: Sequence[ir.Attr],
        before: ir.Node,
    ) -> ir.Value:
        name = self._unused(before.name or before.op_type)
        node = ir.Node("", op_type, inputs, attributes, name=name)
        node.outputs[0].name = self._unused(f"{name}_{op_type}")
        _graph_of(before).insert_before(before, node)
        self._made.add(node)
        return node.outputs[0]

    def _unused(self, name: str) -> str:
        """The first of ``name``, ``name_1``, ``name_2`` ... that nothing has; now taken."""
        free = name
        while free in self._names:
            self._numbers[name] = self._numbers.get(name, 0) + 1
            free = f"{name}_{self._numbers[name]}"
        self._names.add(free)
        return free


def n_nodes(body: ir.Graph) -> int:
    """Nodes in ``body`` and in the bodies in it."""
    return sum(1 for _ in body.all_nodes())


def _graph_of(node: ir.Node) -> ir.Graph:
    graph = node.graph
    assert isinstance(graph, ir.Graph), "the node lies in a graph"
    return graph


def _detach(body: ir.Graph) -> None:
    """End every use that nodes of a body which nobody runs make of values outside."""
    body.outputs.clear()
    for node in body.all_nodes():
        for k in range(len(node.inputs)):
            node.replace_input_with(k, None)
