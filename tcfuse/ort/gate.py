"""Do no harm: time every kernel and the whole model against the original, keep what pays.

Kernels are first timed alone, on the values that reach them when the model runs, and clear
losers go.  What is left is judged where it counts, in the whole model, because ONNX Runtime
optimizes across a region's border (layouts of convolutions, its own fusions): kernels whose
removal makes the model faster go too, and when the rest does not win, all of it goes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx_ir as ir

from tcfuse.ort.feeds import feeds
from tcfuse.ort.inference import open_session, ort_errors, run
from tcfuse.ort.model_feeds import model_feeds
from tcfuse.ort.subgraph import boundary, constant_of, function_of, instrumented, single_node
from tcfuse.ort.timing import Ratio, bind, interleave
from tcfuse.targets.base import Interface

log = logging.getLogger(__name__)

CLEAR_LOSS = 0.9  # a kernel this slow alone is not tried in the whole model
GAIN = 1.02  # below this a gain must be confirmed
PAYS = 1.005  # a group whose removal makes the model this much faster goes
MOST_GROUPS = 12  # kernels beyond this are judged in groups
ROUNDS = 9

Build = Callable[[frozenset[str]], ir.Model]
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class GateResult:
    """What was kept and what it brings.

    Attributes:
        kept: Names of the kernels that stay.
        dropped: Reason for each kernel that goes.
        alone: Each kernel's own time against its original's.
        whole: The whole model; ``None`` when it could not be run.
        note: What else a user should know.
    """

    kept: frozenset[str]
    dropped: Mapping[str, str] = field(default_factory=dict)
    alone: Mapping[str, Ratio] = field(default_factory=dict)
    whole: Ratio | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the gate works on.

    Attributes:
        original: The model before.
        baseline: What runs without us: the file it came from, where there is one.
        build: The model with the kernels of those names.
        library: Holds all kernels.
        kernels: One fused node for each kernel, with its interface.
        fused: The model with all kernels.
        guesses: Input shapes to try in turn.
        seconds: About how long measuring may take.
    """

    original: ir.Model
    baseline: ir.Model | Path
    build: Build
    library: Path
    fused: ir.Model
    kernels: Mapping[str, tuple[ir.Node, Interface]]
    guesses: tuple[Shapes, ...]
    seconds: float = 20.0


def gate(stage: Stage) -> GateResult:
    """Measure, and decide what stays."""
    deadline = time.perf_counter() + stage.seconds
    inputs, seen = run_once(stage)
    alone = time_alone(stage, seen, deadline)
    dropped = {
        name: f"slower alone: {ratio.value:.2f} of the original's speed"
        for name, ratio in alone.items()
        if ratio.value < CLEAR_LOSS
    }
    kept = frozenset(stage.kernels) - dropped.keys()
    result = GateResult(kept, dropped, alone)
    if inputs is None:
        slow = {n: "not faster alone" for n in kept if n in alone and alone[n].value < 1.0}
        note = "the whole model could not be run; kernels were timed alone (try --input-shapes)"
        return replace(result, kept=kept - slow.keys(), dropped=dropped | slow, note=note)
    return Whole(stage, inputs, deadline).decide(result) if kept else result


def run_once(stage: Stage) -> tuple[dict[str, np.ndarray] | None, dict[str, np.ndarray]]:
    """Inputs the original runs on (``None``: there are none), and the values kernels read."""
    errors = ort_errors()
    names = boundary(stage.fused, [node for node, _ in stage.kernels.values()])
    for shapes in stage.guesses:
        inputs = model_feeds(stage.original, shapes)
        try:
            session = open_session(stage.baseline)
            run(session, inputs)
            if not names:
                return inputs, {}
            values = run(open_session(instrumented(stage.fused, names)), inputs)
        except errors as error:
            log.debug("the model does not run on %s: %s", shapes, error)
            continue
        return inputs, dict(zip(names, values, strict=True))
    return None, {}


