"""Rates of ONNX Runtime's own kernels on this machine, one thread.

Each kernel runs as a model of one node on tensors of a quarter of a MiB, which fit the second
level of a cache together; in whole models most values come from there.  Its rate is the bytes
read and written over the time beyond that of a node with nothing to do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir

from tcfuse.graph.traffic import PARTIAL
from tcfuse.ort.inference import open_session, ort_errors
from tcfuse.ort.native_subjects import SUBJECTS, Subject
from tcfuse.ort.timing import bind

BLOCK_SECONDS = 1.5e-3
BLOCKS = 6
CHAINS = (40, 200)
"""Lengths of two chains of nodes, whose difference is what nodes cost."""


def _model(
    inputs: Sequence[ir.Value], fixed: Sequence[ir.Value], nodes: Sequence[ir.Node]
) -> ir.Model:
    opsets = {"": 20, "com.microsoft": 1, "com.microsoft.nchwc": 1}
    graph = ir.Graph(
        inputs,
        nodes[-1].outputs,
        nodes=nodes,
        initializers=fixed,
        opset_imports=opsets,
        name="measured",
    )
    return ir.Model(graph, ir_version=9)


def native_us() -> float:
    """Microseconds that one of ONNX Runtime's nodes costs whatever it does."""
    array = np.ones(1, np.float32)
    times = []
    for length in CHAINS:
        value = first = ir.val("x", ir.DataType.FLOAT, [1])
        nodes = []
        for k in range(length):
            nodes.append(ir.node("Abs", [value]))
            (value,) = nodes[-1].outputs
            value.name = f"y{k}"
        times.append(call_us(_model([first], [], nodes), {"x": array}))
    return (times[1] - times[0]) / (CHAINS[1] - CHAINS[0])


def session_us() -> float:
    """Microseconds of running a session of one node that does nothing."""
    x = ir.val("x", ir.DataType.FLOAT, [1])
    node = ir.node("Abs", [x])
    node.outputs[0].name = "y"
    return call_us(_model([x], [], [node]), {"x": np.ones(1, np.float32)})


def call_us(
    model: ir.Model, inputs: Mapping[str, np.ndarray], library: Path | None = None
) -> float:
    """Microseconds of processor time a call takes: a low one of several medians."""
    call = bind(open_session(model, library), inputs)
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    n_calls = max(1, min(2000, int(BLOCK_SECONDS / once)))
    times = []
    for _ in range(BLOCKS):
        call()  # brings its memory back into the caches
        start = time.process_time()
        for _ in range(n_calls):
            call()
        times.append((time.process_time() - start) / n_calls)
    return sorted(times)[1] * 1e6


def measure_native() -> Iterator[tuple[str, float]]:
    """The rate of each kernel that this version of ONNX Runtime has, in bytes a microsecond."""
    idle = session_us()
    for subject in SUBJECTS:
        try:
            yield subject.name, _rate(subject, idle)
        except ort_errors():
            continue  # a version without this kernel


def _of(subject: Subject, arrays: Sequence[np.ndarray]) -> ir.Model:
    """A model of one node."""
    values: list[ir.Value] = []
    fixed: list[ir.Value] = []
    for k, (given, array) in enumerate(zip(subject.inputs, arrays, strict=True)):
        values.append(ir.val(f"x{k}", ir.DataType.from_numpy(array.dtype), array.shape))
        if isinstance(given, np.ndarray):
            values[-1].const_value = ir.tensor(array, name=f"x{k}")
            fixed.append(values[-1])
    op_type = subject.name.partition(":")[0]
    given_attributes = dict(subject.attributes)
    node = ir.node(
        op_type, values, given_attributes, domain=subject.domain, num_outputs=subject.n_outputs
    )
    for k, output in enumerate(node.outputs):
        output.name = f"y{k}"
    return _model([v for v in values if v not in fixed], fixed, [node])


def _rate(subject: Subject, idle: float) -> float:
    rng = np.random.default_rng(0)
    arrays = [i if isinstance(i, np.ndarray) else i(rng) for i in subject.inputs]
    model = _of(subject, arrays)
    names = {str(value.name) for value in model.graph.inputs}
    inputs = {f"x{k}": a for k, a in enumerate(arrays) if f"x{k}" in names}
    outputs = open_session(model).run(None, inputs)
    written = sum(array.nbytes for array in outputs)
    read = [array.nbytes for array in arrays]
    if subject.name in PARTIAL:
        read[0] = min(read[0], written)
    used = max(call_us(model, inputs) - idle, idle / 10)
    return float(written + sum(read)) / used
