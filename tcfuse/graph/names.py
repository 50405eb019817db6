"""Names of nodes and values, and new ones beside them."""

from __future__ import annotations

import onnx_ir as ir


def names_of(model: ir.Model) -> set[str]:
    """The names of all nodes and values."""
    names: set[str | None] = set()
    for graph in model.graphs():
        names.update(value.name for value in graph.inputs)
        names.update(graph.initializers)
        for node in graph:
            names.add(node.name)
            names.update(value.name for value in node.outputs)
    return {name for name in names if name}


def unused_name(name: str, names: set[str]) -> str:
    """``name``, or the first of ``name_2``, ``name_3`` ... that nothing has; now taken."""
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{name}_{number}"
    names.add(free)
    return free
