"""Do no harm: time every kernel and the whole model against the original, keep what pays.

Kernels are first timed alone, on the values that reach them when the model runs, and clear
losers go.  What is left is judged where it counts, in the whole model, because ONNX Runtime
optimizes across a region's border (layouts of convolutions, its own fusions): kernels whose
removal makes the model faster go too, and when the rest does not win, all of it goes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir as ir

from tcfuse.ort.arrays import run
from tcfuse.ort.feeds import feeds
from tcfuse.ort.inference import open_session, ort_errors
from tcfuse.ort.model_feeds import model_feeds
from tcfuse.ort.stage import First, GateResult, Stage
from tcfuse.ort.subgraph import boundary, constant_of, function_of, instrumented, single_node
from tcfuse.ort.timing import Ratio, bind, interleave
from tcfuse.ort.whole import search
from tcfuse.targets.base import Interface

log = logging.getLogger(__name__)

CLEAR_LOSS = 0.9  # a kernel this slow alone, twice, is not tried in the whole model
ROUNDS_ALONE = 7
NOT_RUN = "the whole model could not be run; kernels were timed alone (try --input-shapes)"


def gate(stage: Stage) -> GateResult:
    """Measure, and decide what stays."""
    deadline = time.perf_counter() + stage.seconds
    first = run_once(stage)
    alone = time_alone(stage, {} if first is None else first.seen, deadline)
    dropped = {
        name: f"slower alone: {ratio.value:.2f} of the original's speed"
        for name, ratio in alone.items()
        if ratio.value < CLEAR_LOSS
    }
    kept = frozenset(stage.kernels) - dropped.keys()
    result = GateResult(kept, dropped, alone)
    if first is None:
        slow = {n: "not faster alone" for n in kept if n in alone and alone[n].value < 1.0}
        return replace(result, kept=kept - slow.keys(), dropped=dropped | slow, note=NOT_RUN)
    return search(stage, first, deadline, result) if kept else result


def run_once(stage: Stage) -> First | None:
    """The first runs; ``None`` if there are no inputs that the original runs on."""
    errors = ort_errors()
    names = boundary(stage.fused, [node for node, _ in stage.kernels.values()])
    for shapes in stage.guesses:
        inputs = model_feeds(stage.original, shapes)
        try:
            start = time.perf_counter()
            call = bind(open_session(stage.baseline), inputs)
            opening = time.perf_counter() - start
            (call_seconds,) = interleave({"": call}, 1)[""]
            del call  # its session holds a copy of the weights
            values = (
                run(open_session(instrumented(stage.fused, names)), inputs) if names else []
            )
        except errors as error:
            log.debug("the model does not run on %s: %s", shapes, error)
            continue
        return First(inputs, dict(zip(names, values, strict=True)), opening, call_seconds)
    return None


def time_alone(
    stage: Stage, seen: Mapping[str, np.ndarray], deadline: float
) -> dict[str, Ratio]:
    """Each kernel against its original; kernels that do not fit into the time are left out."""
    found: dict[str, Ratio] = {}
    end = (time.perf_counter() + deadline) / 2  # the other half is for the whole model
    for name, (node, interface) in stage.kernels.items():
        if time.perf_counter() > end:
            break
        inputs = _kernel_inputs(stage, node, interface, seen)
        if inputs is None:
            continue
        model = single_node(stage.fused, node, constants=True)
        try:
            ratio = _time_pair(model, stage.library, inputs)
            if ratio.value < CLEAR_LOSS:  # a loss counts when new sessions repeat it
                again = _time_pair(model, stage.library, inputs)
                ratio = max(ratio, again, key=lambda r: r.value)
        except ort_errors() as error:
            log.debug("%s cannot be timed: %s", name, error)
            continue
        found[name] = ratio
    return found


def _time_pair(model: ir.Model, library: Path, inputs: Mapping[str, np.ndarray]) -> Ratio:
    """One fused node with and without its kernel."""
    calls = {
        "before": bind(open_session(model), inputs),
        "after": bind(open_session(model, library), inputs),
    }
    times = interleave(calls, ROUNDS_ALONE)
    return Ratio.paired(times["before"], times["after"])


def _kernel_inputs(
    stage: Stage, node: ir.Node, interface: Interface, seen: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray] | None:
    """Values for a kernel's inputs: those seen in a run, else made up ones."""
    inputs: dict[str, np.ndarray] = {}
    for value in node.inputs:
        assert value is not None, f"{node.op_type} has an absent input"
        tensor = constant_of(value)
        if tensor is not None:
            inputs[str(value.name)] = tensor.numpy()
        elif value.name in seen:
            inputs[str(value.name)] = seen[str(value.name)]
    if len(inputs) == len(node.inputs):
        return inputs
    made = list(feeds(interface, function_of(stage.fused, node)))
    if not made:
        return None
    largest = max(
        (feed for feed in made if feed.fill == "normal"),
        key=lambda feed: sum(array.size for array in feed.arrays),
        default=made[0],
    )
    names = [str(value.name) for value in node.inputs if value is not None]
    return dict(zip(names, largest.arrays, strict=True))
