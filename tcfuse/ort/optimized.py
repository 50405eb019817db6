"""The graph that ONNX Runtime makes of a model for the CPU of this machine.

Its convolutions hand blocked tensors to each other there (``graph.blocked``).  The block is
asked of ONNX Runtime itself, by the filters of a convolution of one channel.
"""

from __future__ import annotations

import functools
import platform
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from tcfuse.graph.blocked import is_blocked_model, mark
from tcfuse.ort.inference import open_session, ort_errors, weight_bytes
from tcfuse.targets.compilers import is_x86

MOST_BYTES = 768 << 20
"""Of weights: they are written, read and kept in memory once more."""

BLOCKED_OPERATORS = frozenset({"AveragePool", "Conv", "GlobalAveragePool", "MaxPool"})
"""Without one of these nothing becomes blocked."""


def may_be_blocked(model: ir.Model) -> bool:
    """Whether it is worth asking ONNX Runtime for a graph with blocked tensors."""
    convolves = any(node.op_type in BLOCKED_OPERATORS for node in model.graph.all_nodes())
    return convolves and weight_bytes(model) <= MOST_BYTES and native_block() > 0


def blocked_graph(model: ir.Model | Path) -> onnx.ModelProto | None:
    """What ONNX Runtime makes of a model, if that has blocked tensors; the block is marked."""
    try:
        graph = _optimized(model)
    except ort_errors():  # a model that cannot be loaded, or not be written as one file
        return None
    if not is_blocked_model(graph):
        return None
    _order(graph.graph)
    _import_what_is_used(graph)
    mark(graph, native_block())
    return graph


def _optimized(model: ir.Model | Path) -> onnx.ModelProto:
    """The graph of a session, with its weights."""
    with tempfile.TemporaryDirectory(prefix="tcfuse-") as folder:
        path = Path(folder) / "optimized.onnx"
        session = open_session(model, save_to=path)
        graph = onnx.load(path)
    given = (*session.get_inputs(), *session.get_overridable_initializers())
    _keep_inputs(graph.graph, {value.name for value in given})
    return graph


def _order(graph: onnx.GraphProto) -> None:
    """Put nodes in order of depth; those that would have one name are told apart by place.

    ONNX Runtime has another order in every run, and numbers all but one of equal names as it
    comes to them; equal models shall have equal graphs.
    """
    depth: dict[str, int] = {}
    ranked: list[tuple[int, tuple[str, ...], onnx.NodeProto]] = []
    for node in graph.node:
        level = 1 + max((depth.get(name, 0) for name in _read_names(node)), default=0)
        depth |= dict.fromkeys(node.output, level)
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        ranked.append((level, tuple(node.output), copy))
    ranked.sort(key=lambda item: item[:2])
    bases = [re.sub(r"_token_\d+$", "", node.name) for _, _, node in ranked]
    count = Counter(bases)
    del graph.node[:]
    for place, (base, (_, _, node)) in enumerate(zip(bases, ranked, strict=True)):
        node.name = base if count[base] == 1 else f"{base}_n{place}"
        graph.node.append(node)


def _import_what_is_used(model: onnx.ModelProto) -> None:
    """Import, in order, the domains of operators that are there.

    ONNX Runtime imports every domain that its process has heard of, ours too where a library
    of kernels was loaded before.
    """
    waiting = [*model.graph.node, *(n for function in model.functions for n in function.node)]
    used = {"", *(function.domain for function in model.functions)}
    while waiting:
        node = waiting.pop()
        used.add(node.domain)
        waiting.extend(inner for body in _bodies(node) for inner in body.node)
    kept = sorted((o for o in model.opset_import if o.domain in used), key=lambda o: o.domain)
    del model.opset_import[:]
    model.opset_import.extend(kept)


def _read_names(node: onnx.NodeProto) -> Iterator[str]:
    """The names of the values that a node reads, with those that its bodies read or return."""
    yield from node.input
    for body in _bodies(node):
        yield from (value.name for value in body.output)
        for inner in body.node:
            yield from _read_names(inner)


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that the attributes of a node hold."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _keep_inputs(graph: onnx.GraphProto, names: set[str]) -> None:
    """Leave ``graph`` those inputs, which the model had.

    Files of IR versions before 4 list every initializer among the inputs; one that was folded
    away is still listed in what ONNX Runtime writes, and would have to be fed.
    """
    kept = [value for value in graph.input if value.name in names]
    del graph.input[:]
    graph.input.extend(kept)


@functools.cache
def native_block() -> int:
    """Channels in a block on this machine; 0 when nothing is blocked here, or not known of."""
    if not is_x86(platform.machine()):
        return 0  # the library could not tell whether a machine has the same block
    image = ir.Value(
        name="x", shape=ir.Shape([1, 1, 4, 4]), type=ir.TensorType(ir.DataType.FLOAT)
    )
    filters = ir.Value(
        name="w",
        shape=ir.Shape([1, 1, 1, 1]),
        type=ir.TensorType(ir.DataType.FLOAT),
        const_value=ir.Tensor(np.ones((1, 1, 1, 1), np.float32), name="w"),
    )
    node = ir.Node("", "Conv", [image, filters])
    (result,) = node.outputs
    result.name, result.type = "y", ir.TensorType(ir.DataType.FLOAT)
    graph = ir.Graph(
        [image], [result], nodes=[node], initializers=[filters], opset_imports={"": 17}
    )
    try:
        made = _optimized(ir.Model(graph, ir_version=8))
    except ort_errors():
        return 0
    sizes = [tensor.dims[0] for tensor in made.graph.initializer if len(tensor.dims) == 4]
    return int(sizes[0]) if is_blocked_model(made) and sizes else 0
