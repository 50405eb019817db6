"""The model-local function that computes what a fused node does, by the original operators.

Its text depends on the region's structure alone: values are renamed ``i0..``, ``t0..`` and
``o0..``, nodes lose their names, attributes are sorted.  Regions with equal structure and equal
constants therefore have equal functions, and a digest tells whether two may share one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from tcfuse.graph.constants import constant_tensor
from tcfuse.graph.plan import FusionGroup
from tcfuse.graph.views import reshape_target

DOMAIN = "tcfuse"
"""Domain of the fused operators."""


def build_function(
    group: FusionGroup,
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    domain: str,
    name: str,
    model: ir.Model,
) -> ir.Function:
    """The function ``domain::name`` whose body is ``group``.

    Args:
        group: The region.
        inputs: Values that become the parameters; all others the group reads are constants.
        outputs: Values that become the results.
        domain: Domain of the function.
        name: Name of the function.
        model: Whose opset imports the body was written for.
    """
    graph = _body(group, inputs, outputs)
    imports = {d: v for d, v in model.opset_imports.items() if d != domain}
    graph.opset_imports.update(imports)
    return ir.Function(domain, name, graph=graph, attributes=())


def body_digest(
    group: FusionGroup, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]
) -> str:
    """Sixteen hex digits that are equal for regions whose fallback is the same text."""
    function = ir.Function(DOMAIN, "f", graph=_body(group, inputs, outputs), attributes=())
    proto = ir.to_proto(function)
    return hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()[:16]


def _body(
    group: FusionGroup, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]
) -> ir.Graph:
    """The nodes of ``group`` as a graph of their own, in canonical names."""
    values: dict[ir.Value, ir.Value] = {
        value: ir.Value(name=f"i{k}") for k, value in enumerate(inputs)
    }
    names = {value: f"o{k}" for k, value in enumerate(outputs)}
    nodes: list[ir.Node] = []
    for node in group.nodes:
        operands = [_operand(node, k, values, nodes) for k in range(len(node.inputs))]
        attributes = {key: node.attributes[key] for key in sorted(node.attributes)}
        if _has_computed_target(node):
            attributes.pop("allowzero", None)  # there, 0 would not mean "copied"
        twin = ir.Node(
            node.domain,
            node.op_type,
            operands,
            attributes,
            overload=node.overload,
            num_outputs=_n_outputs(node),
        )
        for old, new in zip(node.outputs, twin.outputs, strict=False):
            new.name = names.get(old, f"t{len(values)}")
            values[old] = new
        nodes.append(twin)
    return ir.Graph(
        [values[value] for value in inputs], [values[v] for v in outputs], nodes=nodes
    )


def _n_outputs(node: ir.Node) -> int:
    """Outputs of ``node`` up to the last one that is not left out."""
    present = [k for k, v in enumerate(node.outputs) if v.name != "" or v.uses()]
    return max(present, default=0) + 1


def _operand(
    node: ir.Node, position: int, values: dict[ir.Value, ir.Value], nodes: list[ir.Node]
) -> ir.Value | None:
    """What the twin of ``node`` reads at ``position``; a new Constant goes to ``nodes``."""
    value = node.inputs[position]
    if value is None:
        return None
    if value in values:
        return values[value]
    if position == 1 and _has_computed_target(node):
        attribute = _target(node)  # of this Reshape alone: another may copy other sizes
    else:
        attribute = constant_attribute(value)
    constant = ir.Node("", "Constant", [], [attribute], num_outputs=1)
    constant.outputs[0].name = f"c{len(nodes)}"
    nodes.append(constant)
    return constant.outputs[0]


def _has_computed_target(node: ir.Node) -> bool:
    """Whether ``node`` is a Reshape whose target is not a constant."""
    if node.op_type != "Reshape" or len(node.inputs) < 2:
        return False
    return constant_tensor(node.inputs[1]) is None


def _target(node: ir.Node) -> ir.Attr:
    """The constant target that stands for the computed one of a Reshape."""
    target = reshape_target(node)
    assert target is not None, f"{node.name} has no constant target"
    return ir.AttrTensor("value", ir.Tensor(np.array(target, np.int64), name=""))


def constant_attribute(value: ir.Value) -> ir.Attr:
    """The attribute of a Constant node that gives ``value``; its data is in the model file."""
    producer = value.producer()
    if producer is not None and "value" not in producer.attributes:
        (attribute,) = producer.attributes.values()  # value_ints and its like
        return attribute
    tensor = constant_tensor(value)
    assert tensor is not None, f"{value.name} is neither an input of the region nor a constant"
    return ir.AttrTensor("value", ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=""))
