"""What this machine does: ONNX Runtime's kernels and ours, measured in a few seconds.

Everything runs on one thread and is timed by the processor time of the process, so other
programs on the machine disturb little.  Our own kernels are compiled as for any model: a
product and a sum on tensors of several sizes tell the bandwidth, and functions of values that
stay in the cache the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir

from tcfuse.graph.cost import OPERATIONS
from tcfuse.graph.machine import Machine
from tcfuse.ort.native_rates import call_us, measure_native, native_us, session_us
from tcfuse.ort.native_subjects import SUBJECTS
from tcfuse.pipeline import optimize
from tcfuse.processor import processor
from tcfuse.result import Result

Progress = Callable[[str, float], object]
"""Called with what is measured next, and how much is done, from 0 to 1."""

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
SECOND, LAST = 1 << 20, 1 << 25
"""Bytes of the second and the last level where the system does not tell."""

MOST_BYTES = 1 << 28
"""Of the largest working set, which must not fit the last level."""

FUNCTIONS = ("Sigmoid", "Mul")
FEW = 1 << 14  # elements that stay in the first levels, and take some microseconds
CHAIN = 64  # nodes in a row, which share the cost of calling a session


def measure(progress: Progress = lambda text, done: None) -> Machine:
    """The rates of this machine, as they were measured."""
    n_steps = len(SUBJECTS) + 4
    rates: dict[str, float] = {}
    for name, rate in measure_native():
        rates[name] = rate
        progress(f"{name} of ONNX Runtime", len(rates) / n_steps)
    progress("a kernel that moves data", (n_steps - 4) / n_steps)
    moving = _optimized(["Mul", "Add"])
    idle = session_us()
    bandwidth = tuple(
        (limit, _copy_rate(moving, size, idle)) for limit, size in _working_sets()
    )
    progress("a kernel that computes", (n_steps - 2) / n_steps)
    computing = _call_us(_optimized(FUNCTIONS), FEW) - idle
    cycles = sum(OPERATIONS.get(name, 1) for name in FUNCTIONS) * FEW / 16
    progress("calls of kernels", (n_steps - 1) / n_steps)
    reorders = [rates.pop(name) for name in ("ReorderInput", "ReorderOutput") if name in rates]
    return Machine(
        name=processor(),
        hertz=cycles / computing * 1e6,
        native_us=native_us(),
        fused_us=_fused_us(moving, idle),
        session_us=idle,
        bandwidth=bandwidth,
        reorder_rate=_mean(reorders) if reorders else rates["Transpose"],
        other_rate=_mean(list(rates.values())),
        rates=rates,
    )


def _mean(rates: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, rates)) / len(rates))


def _optimized(operators: Sequence[str]) -> Result:
    """A chain of operators on one input ``x``, which may also be their second operand."""
    x = value = ir.val("x", ir.DataType.FLOAT, ["N"])
    nodes = []
    for operator in operators:
        nodes.append(ir.node(operator, [value, x] if operator in ("Add", "Mul") else [value]))
        (value,) = nodes[-1].outputs
    value.name, value.dtype, value.shape = "y", ir.DataType.FLOAT, ir.Shape(["N"])
    graph = ir.Graph([x], [value], nodes=nodes, opset_imports={"": 17}, name="measured")
    return optimize(ir.Model(graph, ir_version=8), gate=False, verify=False)


def _call_us(result: Result, n_elements: int) -> float:
    """Microseconds of a call on so many elements."""
    x = np.random.default_rng(0).standard_normal(n_elements).astype(np.float32)
    return call_us(result.model, {"x": x}, result.library)


def _copy_rate(result: Result, n_bytes: int, idle: float) -> float:
    """Bytes a microsecond, read and written, of a kernel with one input and one output."""
    used = _call_us(result, n_bytes // 8) - idle
    return n_bytes / max(used, idle / 10)


def _fused_us(result: Result, idle: float) -> float:
    """What one of our nodes costs in a chain of them."""
    (node,) = result.model.graph
    x = value = ir.val("x", ir.DataType.FLOAT, ["N"])
    nodes = []
    for k in range(CHAIN):
        nodes.append(ir.node(node.op_type, [value], domain=node.domain))
        (value,) = nodes[-1].outputs
        value.name = f"y{k}"
    opsets = dict(result.model.opset_imports)
    graph = ir.Graph([x], [value], nodes=nodes, opset_imports=opsets, name="measured")
    functions = list(result.model.functions.values())
    model = ir.Model(graph, ir_version=8, functions=functions)
    used = call_us(model, {"x": np.ones(1, np.float32)}, result.library)
    return max(used - idle, 0.0) / (CHAIN - 1)


def _working_sets() -> list[tuple[float, int]]:
    """Up to which working set a rate holds, and with which it is measured; all in bytes."""
    second, last = _cache_bytes(2) or SECOND, _cache_bytes(3) or LAST
    between = int(math.sqrt(second * last))
    beyond = min(4 * last, MOST_BYTES)
    return [(second, second // 2), (last, between), (math.inf, beyond)]


def _cache_bytes(level: int) -> int:
    """The size of a level of the cache; 0 when the system does not tell."""
    for folder in sorted(CACHES.glob("index*")):
        try:
            if int((folder / "level").read_text()) == level:
                size = (folder / "size").read_text().strip()
                return int(size.removesuffix("K")) << 10
        except (OSError, ValueError):
            continue
    return 0
