"""Control flow that is decided when the model is loaded, and what it becomes without it.

An ``If`` whose condition is a constant becomes the branch that is taken.  A ``Loop`` or a
``Scan`` that runs a known, small number of times becomes its iterations, one after the other,
so that they are fused with each other and with what is around them.

Rewrite:
    y = Loop(2, true, x, body=(k, go, s) -> (go, s * w))
    ->  s = x * w; y = s * w
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from tcfuse.graph.constants import constant_value
from tcfuse.graph.legality import RANDOM
from tcfuse.graph.regions import bodies
from tcfuse.graph.shapes import dims
from tcfuse.graph.splicing import Splicer, n_nodes

MOST_NODES = 4096
"""Nodes that the iterations of all loops of a model become: one may hold another."""

_DRAWS = RANDOM | {"Dropout"}
"""Operators whose copies would each start with the same seed."""


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """A tensor that a ``Scan`` walks along one axis."""

    whole: ir.Value
    axis: int
    is_backwards: bool


class Unroller:
    """Takes the control flow out of one model."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._splicer = Splicer(model)

    def unroll(self) -> bool:
        """Replace what is decided, shapes and constants being known; whether there was any.

        What was in a body is then to be inferred and folded where it is now, which may decide
        more.
        """
        changed = False
        for graph in _graphs(self._model):
            for node in tuple(graph):
                changed |= self._replace(node)
        return changed

    def _replace(self, node: ir.Node) -> bool:
        """Replace ``node`` if it is control flow and decided."""
        if node.domain not in ("", "ai.onnx") or not bodies(node):
            return False
        if not all(self._splicer.can_take(body) for body in bodies(node)):
            return False
        match node.op_type:
            case "If":
                results = self._branch(node)
            case "Loop":
                results = self._loop(node)
            case "Scan":
                of_batch = self._model.graph.opset_imports.get("", 1) < 9
                results = self._scan_of_batch(node) if of_batch else self._scan(node)
            case _:
                return False
        if results is None:
            return False
        self._splicer.replace(node, results)
        return True

    def _branch(self, node: ir.Node) -> list[ir.Value] | None:
        """The results of the branch that is taken."""
        condition = _scalar(node.inputs[0])
        name = "then_branch" if condition else "else_branch"
        if condition is None or not _returns(node.attributes[name].as_graph(), node):
            return None
        return self._splicer.body(node.attributes[name].as_graph(), [], node)

    def _loop(self, node: ir.Node) -> list[ir.Value] | None:
        """The results of all iterations: carried values, then stacked ones."""
        body, carried = node.attributes["body"].as_graph(), _present(node.inputs[2:])
        if carried is None or not _takes(body, 2 + len(carried)) or not _returns(body, node, 1):
            return None
        trips, n = _trips(node, body), len(carried)
        if trips is None or not self._is_small(body, trips):
            return None
        if trips == 0 and len(node.outputs) > n:
            return None  # what has no iterations has no shape
        rows: list[list[ir.Value]] = []
        for trip in range(trips):
            counter = self._splicer.constant(np.array(trip, np.int64), node)
            runs = self._splicer.constant(np.array(True), node)
            _, *results = self._splicer.body(body, [counter, runs, *carried], node)
            carried = results[:n]
            rows.append(results[n:])
        n_stacked = len(node.outputs) - n
        return [*carried, *self._stacked(node, rows, [0] * n_stacked, [0] * n_stacked)]

    def _scan(self, node: ir.Node) -> list[ir.Value] | None:
        """The results of all iterations: states, then stacked ones."""
        given = _present(node.inputs)
        n_read = node.attributes.get_int("num_scan_inputs", 0)
        if given is None:
            return None
        reads = [
            _Read(value, axis, bool(back))
            for value, axis, back in zip(
                given[len(given) - n_read :],
                _each(node, "scan_input_axes", n_read),
                _each(node, "scan_input_directions", n_read),
                strict=False,
            )
        ]
        trips = _common_size([(read.whole, read.axis) for read in reads])
        states = given[: len(given) - n_read]
        if trips is None or not self._scans(node, len(given), trips):
            return None
        return self._scanned(node, states, reads, trips)

    def _scan_of_batch(self, node: ir.Node) -> list[ir.Value] | None:
        """The results of a ``Scan`` before opset 9: one for each element of a batch."""
        given = _present(node.inputs[1:])
        if given is None or node.inputs[0] is not None:
            return None  # sequences of lengths known when it runs
        n = len(given) - node.attributes.get_int("num_scan_inputs", 0)
        batch = _common_size([(value, 0) for value in given])
        trips = _common_size([(value, 1) for value in given[n:]])
        if not batch or trips is None or not self._scans(node, len(given), batch * trips):
            return None
        backwards = _each(node, "directions", len(given) - n)
        each = []
        for k in range(batch):
            parts = [self._splicer.taken(value, k, 0, node) for value in given]
            reads = [
                _Read(part, 0, bool(back))
                for part, back in zip(parts[n:], backwards, strict=False)
            ]
            each.append(self._scanned(node, parts[:n], reads, trips))
        return [self._splicer.stacked(column, 0, node) for column in zip(*each, strict=True)]

    def _scans(self, node: ir.Node, n_given: int, trips: int) -> bool:
        """Whether a ``Scan`` may be written out as ``trips`` iterations of a fitting body."""
        body = node.attributes["body"].as_graph()
        fits = _takes(body, n_given) and _returns(body, node)
        return fits and trips > 0 and self._is_small(body, trips)

    def _scanned(
        self, node: ir.Node, states: list[ir.Value], reads: Sequence[_Read], trips: int
    ) -> list[ir.Value]:
        """The results of the iterations of a ``Scan``."""
        body, n = node.attributes["body"].as_graph(), len(states)
        rows: list[list[ir.Value]] = []
        for trip in range(trips):
            slices = [
                self._splicer.taken(
                    read.whole, trips - 1 - trip if read.is_backwards else trip, read.axis, node
                )
                for read in reads
            ]
            results = self._splicer.body(body, [*states, *slices], node)
            states = results[:n]
            rows.append(results[n:])
        n_stacked = len(node.outputs) - n
        axes = _each(node, "scan_output_axes", n_stacked)
        directions = _each(node, "scan_output_directions", n_stacked)
        return [*states, *self._stacked(node, rows, axes, directions)]

    def _stacked(
        self,
        node: ir.Node,
        rows: Sequence[Sequence[ir.Value]],
        axes: Sequence[int],
        backwards: Sequence[int],
    ) -> list[ir.Value]:
        """For each stacked result of ``node``: that of every iteration, in a row each."""
        columns = zip(*rows, strict=True)
        return [
            self._splicer.stacked(column[::-1] if back else column, axis, node)
            for column, axis, back in zip(columns, axes, backwards, strict=False)
        ]

    def _is_small(self, body: ir.Graph, trips: int) -> bool:
        """Whether the iterations may be written out: they are few, and draw no numbers."""
        if self._splicer.n_nodes + trips * n_nodes(body) > MOST_NODES:
            return False
        return not any(node.op_type in _DRAWS for node in body.all_nodes())