def time_alone(
    stage: Stage, seen: Mapping[str, np.ndarray], deadline: float
) -> dict[str, Ratio]:
    """Each kernel against its original; kernels that do not fit into the time are left out."""
    found: dict[str, Ratio] = {}
    share = (deadline - time.perf_counter()) / 2
    end = time.perf_counter() + share
    for name, (node, interface) in stage.kernels.items():
        if time.perf_counter() > end:
            break
        inputs = _kernel_inputs(stage, node, interface, seen)
        if inputs is None:
            continue
        model = single_node(stage.fused, node, constants=True)
        try:
            calls = {
                "before": bind(open_session(model), inputs),
                "after": bind(open_session(model, stage.library), inputs),
            }
        except ort_errors() as error:
            log.debug("%s cannot be timed: %s", name, error)
            continue
        times = interleave(calls, 5)
        found[name] = Ratio.paired(times["before"], times["after"])
    return found


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
        (feed for feed in made if feed.label.startswith("normal")),
        key=lambda feed: sum(array.size for array in feed.arrays),
        default=made[0],
    )
    names = [str(value.name) for value in node.inputs if value is not None]
    return dict(zip(names, largest.arrays, strict=True))


@dataclass(frozen=True, slots=True)
class Whole:
    """The search for the kernels that make the whole model fastest."""

    stage: Stage
    inputs: Mapping[str, np.ndarray]
    deadline: float

    def decide(self, result: GateResult) -> GateResult:
        """Drop what does not pay in the whole model."""
        kept, dropped = result.kept, dict(result.dropped)
        best = self.measure({"all": kept})["all"]
        if best.value < self.promised(result) or best.value < GAIN:
            kept, best = self.eliminate(kept, best)
        if best.value < GAIN and kept:
            again = self.measure({"all": kept}, ROUNDS * 2)["all"]
            best = again if again.value < best.value else best
        note = result.note
        if best.value < 1.0 or not kept:
            kept, note = frozenset(), f"no gain: the model ran at {best.value:.3f} of its speed"
        for name in result.kept - kept:
            dropped[name] = "does not pay in the whole model"
        whole = best if kept else None
        return replace(result, kept=kept, dropped=dropped, whole=whole, note=note)

    def promised(self, result: GateResult) -> float:
        """The speedup that the kernels' own gains add up to, with some slack."""
        call = bind(open_session(self.stage.baseline), self.inputs)
        total = interleave({"original": call}, 3)["original"]
        total_us = float(np.median(total)) * 1e6
        saved = sum(
            (ratio.before_us - ratio.after_us) * self.uses(name)
            for name, ratio in result.alone.items()
            if name in result.kept
        )
        return 1.0 + 0.7 * (total_us / max(total_us - saved, total_us * 0.1) - 1.0)

    def uses(self, name: str) -> int:
        """How often a kernel occurs in the model."""
        return sum(node.op_type == name for node in self.stage.fused.graph.all_nodes())

    def measure(
        self, variants: Mapping[str, frozenset[str]], rounds: int = ROUNDS
    ) -> dict[str, Ratio]:
        """Speedup over the original of the model with each set of kernels, in one go."""
        times: dict[str, list[float]] = {}
        for load in range(2):  # where memory lies is worth some percent for a session's life
            calls = {"": bind(open_session(self.stage.baseline), self.inputs)}
            for name, kernels in variants.items():
                model = self.stage.build(kernels)
                calls[name] = bind(open_session(model, self.stage.library), self.inputs)
            for name, found in interleave(calls, (rounds + load) // 2).items():
                times.setdefault(name, []).extend(found)
            if time.perf_counter() > self.deadline:
                break
        return {name: Ratio.paired(times[""], times[name]) for name in variants}

    def eliminate(self, kept: frozenset[str], best: Ratio) -> tuple[frozenset[str], Ratio]:
        """Leave out the group whose absence helps most, while one does and time is left."""
        groups = self.groups(kept)
        while groups and time.perf_counter() < self.deadline:
            without = {str(k): kept - group for k, group in enumerate(groups) if kept - group}
            found = self.measure({"all": kept, **without})
            base = found.pop("all")
            if not found:
                break
            winner = max(found, key=lambda name: found[name].value)
            if found[winner].value < base.value * PAYS:
                return kept, base
            kept, best = without[winner], found[winner]
            groups.pop(int(winner))
        return kept, best

    def groups(self, kept: frozenset[str]) -> list[frozenset[str]]:
        """The kernels, one by one or, when there are many, in groups of neighbours."""
        names = [name for name in self.stage.kernels if name in kept]
        size = -(-len(names) // MOST_GROUPS)
        return [frozenset(names[i : i + size]) for i in range(0, len(names), size or 1)]
