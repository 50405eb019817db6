"""One region on its way to a kernel, and what the report says about it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from tcfuse.graph.fallback import body_digest
from tcfuse.graph.fusion import halves, split
from tcfuse.graph.plan import FusionGroup, FusionPlan
from tcfuse.graph.rewrite import Replacement
from tcfuse.kernels import Compiled
from tcfuse.options import OptimizeOptions
from tcfuse.ort.manifest import RegionReport, Report, versions
from tcfuse.ort.record import interface_to_json
from tcfuse.ort.stage import GateResult
from tcfuse.ort.verify import Verification, reject_reason
from tcfuse.planning import predicted
from tcfuse.run import Run
from tcfuse.tc.compose import ComposeError, TooLargeError

log = logging.getLogger(__name__)

TC_KEY = "tcfuse.tc"
MOST_SPLITS = 16  # parts one region may fall into when some of it cannot be composed


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """A region with its kernels, or with the reason why there are none.

    Attributes:
        body: A digest of the original operators; regions of one name must agree in it.
    """

    group: FusionGroup
    compiled: Compiled | None = None
    reason: str = ""
    body: str = field(init=False)

    def __post_init__(self) -> None:
        made = self.compiled
        body = body_digest(self.group, made.inputs, made.outputs) if made is not None else ""
        object.__setattr__(self, "body", body)

    @property
    def name(self) -> str:
        """The kernel's name; empty when there is none."""
        return "" if self.compiled is None else self.compiled.kernels.name

    @property
    def on_gpus(self) -> bool:
        """Whether there is a kernel for GPUs."""
        return self.compiled is not None and self.compiled.kernels.cuda is not None

    def without_cuda(self, reason: str) -> Attempt:
        """The same region without its kernel for GPUs; refused if it has no other."""
        if self.compiled is None or self.compiled.kernels.cpu is None:
            return Attempt(self.group, reason=reason)
        kernels = replace(self.compiled.kernels, cuda=None, without_cuda=reason)
        return Attempt(self.group, replace(self.compiled, kernels=kernels))

    def replacement(self) -> Replacement:
        """What ``graph.rewrite`` needs to put the kernel into the model."""
        assert self.compiled is not None, "a refused region replaces nothing"
        text = self.compiled.kernels.tc
        return Replacement(
            self.group,
            self.name,
            self.compiled.inputs,
            self.compiled.outputs,
            metadata={TC_KEY: text},
            body=self.body,
        )


def attempt_parts(
    group: FusionGroup, attempt: Callable[[FusionGroup], Attempt]
) -> Iterator[Attempt]:
    """Attempt ``group``, or the parts it falls into.

    It does without the nodes that are in the way, and by halves where it is too much for one
    kernel.
    """
    waiting, n_splits = [group], 0
    while waiting:
        part = waiting.pop(0)
        try:
            yield attempt(part)
        except TooLargeError as error:
            if len(part.nodes) == 1:
                yield Attempt(part, reason=str(error))
            else:
                waiting.extend(halves(part))
        except ComposeError as error:
            n_splits += 1
            yield Attempt(FusionGroup((error.node,), (), ()), reason=str(error))
            rest = split(part, error.node)
            if n_splits <= MOST_SPLITS:
                waiting.extend(rest)
            else:
                reason = f"too much of the region cannot be composed; last: {error}"
                yield from (Attempt(left, reason=reason) for left in rest)


