"""The stages of one region: composed, checked, compiled, or refused with the reason.

What a stage refuses (``UnsupportedError``) stays with ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from tcfuse.attempt import Attempt, attempt_parts, internal_error
from tcfuse.emulation import emulated
from tcfuse.errors import UnsupportedError
from tcfuse.graph.plan import FusionGroup, FusionPlan
from tcfuse.isolation import WORKER
from tcfuse.kernels import Compiled, noted
from tcfuse.memo import region_key, remembered
from tcfuse.run import Run
from tcfuse.tc.compose import ComposeError, TooLargeError, compose
from tcfuse.tc.sema import check


def compiled(model: ir.Model, plans: Sequence[FusionPlan], run: Run) -> list[Attempt]:
    """Compile every region; kernels with equal names have equal fallbacks."""
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
    return emulated(tried, model, run.options, run.store, run.progress)


def _attempt(group: FusionGroup, model: ir.Model, run: Run, suffix: str = "") -> Attempt:
    """One region through every compiling stage, or from the cache.

    Raises:
        ComposeError, TooLargeError: Parts of it may do.
    """
    key = region_key(group, model, *run.options.of_kernels(), suffix)
    try:
        made = remembered(
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
    noted(made.kernels)
    return Attempt(group, made)


def _stages(group: FusionGroup, model: ir.Model, run: Run, suffix: str) -> Compiled:
    """From a group of nodes to its kernels."""
    WORKER.start()
    composed = compose(group, model.opset_imports, run.options.numerics)
    checked = check(composed.definition, sizes=composed.interface.sizes)
    hint = f"{composed.definition.name}{suffix}"
    return run.wisdom.compiled(composed, checked, hint, run.store, run.ahead)
