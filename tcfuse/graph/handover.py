"""Gives pieces of a value to the region that reads all of them.

A recurrence reads one row of a matrix a step.  Growing puts the Gathers of the rows with what
makes the matrix, and if that is not in the recurrence's own region, the rows become as many
values between two kernels.  In the region that reads them they are subscripts.  Likewise 8-bit
integers are a quarter of what a DequantizeLinear makes of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import onnx_ir as ir

from tcfuse.graph.legality import MAX_NODES, definition_of, is_fixed
from tcfuse.graph.traffic import n_bytes
from tcfuse.opdef import Kind

MOVES = (Kind.MOVEMENT, Kind.VIEW)


def hand_over(
    regions: Sequence[Sequence[ir.Node]], opsets: Mapping[str, int]
) -> list[list[ir.Node]]:
    """``regions`` with movements in the region behind, where less then lies between.

    What is moved has no reader but in that region, so both stay convex.

    Args:
        regions: Convex sets of nodes, each in topological order.
        opsets: Version of each operator domain the model imports.
    """
    parts = [dict.fromkeys(region) for region in regions]
    home = {node: k for k, part in enumerate(parts) for node in part}
    for k, part in enumerate(parts):
        for reader, moved in _last_movements(part, home, opsets).items():
            target = parts[reader]
            if len(target) + len(moved) > MAX_NODES or not _pays(moved, target):
                continue
            for node in moved:
                del part[node]
                home[node] = reader
            parts[reader] = dict.fromkeys([*moved, *target])
        parts[k] = part
    return [list(part) for part in parts if part]


def _last_movements(
    part: Collection[ir.Node], home: Mapping[ir.Node, int], opsets: Mapping[str, int]
) -> dict[int, list[ir.Node]]:
    """Movements at the end of a region, by the one other region that reads them."""
    goes: dict[ir.Node, int] = {}
    for node in reversed(list(part)):
        if any(value.is_graph_output() for value in node.outputs):
            continue
        users = {user for value in node.outputs for user, _ in value.uses()}
        readers = {goes.get(user, home.get(user, -1)) for user in users}
        if len(readers) != 1 or not _may_move(node, opsets):
            continue
        (reader,) = readers
        if reader not in (-1, home[node]):
            goes[node] = reader
    found: dict[int, list[ir.Node]] = {}
    for node, reader in reversed(goes.items()):
        found.setdefault(reader, []).append(node)
    return found


def _may_move(node: ir.Node, opsets: Mapping[str, int]) -> bool:
    """Whether a node costs nothing to speak of wherever it is."""
    return node.op_type == "DequantizeLinear" or definition_of(node, opsets).kind in MOVES


def _pays(moved: Sequence[ir.Node], target: Collection[ir.Node]) -> bool:
    """Whether less crosses the border when ``moved`` nodes join ``target``."""
    made = {value for node in moved for value in node.outputs}
    known = {value for node in target for value in node.inputs}
    given = {v for node in moved for v in node.inputs if v is not None and not is_fixed(v)}
    read = given - made - known
    crossing = made & known
    before, after = sum(map(n_bytes, crossing)), sum(map(n_bytes, read))
    fewer, smaller = len(crossing) - len(read), before - after
    return fewer >= 0 and smaller >= 0 and fewer + smaller > 0
