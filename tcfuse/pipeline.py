"""The order of the stages: from a model to the same model with kernels in it.

This is the only module that knows the order.  What a stage refuses (``UnsupportedError``) stays
with ONNX Runtime, for the reason it gave.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import onnx_ir as ir

from tcfuse.ahead import compiling_ahead
from tcfuse.attempt import Attempt, Judgement, attempt_parts, internal_error, report
from tcfuse.building import code_for_gpus, shared_library
from tcfuse.emulation import emulated
from tcfuse.errors import UnsupportedError
from tcfuse.forms import Form, blocked_form, fastest
from tcfuse.graph.load import load_model
from tcfuse.graph.plan import FusionGroup, FusionPlan
from tcfuse.graph.relayout import relayout
from tcfuse.graph.rewrite import rewrite
from tcfuse.graph.sealing import seal
from tcfuse.isolation import WORKER
from tcfuse.judging import judge
from tcfuse.kernels import Compiled, noted
from tcfuse.memo import region_key, remembered
from tcfuse.options import OptimizeOptions
from tcfuse.ort.manifest import Report
from tcfuse.ort.model_feeds import Wishes
from tcfuse.planning import plan
from tcfuse.result import Result, Source, given
from tcfuse.run import Progress, Run
from tcfuse.targeting import resolved
from tcfuse.tc.compose import ComposeError, TooLargeError, compose
from tcfuse.tc.sema import check

_SILENT: Progress = str  # shows nothing


def optimize(source: Source, *, progress: Progress = _SILENT, **options: Any) -> Result:
    """``source`` with its fusible regions compiled; it stays as it is.

    Args:
        source: A path, a ``ModelProto`` or an ``onnx_ir.Model``.
        progress: Called with a line of text now and then.
        options: ``OptimizeOptions`` by name, which are the flags of ``tcfuse optimize``.

    Raises:
        InputError: The model cannot be read.
        OptionError: An option is not known, or names what the model does not have.
        ToolchainError: There is no compiler, or it failed.
    """
    run = Run.of(resolved(OptimizeOptions.of(**options)), progress)
    wishes = Wishes(run.options.dim, run.options.input_shapes)
    plain = _made(Form.plain(source), wishes, run)
    if (form := blocked_form(source, run.options, plain.model)) is None:
        return plain
    blocked = _made(form, wishes, run)
    return fastest(plain, blocked, wishes, run)


def _made(form: Form, wishes: Wishes, run: Run) -> Result:
    """One form of the model with the kernels that are right and pay."""
    with compiling_ahead(run.options) as ahead:
        model, plans, tried = compile_model(form, replace(run, ahead=ahead))
    wishes.check(model)
    judgement = judge(model, form, tried, wishes, run)
    kept = [attempt for attempt in tried if attempt.name in judgement.kept]
    code = code_for_gpus(kept, run.options, run.store)
    told = report(form.path, run, plans, tried, judgement, code, form.block)
    if not kept:
        return Result(given(form.source), None, told, form.path)
    shared = run.options, run.store, judgement.standby
    library = shared_library(kept, *shared, block=form.block)
    fused = rewrite(model, [a.replacement() for a in kept])
    return Result(seal(fused) if form.block else fused, library, told, form.path)


def explain(source: Source, *, progress: Progress = _SILENT, **options: Any) -> Report:
    """What ``optimize`` would try, and why each other node is left alone; nothing is run."""
    run = Run.of(resolved(OptimizeOptions.of(**options)), progress, tries=False)
    form = None
    if run.options.layout == "blocked":
        form = blocked_form(source, run.options, given(source))
    form = form or Form.plain(source)
    _, plans, tried = compile_model(form, run)
    judgement = Judgement.of(tried)
    return report(form.path, run, plans, tried, judgement, {}, form.block)


def compile_model(
    form: Form, run: Run
) -> tuple[ir.Model, tuple[FusionPlan, ...], list[Attempt]]:
    """Load, plan, and compile every region; kernels with equal names have equal fallbacks."""
    run.progress("loading")
    model = load_model(form.source)
    relayout(model)
    run.progress("planning")
    plans = plan(model, run.options, run.store)
    run.wisdom.named = plans[0].sizes
    groups = [group for plan in plans for group in plan.groups]
    tried: list[Attempt] = []
    bodies: dict[str, str] = {}
    for count, group in enumerate(groups, 1):
        run.progress(f"compiling region {count} of {len(groups)}")
        for attempt in attempt_parts(group, lambda part: _attempt(part, model, run)):
            body = attempt.body
            if body and bodies.setdefault(attempt.name, body) != body:
                attempt = _attempt(attempt.group, model, run, f"_{body[:6]}")
            tried.append(attempt)
    return model, plans, emulated(tried, model, run.options, run.store, run.progress)


def _attempt(group: FusionGroup, model: ir.Model, run: Run, suffix: str = "") -> Attempt:
    """One region through every compiling stage, or from the cache.

    Raises:
        ComposeError, TooLargeError: Parts of it may do.
    """
    key = region_key(group, model, *run.options.of_kernels(), suffix)
    try:
        compiled = remembered(
            *(run.store, key, group),
            lambda: _stages(group, model, run, suffix),
            run.wisdom.asked if run.wisdom.asks else None,
        )
    except (ComposeError, TooLargeError):
        raise
    except UnsupportedError as error:
        return Attempt(group, reason=str(error))
    except Exception as error:  # the one border where a fault of ours costs a region, not a run
        return Attempt(group, reason=internal_error(group, error))
    noted(compiled.kernels)
    return Attempt(group, compiled)


def _stages(group: FusionGroup, model: ir.Model, run: Run, suffix: str) -> Compiled:
    """From a group of nodes to its kernels."""
    WORKER.start()
    composed = compose(group, model.opset_imports, run.options.numerics)
    checked = check(composed.definition, sizes=composed.interface.sizes)
    hint = f"{composed.definition.name}{suffix}"
    return run.wisdom.compiled(composed, checked, hint, run.store, run.ahead)