def internal_error(group: FusionGroup, error: Exception) -> str:
    """The reason that a fault of ours, which is logged, gives for leaving a region alone."""
    log.warning("internal error in %s", group, exc_info=error)
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"internal error: {text[:300]}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Which operators stay, why the others go, and what was measured about each.

    Attributes:
        kept: Names of those that stay.
        reasons: Why each other one goes.
        standby: Of those that stay for GPUs: why not for the CPU.
        verified: What running them against the original showed.
        gated: What timing them showed.
    """

    kept: frozenset[str]
    reasons: Mapping[str, str] = field(default_factory=dict)
    standby: Mapping[str, str] = field(default_factory=dict)
    verified: Mapping[str, Verification] = field(default_factory=dict)
    gated: GateResult | None = None

    @classmethod
    def of(cls, attempts: Iterable[Attempt]) -> Judgement:
        """All of those that have a kernel stay."""
        return cls(frozenset(attempt.name for attempt in attempts if attempt.name))

    def without(self, reasons: Mapping[str, str]) -> Judgement:
        """Without the kernels that there is a reason against."""
        kept = self.kept - reasons.keys()
        return replace(self, kept=kept, reasons={**self.reasons, **reasons})

    def after_verification(self, verified: Mapping[str, Verification]) -> Judgement:
        """Without the kernels that are wrong."""
        wrong = {name: reject_reason(v) for name, v in verified.items() if v.problem}
        return replace(self.without(wrong), verified=verified)

    def after_gate(self, gated: GateResult, on_gpus: frozenset[str]) -> Judgement:
        """Without the kernels that do not pay; those in ``on_gpus`` stay for GPUs."""
        standby = {name: why for name, why in gated.dropped.items() if name in on_gpus}
        dropped = {name: why for name, why in gated.dropped.items() if name not in on_gpus}
        kept = (gated.kept | on_gpus) & self.kept
        return replace(self.without(dropped), kept=kept, standby=standby, gated=gated)

    def measured(self, name: str) -> dict[str, float]:
        """Every number about one kernel."""
        numbers: dict[str, float] = {}
        if (verified := self.verified.get(name)) is not None:
            numbers |= {
                "error": verified.error,
                "original_error": verified.original_error,
                "runs": verified.runs,
            }
        ratio = self.gated.alone.get(name) if self.gated is not None else None
        if ratio is not None:
            numbers |= {
                "speedup": ratio.value,
                "spread": ratio.spread,
                "before_us": ratio.before_us,
                "after_us": ratio.after_us,
            }
        return {key: value for key, value in numbers.items() if value == value}


def report(
    source: Path | None,
    run: Run,
    plans: Sequence[FusionPlan],
    tried: Sequence[Attempt],
    judgement: Judgement,
    code: Mapping[str, dict[str, Any]],
    block: int = 0,
) -> Report:
    """Everything that happened to one model.

    Args:
        source: Its file.
        run: What it was done in.
        plans: Which regions there are.
        tried: What came of them.
        judgement: What was shown and measured.
        code: What there is to say of the operators' code for GPUs.
        block: Channels in a block of the layout the kernels work on; 0 for plain tensors.
    """
    gated = judgement.gated
    whole = gated.whole if gated is not None else None
    return Report(
        source=str(source or ""),
        options=asdict(run.options),
        regions=tuple(_region(attempt, judgement, code, plans) for attempt in tried),
        rejections=tuple((label(r.node), r.reason) for p in plans for r in p.rejections),
        speedup=whole.value if whole is not None else None,
        spread=whole.spread if whole is not None else None,
        notes=(*_notes(judgement, code, run.options), *run.wisdom.notes()),
        versions=versions(),
        block=block,
    )


def _notes(
    judgement: Judgement, code: Mapping[str, dict[str, Any]], options: OptimizeOptions
) -> Iterator[str]:
    if judgement.gated is not None and judgement.gated.note:
        yield judgement.gated.note
    if code:
        tried = "run in the emulator, and not" if options.emulate else "neither run nor"
        yield f"kernels for GPUs were {tried} timed"
    if n_warnings := sum(len(about["warnings"]) for about in code.values()):
        yield f"{n_warnings} warnings about code for GPUs are in the manifest"


def _region(
    attempt: Attempt,
    judgement: Judgement,
    code: Mapping[str, dict[str, Any]],
    plans: Sequence[FusionPlan],
) -> RegionReport:
    nodes = tuple(label(node) for node in attempt.group.nodes)
    if attempt.compiled is None:
        return RegionReport("", nodes, kept=False, reason=attempt.reason)
    kernels, name = attempt.compiled.kernels, attempt.name
    left_out = {"cuda": kernels.without_cuda} if kernels.without_cuda else {}
    if name in judgement.standby:
        left_out["cpu"] = judgement.standby[name]
    made = {"cpu": kernels.cpu, "cuda": kernels.cuda}
    return RegionReport(
        name,
        nodes,
        kept=name in judgement.kept,
        reason=judgement.reasons.get(name, ""),
        tc=kernels.tc,
        proof=kernels.first.proof,
        interface=interface_to_json(kernels.interface),
        targets=tuple(t for t, k in made.items() if k is not None and t not in left_out),
        left_out=left_out,
        cuda=code.get(name),
        measured=judgement.measured(name),
        predicted=predicted(attempt.group, plans),
        tuned={t: a.to_record() for t, a in kernels.advice.items() if made[t] is not None},
    )


def label(node: ir.Node) -> str:
    """``OpType name``, the domain included where it is not ONNX's own."""
    op_type = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    return f"{op_type} {node.name}" if node.name else op_type
