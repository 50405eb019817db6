"""Operators of ONNX's previews become what ONNX defines them to be.

ONNX Runtime has no kernels of them, nor does it know their functions.  Written out, their
nodes run there, and are fused with each other and with what is around them.
"""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir

from tcfuse.graph.shape_types import schema_of
from tcfuse.graph.splicing import Splicer

DOMAIN = "ai.onnx.preview"


def write_out_previews(model: ir.Model) -> bool:
    """Replace operators of previews whose inputs have known types; whether there were any.

    What reads them is to be inferred then, and may be replaced in turn.
    """
    found = [node for node in model.graph.all_nodes() if node.domain == DOMAIN]
    splicer = Splicer(model) if found else None
    changed = False
    for node in found:
        body = _function(node, model.graph.opset_imports)
        inputs = [value for value in node.inputs if value is not None]
        if body is None or splicer is None or len(inputs) != len(body.inputs):
            continue
        results = splicer.body(body, inputs, node)
        splicer.replace(node, results)
        changed = True
    return changed


def _function(node: ir.Node, opsets: dict[str, int]) -> ir.Graph | None:
    """The body of the function that ``node`` stands for; ``None`` when nobody tells it."""
    schema: Any = schema_of(node.op_type, node.domain, opsets.get(DOMAIN, 1))
    if schema is None or not schema.has_context_dependent_function:
        return None
    values = [value for value in node.inputs if value is not None]
    if any(value.dtype is None for value in values):
        return None
    types = [ir.serde.serialize_value(value).type.SerializeToString() for value in values]
    try:
        written = schema.get_context_dependent_function(
            ir.serde.serialize_node(node).SerializeToString(), types
        )
        function = ir.serde.deserialize_function(onnx.FunctionProto.FromString(written))
    except (IndexError, RuntimeError, TypeError, ValueError):
        return None
    opset = opsets.get("", 1)  # that of the model, as the function names none
    is_known = all(_is_known(inner, opset) for inner in function)
    return function.graph if is_known and _is_closed(function.graph) else None


def _is_closed(body: ir.Graph) -> bool:
    """Whether a body reads nothing but its parameters and what it makes."""
    read = {value for node in body for value in node.inputs if value is not None}
    return all(value.producer() is not None or value in body.inputs for value in read)


def _is_known(node: ir.Node, opset: int) -> bool:
    """Whether an opset has an operator that takes the inputs of ``node``."""
    schema = schema_of(node.op_type, "", opset) if node.domain in ("", "ai.onnx") else None
    return schema is not None and schema.min_input <= len(node.inputs) <= schema.max_input
