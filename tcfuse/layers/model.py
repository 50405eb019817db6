"""A ready model of one operator: a single node, its sizes named as in the definition."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
from google.protobuf.message import DecodeError

from tcfuse.interface import Port
from tcfuse.layers.operator import Operator

PRODUCER = "tcfuse"
IR_VERSION, OPSET = 8, 17  # what the oldest ONNX Runtime that runs the operators reads


def model_of(operator: Operator) -> ir.Model:
    """The model."""
    inputs = [_value(port) for port in operator.inputs]
    node = ir.node(
        operator.name,
        inputs,
        domain=operator.domain,
        num_outputs=len(operator.outputs),
        name=operator.name,
    )
    for value, port in zip(node.outputs, operator.outputs, strict=True):
        made = _value(port)
        value.name, value.type, value.shape = made.name, made.type, made.shape
    graph = ir.Graph(
        inputs,
        node.outputs,
        nodes=[node],
        opset_imports={"": OPSET, operator.domain: 1},
        name=operator.name,
    )
    text = str(operator.checked.definition)
    return ir.Model(graph, ir_version=IR_VERSION, producer_name=PRODUCER, doc_string=text)


def is_model_of(path: Path, domain: str) -> bool:
    """Whether a file is a model that ``model_of`` made for an operator of that domain."""
    try:
        model = ir.load(path)
    except (OSError, ValueError, DecodeError):
        return False
    nodes = list(model.graph)
    ours = model.producer_name == PRODUCER and len(nodes) == 1
    return ours and nodes[0].domain == domain


def _value(port: Port) -> ir.Value:
    kind = ir.TensorType(ir.DataType(port.type.dtype.onnx))
    return ir.Value(name=port.name, type=kind, shape=ir.Shape(port.type.shape))
