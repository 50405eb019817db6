"""Calls of functions the model brings along: a copy of the body, made for one call.

Only shape inference looks into these copies; the functions of the model are left alone.
"""

from __future__ import annotations

import onnx_ir as ir

LARGEST_TOTAL = 20_000  # nodes in all the copies of one model: functions may call functions


def instantiate(function: ir.Function, node: ir.Node) -> ir.Graph:
    """A copy of the body of ``function`` with the attributes that ``node`` passes filled in."""
    body = function.clone().graph
    for inner in body.all_nodes():
        for name, attribute in list(inner.attributes.items()):
            if not attribute.is_ref():
                continue
            source = attribute.ref_attr_name or ""
            given = node.attributes.get(source) or function.attributes.get(source)
            del inner.attributes[name]
            if given is not None and not given.is_ref() and given.value is not None:
                inner.attributes.add(ir.Attr(name, given.type, given.value))
    return body
