"""Which of the compiled kernels stay in one form of a model."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from tcfuse import debug
from tcfuse.attempt import Attempt, Judgement
from tcfuse.building import build_all
from tcfuse.forms import Form
from tcfuse.ort.model_feeds import Wishes
from tcfuse.run import Run
from tcfuse.trial import Trial, gate_all, verify_all


def judge(
    model: ir.Model, form: Form, tried: Sequence[Attempt], wishes: Wishes, run: Run
) -> Judgement:
    """Verify, then time; what is wrong or does not pay goes."""
    working = [attempt for attempt in tried if attempt.compiled is not None]
    run.progress(f"building {len({attempt.name for attempt in working})} kernels")
    library, broken = build_all(working, run.options, run.store, block=form.block)
    judgement = Judgement.of(working).without(broken)
    if library is None or "cpu" not in run.options.targets:
        return judgement
    trial = Trial(model, form.baseline, working, library, run.store).only(judgement.kept)
    if run.options.verify or debug.current().verify > 1:
        judgement = judgement.after_verification(verify_all(trial, run.progress))
    if run.options.gate and judgement.kept:
        trial = trial.only(judgement.kept)
        gated = gate_all(trial, wishes, run.progress, run.wisdom.verdicts)
        judgement = judgement.after_gate(gated, trial.on_gpus)
    return judgement
