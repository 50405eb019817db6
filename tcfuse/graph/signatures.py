"""Whether nodes are what ONNX's schemas say: how many inputs, which attributes of which types.

ONNX Runtime loads no model where one is not, so nobody behind the loader has to expect it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import onnx
import onnx_ir as ir

from tcfuse.errors import InputError


def check_signatures(model: ir.Model, name: str) -> None:
    """Check every node of an operator that ONNX has; those of other domains pass.

    Args:
        model: The model.
        name: What to call it in an error.

    Raises:
        InputError: A node has too many or too few inputs or outputs, lacks an input or an
            attribute that it needs, or has an attribute of another type.
    """
    own = {key[:2] for key in model.functions}
    bodies = [(model.graph.all_nodes(), model.opset_imports)]
    bodies += [(f.all_nodes(), f.opset_imports) for f in model.functions.values()]
    for nodes, opsets in bodies:
        for node in nodes:
            if (node.domain, node.op_type) in own:
                continue
            for problem in _problems(node, opsets):
                title = f"{node.op_type} node {node.name!r}" if node.name else node.op_type
                raise InputError(f"{name}: a {title} {problem}; export the model again")


def _problems(node: ir.Node, opsets: Mapping[str, int]) -> Iterator[str]:
    """What is wrong with a node."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    version = opsets.get(domain, opsets.get("ai.onnx") if not domain else None)
    schema = None if version is None else _schema(node.op_type, version, domain)
    if schema is None:
        return
    for kind, count, least, most in (
        ("inputs", len(node.inputs), schema.min_input, schema.max_input),
        ("outputs", len(node.outputs), schema.min_output, schema.max_output),
    ):
        if not least <= count <= most:
            wanted = least if least == most else f"{least} to {most}"
            yield f"has {count} {kind} and not {wanted}"
    required = onnx.defs.OpSchema.FormalParameterOption.Single
    for k, (given, formal) in enumerate(zip(node.inputs, schema.inputs, strict=False)):
        if given is None and formal.option == required:
            yield f"lacks input {k}, {formal.name}"
    for formal in schema.attributes.values():
        attribute = node.attributes.get(formal.name)
        if attribute is None:
            if formal.required:
                yield f"lacks the attribute {formal.name!r}"
        elif attribute.type.value != formal.type.value:
            yield f"has an attribute {formal.name!r} of type {attribute.type.name}"


@cache
def _schema(op_type: str, version: int, domain: str) -> Any | None:
    """ONNX's schema of an operator; ``None`` where it has none."""
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def end_inputs(model: ir.Model) -> None:
    """Drop empty names at the end of the inputs of ONNX's own operators, which say nothing.

    ONNX Runtime takes an operator with one for another than the same without: it merges a Pad
    of two inputs into the convolution behind it, and none of three.
    """
    for node in model.graph.all_nodes():
        if node.domain not in ("", "ai.onnx"):
            continue
        length = len(node.inputs)
        while length and node.inputs[length - 1] is None:
            length -= 1
        if length < len(node.inputs):
            node.resize_inputs(length)