def _graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """The main graph and the bodies below it that stay, outermost first."""
    pending = [model.graph]
    while pending:
        graph = pending.pop()
        yield graph
        pending.extend(body for node in graph for body in bodies(node))


def _present(values: Sequence[ir.Value | None]) -> list[ir.Value] | None:
    """``values``, if none is left out."""
    present = [value for value in values if value is not None]
    return present if len(present) == len(values) else None


def _takes(body: ir.Graph, count: int) -> bool:
    """Whether ``body`` has that many parameters."""
    return len(body.inputs) == count


def _returns(body: ir.Graph, node: ir.Node, more: int = 0) -> bool:
    """Whether ``body`` has a result for every output of ``node``, and ``more``."""
    return len(body.outputs) >= len(node.outputs) + more


def _each(node: ir.Node, name: str, count: int) -> Sequence[int]:
    """The attribute ``name``, a number for each of ``count`` tensors; 0 where it is absent."""
    return node.attributes.get_ints(name) or [0] * count


def _scalar(value: ir.Value | None) -> int | None:
    """The number in a constant of one element."""
    array = constant_value(value)
    return None if array is None or array.size != 1 else int(array.reshape(()).item())


def _trips(node: ir.Node, body: ir.Graph) -> int | None:
    """How often a ``Loop`` runs; ``None`` when that is not known yet."""
    limit, condition = node.inputs[0], node.inputs[1]
    runs = 1 if condition is None else _scalar(condition)
    if runs == 0:
        return 0
    go_on = body.outputs[0]
    while (maker := go_on.producer()) is not None and maker.op_type == "Identity":
        assert maker.inputs[0] is not None
        go_on = maker.inputs[0]
    stays = go_on is body.inputs[1] or (go_on is condition and condition is not None)
    again = 1 if stays else _scalar(go_on)
    if runs is None or again is None:
        return None
    most = _scalar(limit)
    if limit is not None and most is None:
        return None
    if not again:
        return 1 if most is None else max(0, min(most, 1))
    return None if most is None else max(0, most)


def _common_size(places: Sequence[tuple[ir.Value, int]]) -> int | None:
    """The one known size of values along axes."""
    sizes: set[object] = set()
    for value, axis in places:
        shape = dims(value)
        if shape is None or not -len(shape) <= axis < len(shape):
            return None
        sizes.add(shape[axis])
    size = sizes.pop() if len(sizes) == 1 else None
    return size if isinstance(size, int) else None
