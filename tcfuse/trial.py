"""Try compiled kernels on the model they are for: are they right, and do they pay?

Answers are kept in the store, addressed by the kernel, the machine and the versions, so that a
warm run measures nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from tcfuse import profile
from tcfuse.attempt import Attempt
from tcfuse.graph.rewrite import rewrite
from tcfuse.kernels import Compiled
from tcfuse.ort.gate import gate
from tcfuse.ort.inference import runtime
from tcfuse.ort.model_feeds import Wishes, shape_guesses
from tcfuse.ort.stage import GateResult, Stage
from tcfuse.ort.subgraph import one_of_each
from tcfuse.ort.timing import Ratio
from tcfuse.ort.verify import Subject, Verification, verify_kernel
from tcfuse.processor import processor
from tcfuse.profile import timed
from tcfuse.store import Store, key_of, tool_digest
from tcfuse.wisdom.verdict import GATE, Verdict, Verdicts
from tcfuse.wisdom.versions import current_versions

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Trial:
    """Kernels for the CPU and the model they may go into.

    Attributes:
        model: The model before, as it was loaded.
        baseline: What ONNX Runtime would run without us; ``None``: the model itself.
        attempts: Regions with such a kernel.
        library: Holds all kernels.
    """

    model: ir.Model
    baseline: Path | ir.Model | None
    attempts: Sequence[Attempt]
    library: Path
    store: Store

    def kernels(self) -> dict[str, Compiled]:
        """One region for each kernel, by the kernel's name."""
        first: dict[str, Compiled] = {}
        for attempt in self.attempts:
            if attempt.compiled is not None:
                first.setdefault(attempt.name, attempt.compiled)
        return first

    @property
    def on_gpus(self) -> frozenset[str]:
        """Names of those operators that have a kernel for GPUs too."""
        return frozenset(attempt.name for attempt in self.attempts if attempt.on_gpus)

    def only(self, names: frozenset[str]) -> Trial:
        """The same trial with those kernels."""
        return replace(self, attempts=[a for a in self.attempts if a.name in names])

    def build(self, names: frozenset[str]) -> ir.Model:
        """The model with the kernels of those names."""
        return rewrite(self.model, [a.replacement() for a in self.attempts if a.name in names])


@timed("verification")
def verify_all(trial: Trial, progress: Callable[[str], object]) -> dict[str, Verification]:
    """Run every kernel against its original; from the store where that was done before."""
    found: dict[str, Verification] = {}
    nodes: dict[str, ir.Node] = {}
    model: ir.Model | None = None
    kernels = trial.kernels()
    for count, (name, compiled) in enumerate(kernels.items(), 1):
        made = compiled.kernels
        key = key_of(made.key, runtime().__version__, tool_digest())
        record = trial.store.get("verifications", key)
        profile.found("verification", record)
        if record is None:
            progress(f"verifying kernel {count} of {len(kernels)}")
            if model is None:
                model = trial.build(frozenset(kernels))
                nodes = one_of_each(model)
            subject = Subject(
                model,
                nodes[name],
                trial.library,
                made.definition(),
                made.interface,
            )
            try:
                record = asdict(verify_kernel(subject))
            except Exception as error:  # the same border as where kernels are compiled
                log.warning("internal error in verifying %s", name, exc_info=True)
                text = " ".join(f"{type(error).__name__}: {error}".split())
                found[name] = Verification(f"internal error: {text[:300]}", math.inf, 0.0, 0)
                continue
            trial.store.put("verifications", key, record)
        found[name] = Verification(**record)
    return found


@timed("gate")
def gate_all(
    trial: Trial, wishes: Wishes, progress: Callable[[str], object], verdicts: Verdicts
) -> GateResult:
    """Keep what pays; by a verdict, or from the store, where that was measured before."""
    guesses = tuple(shape_guesses(trial.model, wishes))
    kernels = trial.kernels()
    subject = key_of(structure(trial.model), guesses)
    verdict = Verdict(
        GATE, subject, tuple(sorted(kernels)), processor(), verdict_versions(), {}
    )
    if (decided := verdicts.find(verdict, trial.store)) is not None:
        profile.found("gate", decided)
        return gate_from_json(decided)
    key = key_of(
        structure(trial.model),
        [a.compiled.kernels.key for a in trial.attempts if a.compiled is not None],
        guesses,
        processor(),
        runtime().__version__,
        tool_digest(),
    )
    record = trial.store.get("gates", key)
    profile.found("gate", record)
    if record is not None:
        return gate_from_json(record["record"])
    progress(f"timing {len(kernels)} kernels and the model")
    fused = trial.build(frozenset(kernels))
    nodes = one_of_each(fused)
    stage = Stage(
        original=trial.model,
        baseline=trial.baseline or trial.model,
        build=trial.build,
        library=trial.library,
        fused=fused,
        kernels={n: (nodes[n], c.kernels.interface) for n, c in kernels.items()},
        guesses=guesses,
    )
    result = gate(stage)
    trial.store.put("gates", key, replace(verdict, record=gate_to_json(result)).to_record())
    return result


def verdict_versions() -> dict[str, str]:
    """The versions that a verdict holds for."""
    return {**current_versions(), "onnxruntime": runtime().__version__}


def gate_to_json(result: GateResult) -> dict[str, Any]:
    """A gate's result as JSON; ``gate_from_json`` reads it back."""
    return {
        "kept": sorted(result.kept),
        "dropped": dict(result.dropped),
        "alone": {name: asdict(ratio) for name, ratio in result.alone.items()},
        "whole": None if result.whole is None else asdict(result.whole),
        "note": result.note,
    }


def gate_from_json(record: Mapping[str, Any]) -> GateResult:
    """The gate's result a record describes."""
    return GateResult(
        kept=frozenset(record["kept"]),
        dropped=record["dropped"],
        alone={name: Ratio(**ratio) for name, ratio in record["alone"].items()},
        whole=None if record["whole"] is None else Ratio(**record["whole"]),
        note=record["note"],
    )


def structure(model: ir.Model) -> str:
    """A digest of everything about a model that matters for its speed, weights left out."""
    parts: list[str] = []
    for node in model.graph.all_nodes():
        sizes = [f"{v.dtype}{v.shape}" if v is not None else "" for v in node.inputs]
        attributes = [
            f"{a.name}={a.value}"
            for a in node.attributes.values()
            if a.type not in (ir.AttributeType.TENSOR, ir.AttributeType.GRAPH)
        ]
        parts.append(f"{node.domain}:{node.op_type} {sizes} {attributes}")
    return key_of(*parts)
