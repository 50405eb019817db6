"""Which contractions leave ONNX Runtime's tuned kernels for a region's.

Around a contraction a region saves what crosses its border: transposes that become the way it
reads, a softmax between two products, a chain of small ones.  The contraction itself is rarely
faster.  So regions are grown with the contractions and without them, and those join whose
regions are expected to gain a good part of the contractions' own time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import onnx_ir as ir

from tcfuse.graph.legality import definition_of
from tcfuse.graph.machine import Machine
from tcfuse.graph.products import kernel_us, may_gain, native_us, product_of
from tcfuse.opdef import Kind

MOST_SLOWER = 1.25
"""Times as long as ONNX Runtime's kernel that a contraction may take, for what is around it."""

LEAST_GAIN = 0.1
"""Of the contractions' own time, what their region must be expected to gain."""

IN_PLACE = frozenset({Kind.ELEMENTWISE, Kind.MOVEMENT, Kind.VIEW})
"""Operators whose element is computed where it is read."""

Regions = Callable[[Collection[ir.Node]], list[list[ir.Node]]]
Gain = Callable[[Sequence[ir.Node]], float]


def is_candidate(node: ir.Node, opsets: Mapping[str, int], machine: Machine) -> bool:
    """Whether a kernel's contraction is about as fast as ONNX Runtime's."""
    if definition_of(node, opsets).kind is not Kind.CONTRACTION:
        return False
    product = product_of(node)
    if product is None or not may_gain(product):
        return False
    return kernel_us(product, machine) <= MOST_SLOWER * native_us(product, machine)


def in_pieces(
    nodes: Iterable[ir.Node], members: Collection[ir.Node], opsets: Mapping[str, int]
) -> set[ir.Node]:
    """Members whose result is chosen among joined or gathered pieces, read by read.

    A contraction reads each element of its operands many times, and asks each time which piece
    it is in.

    Args:
        nodes: In topological order.
        members: Those that are computed where they are read.
        opsets: What the model imports.
    """
    found: set[ir.Node] = set()
    for node in nodes:
        if node in members and (node.op_type in PIECES or _passes_on(node, found, opsets)):
            found.add(node)
    return found


def _passes_on(node: ir.Node, pieces: Collection[ir.Node], opsets: Mapping[str, int]) -> bool:
    return reads_pieces(node, pieces) and definition_of(node, opsets).kind in IN_PLACE


def reads_pieces(node: ir.Node, pieces: Collection[ir.Node]) -> bool:
    """Whether an operand is among ``in_pieces``."""
    return any(value is not None and value.producer() in pieces for value in node.inputs)


PIECES = frozenset({"Concat", "Gather", "GatherElements", "GatherND", "ScatterND"})
"""Operators whose result lies in pieces elsewhere."""


def adopted(
    waiting: Collection[ir.Node],
    members: Collection[ir.Node],
    regions: Regions,
    gain: Gain,
    machine: Machine,
) -> tuple[set[ir.Node], dict[ir.Node, str]]:
    """Those of the ``waiting`` contractions that join, and why the others do not.

    Args:
        waiting: Candidates.
        members: What is in regions in any case.
        regions: The regions of a set of members, pruned.
        gain: Microseconds that a region is expected to save.
        machine: What the model runs on.
    """
    if not waiting:
        return set(), {}
    joined: set[ir.Node] = set()
    reasons: dict[ir.Node, str] = {}
    without = [(set(region), gain(region)) for region in regions(members)]
    for region in regions({*members, *waiting}):
        own = [node for node in region if node in waiting]
        if not own:
            continue
        inside = set(region)
        rest = sum(max(saved, 0.0) for part, saved in without if part <= inside)
        more, least = gain(region) - rest, LEAST_GAIN * sum(_native_us(n, machine) for n in own)
        if more >= least:
            joined.update(own)
            continue
        gained = f"taking it is expected to gain {more:.1f} us, less than {least:.1f} us"
        for node in own:
            reasons[node] = f"{node.op_type} is left to ONNX Runtime's own kernel: {gained}"
    return joined, reasons


def _native_us(node: ir.Node, machine: Machine) -> float:
    product = product_of(node)
    return 0.0 if product is None else native_us(product, machine)
