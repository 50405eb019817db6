"""The order of the stages: from a model to the same model with kernels in it.

This is the only module that knows the order.  What a stage refuses (``UnsupportedError``) stays
with ONNX Runtime, for the reason it gave.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import onnx_ir as ir

from tcfuse.ahead import compiling_ahead
from tcfuse.attempt import Attempt, Judgement, report
from tcfuse.building import code_for_gpus, shared_library
from tcfuse.compiling import compiled
from tcfuse.forms import Form, blocked_form, fastest
from tcfuse.graph.load import load_model
from tcfuse.graph.relayout import relayout
from tcfuse.graph.rewrite import rewrite
from tcfuse.graph.sealing import seal
from tcfuse.judging import judge
from tcfuse.options import OptimizeOptions
from tcfuse.ort.manifest import Report
from tcfuse.ort.model_feeds import Wishes
from tcfuse.planning import plan
from tcfuse.replanning import Built, Plans, Replanner, fastest_plan
from tcfuse.result import Result, Source, given, with_notes
from tcfuse.run import Progress, Run
from tcfuse.targeting import resolved

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
    """One form of the model with the regions of its planner."""
    model = _loaded(form, run)

    def build(plans: Plans) -> Built:
        return _built(form, model, plans, wishes, run)

    if run.options.measures_plans:
        greedy = plan(model, run.options, run.store)
        return fastest_plan(model, greedy, build, wishes, run)
    plans, notes = _planned(model, run)
    return with_notes(build(plans).result, *notes)


def _built(form: Form, model: ir.Model, plans: Plans, wishes: Wishes, run: Run) -> Built:
    """The model with those kernels of its regions that are right and pay."""
    with compiling_ahead(run.options) as ahead:
        tried = compiled(model, plans, replace(run, ahead=ahead))
    wishes.check(model)
    judgement = judge(model, form, tried, wishes, run)
    kept = [attempt for attempt in tried if attempt.name in judgement.kept]
    code = code_for_gpus(kept, run.options, run.store)
    told = report(form.path, run, plans, tried, judgement, code, form.block)
    if not kept:
        return Built(Result(given(form.source), None, told, form.path), tried, judgement)
    shared = run.options, run.store, judgement.standby
    library = shared_library(kept, *shared, block=form.block)
    fused = rewrite(model, [a.replacement() for a in kept])
    sealed = seal(fused) if form.block else fused
    return Built(Result(sealed, library, told, form.path), tried, judgement)


def explain(source: Source, *, progress: Progress = _SILENT, **options: Any) -> Report:
    """What ``optimize`` would try, and why each other node is left alone; nothing is run."""
    run = Run.of(resolved(OptimizeOptions.of(**options)), progress, tries=False)
    form = None
    if run.options.layout == "blocked":
        form = blocked_form(source, run.options, given(source))
    form = form or Form.plain(source)
    model = _loaded(form, run)
    plans, notes = _planned(model, run)
    tried = compiled(model, plans, run)
    told = report(form.path, run, plans, tried, Judgement.of(tried), {}, form.block)
    return replace(told, notes=(*told.notes, *notes))


def compile_model(form: Form, run: Run) -> tuple[ir.Model, Plans, list[Attempt]]:
    """Load, plan, and compile every region."""
    model = _loaded(form, run)
    plans, _ = _planned(model, run)
    return model, plans, compiled(model, plans, run)


def _loaded(form: Form, run: Run) -> ir.Model:
    """The model of a form, ready to be planned."""
    run.progress("loading")
    model = load_model(form.source)
    relayout(model)
    return model


def _planned(model: ir.Model, run: Run) -> tuple[Plans, tuple[str, ...]]:
    """The greedy plans, or those of the integer program by predictions, with notes."""
    run.progress("planning")
    plans = plan(model, run.options, run.store)
    if not run.options.solves:
        return plans, ()
    return Replanner.of(model, plans, run.options, run.store).predicted()
