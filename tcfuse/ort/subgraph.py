"""Small models cut out of an optimized one.

A fused node carries its original operators with it: the model-local function of its name.  So
a model of that one node is both contenders at once: with the library registered ONNX Runtime
runs the kernel, without it the original operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from tcfuse.graph.sealing import SEALED, in_domain

DOMAIN = "tcfuse"
CONSTANT_BYTES = 1 << 22  # larger constants are fed, so that no copy of them is serialized


def fused_nodes(model: ir.Model) -> Iterator[ir.Node]:
    """Every fused node, bodies of control flow included."""
    for node in model.graph.all_nodes():
        if node.domain == DOMAIN:
            yield node


def one_of_each(model: ir.Model) -> dict[str, ir.Node]:
    """The first fused node of every kernel, by the kernel's name."""
    first: dict[str, ir.Node] = {}
    for node in fused_nodes(model):
        first.setdefault(node.op_type, node)
    return first


def function_of(model: ir.Model, node: ir.Node) -> ir.Function | None:
    """The original operators of a fused node, if the model still holds them."""
    function = model.functions.get((node.domain, node.op_type, node.overload))
    sealed = model.functions.get((SEALED, node.op_type, node.overload))
    return in_domain(sealed, node.domain) if function is None and sealed else function


def single_node(model: ir.Model, node: ir.Node, *, constants: bool) -> ir.Model:
    """A model of ``node`` alone, with its function; ``model`` is left as it was.

    Args:
        model: The optimized model.
        node: One of its fused nodes.
        constants: Keep inputs that are small constants as initializers, as in ``model``;
            otherwise every input must be fed.
    """
    inputs = [_copy(value) for value in node.inputs if value is not None]
    outputs = [_copy(value) for value in node.outputs]
    kept: list[ir.Value] = []
    if constants:
        for value, original in zip(inputs, node.inputs, strict=True):
            assert original is not None, f"{node.op_type} has an absent input"
            tensor = constant_of(original)
            if tensor is not None and tensor.nbytes <= CONSTANT_BYTES:
                value.const_value = ir.Tensor(tensor.numpy(), name=value.name)
                kept.append(value)
    alone = ir.Node(
        node.domain, node.op_type, inputs, node.attributes.values(), outputs=outputs
    )
    graph = ir.Graph(
        [value for value in inputs if value not in kept],
        outputs,
        nodes=[alone],
        initializers=kept,
        opset_imports=dict(model.opset_imports),
        name=node.op_type,
    )
    function = function_of(model, node)
    functions = [] if function is None else [function]
    return ir.Model(graph, ir_version=max(model.ir_version, 8), functions=functions)


def constant_of(value: ir.Value) -> ir.TensorProtocol | None:
    """The tensor of an initializer nobody can override, else ``None``."""
    if value.const_value is None or value.is_graph_input():
        return None
    return value.const_value


def instrumented(model: ir.Model, names: Sequence[str]) -> ir.Model:
    """A copy of ``model`` whose outputs are the values of those names, in that order."""
    copy = model.clone()
    values: dict[str, ir.Value] = {}
    for value in copy.graph.inputs:
        values[str(value.name)] = value
    for node in copy.graph:
        values.update((str(value.name), value) for value in node.outputs)
    copy.graph.outputs[:] = [values[name] for name in names]
    return copy


def boundary(model: ir.Model, nodes: Sequence[ir.Node]) -> list[str]:
    """Names of the main graph's values that ``nodes`` read, constants left out."""
    names: dict[str, None] = {}
    for node in nodes:
        for value in node.inputs:
            if value is not None and constant_of(value) is None and _in_main(model, value):
                names[str(value.name)] = None
    return list(names)


def _in_main(model: ir.Model, value: ir.Value) -> bool:
    producer = value.producer()
    if producer is None:
        return any(value is given for given in model.graph.inputs)
    return producer.graph is model.graph


def _copy(value: ir.Value) -> ir.Value:
    return ir.Value(name=value.name, shape=value.shape, type=value.type)
