"""Find the kernels that make a whole model fastest.

ONNX Runtime optimizes across a region's border, so a kernel that is faster alone may cost more
than it brings: it may stand between convolutions that kept their blocked layout, or keep ONNX
Runtime from a fusion of its own.  Models without one group of kernels are measured side by side
with the model that has all; the group whose absence helps most goes, as long as one does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from tcfuse.ort.inference import open_session, weight_bytes
from tcfuse.ort.stage import First, GateResult, Stage
from tcfuse.ort.subgraph import fused_nodes
from tcfuse.ort.timing import BLOCK_SECONDS, Ratio, bind, interleave

log = logging.getLogger(__name__)

GAIN = 1.02  # below this a gain must be confirmed
PAYS = 1.01  # a group whose removal makes the model this much faster, twice, goes
LOSES = 0.97  # kernels this slow alone are left out if the model is faster without them
PROMISE = 0.7  # share of the kernels' own gains that the model should show
MOST_GROUPS = 12  # kernels beyond this are judged in groups
ROUNDS = 12
LOADS = 3  # where memory lies is worth some percent for a session's life
LOADS_APART = 2  # of each session where there is no room for two
MOST_BYTES = 768 << 20  # of weights in sessions beside the original's
BLOCKED = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool"}


def search(stage: Stage, first_runs: First, deadline: float, result: GateResult) -> GateResult:
    """Drop what does not pay in the whole model, and everything when nothing does.

    Args:
        stage: The model and its kernels.
        first_runs: What it runs on, and how long that takes.
        deadline: When to stop looking for something better.
        result: What was decided so far.
    """
    whole = Whole(
        stage, first_runs.inputs, deadline, first_runs.opening, first_runs.call_seconds
    )
    kept, dropped, note = result.kept, dict(result.dropped), result.note
    variants = {"all": kept}
    losers = {name for name, ratio in result.alone.items() if ratio.value < LOSES}
    if kept - losers and kept & losers:
        variants["winners"] = kept - losers
    found = whole.measure(variants)
    first = max(found, key=lambda name: found[name].value)
    kept, best = variants[first], found[first]
    if best.value < max(GAIN, whole.promised(result)):
        kept, best = whole.eliminate(kept, best)
    if best.value < GAIN and kept:
        again = whole.measure({"all": kept}, 2 * ROUNDS)["all"]
        best = min(best, again, key=lambda ratio: ratio.value)
    if best.value < 1.0:
        kept = frozenset()
        note = f"no gain: with kernels the model ran at {best.value:.3f} of its speed"
    for name in result.kept - kept:
        dropped[name] = "does not pay in the whole model"
    return replace(result, kept=kept, dropped=dropped, whole=best if kept else None, note=note)


@dataclass(frozen=True, slots=True)
class Whole:
    """Measurements of one model with some of its kernels.

    Units:
        ``opening`` and ``call_seconds``: seconds to open a session and to run it once.
    """

    stage: Stage
    inputs: Mapping[str, np.ndarray]
    deadline: float
    opening: float
    call_seconds: float

    def measure(
        self, variants: Mapping[str, frozenset[str]], rounds: int = ROUNDS
    ) -> dict[str, Ratio]:
        """Speedup over the original of the model with each set of kernels.

        As many as fit into memory are measured in one go, beside the original.
        """
        beside = MOST_BYTES // max(1, weight_bytes(self.stage.original))
        names, found = list(variants), dict[str, Ratio]()
        for start in range(0, len(names), max(1, beside)):
            batch = {name: variants[name] for name in names[start : start + max(1, beside)]}
            times = self._together(batch, rounds) if beside else self._apart(batch, rounds)
            found |= {name: Ratio.paired(times[""], times[name]) for name in batch}
        return found

    def _together(
        self, variants: Mapping[str, frozenset[str]], rounds: int
    ) -> dict[str, list[float]]:
        """Seconds a call of the original, whose name is empty, and of variants, in turn."""
        times: dict[str, list[float]] = {}
        loads = LOADS if self.opening < 0.5 else 1
        for load in range(loads):
            calls = {name: self._open(kernels) for name, kernels in variants.items()}
            calls = {"": self._open(None), **calls}
            for name, found in interleave(calls, (rounds + load) // loads).items():
                times.setdefault(name, []).extend(found)
        return times

    def _apart(
        self, variants: Mapping[str, frozenset[str]], rounds: int
    ) -> dict[str, list[float]]:
        """The same with one session at a time."""
        times: dict[str, list[float]] = {}
        order: list[tuple[str, frozenset[str] | None]] = [("", None), *variants.items()]
        for load in range(LOADS_APART):
            for name, kernels in order if load % 2 == 0 else order[::-1]:
                found = interleave({name: self._open(kernels)}, rounds // LOADS_APART)
                times.setdefault(name, []).extend(found[name])
        return times

    def _open(self, kernels: frozenset[str] | None) -> Callable[[], Any]:
        """A call of the model with those kernels, or of the original."""
        if kernels is None:
            return bind(open_session(self.stage.baseline), self.inputs)
        return bind(open_session(self.stage.build(kernels), self.stage.library), self.inputs)

    def promised(self, result: GateResult) -> float:
        """The speedup that the kernels' own gains add up to, with some slack."""
        total_us = self.call_seconds * 1e6
        uses: dict[str, int] = {}
        for node in fused_nodes(self.stage.fused):
            uses[node.op_type] = uses.get(node.op_type, 0) + 1
        saved_us = sum(
            (ratio.before_us - ratio.after_us) * uses.get(name, 0)
            for name, ratio in result.alone.items()
            if name in result.kept
        )
        return 1.0 + PROMISE * (total_us / max(total_us - saved_us, total_us * 0.1) - 1.0)

    def eliminate(self, kept: frozenset[str], best: Ratio) -> tuple[frozenset[str], Ratio]:
        """Leave out groups as long as that helps and time is left."""
        while (groups := self.groups(kept)) and time.perf_counter() < self.deadline:
            without = {str(k): kept - group for k, group in enumerate(groups)}
            found = self.measure({"all": kept, **without})
            base = found.pop("all")
            winner = max(found, key=lambda name: found[name].value)
            if found[winner].value < base.value * PAYS:
                return kept, base
            pair = self.measure({"with": kept, "without": without[winner]})
            if pair["without"].value < pair["with"].value * PAYS:
                return kept, pair["with"]
            log.debug("without %s: %.3f", sorted(groups[int(winner)]), pair["without"].value)
            kept, best = without[winner], pair["without"]
        return kept, best

    def groups(self, kept: frozenset[str]) -> list[frozenset[str]]:
        """What to try without: kernels one by one, or as many neighbours as time asks for."""
        names = [name for name in self.stage.kernels if name in kept]
        cost = LOADS * self.opening + 2 * ROUNDS * max(self.call_seconds, BLOCK_SECONDS)
        affordable = int((self.deadline - time.perf_counter()) / cost) - 4
        n_groups = min(MOST_GROUPS, affordable, len(names))
        if n_groups < 1 or len(names) < 2:
            return []
        size = -(-len(names) // n_groups)
        found = [frozenset(names[i : i + size]) for i in range(0, len(names), size)]
        blocked = beside_convolutions(self.stage.fused) & kept
        if 1 < len(blocked) < len(kept):
            found.append(blocked)
        return [group for group in found if group < kept]


def beside_convolutions(model: ir.Model) -> frozenset[str]:
    """Kernels that read from or feed an operator with a blocked layout."""
    found: set[str] = set()
    for node in fused_nodes(model):
        makers = [v.producer() for v in node.inputs if v is not None]
        readers = [use.node for v in node.outputs for use in v.uses()]
        if any(other is not None and other.op_type in BLOCKED for other in (*makers, *readers)):
            found.add(node.op_type)
    return frozenset(found)
