"""What tuned kernels are expected to do for a whole model."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from tcfuse.ort.inference import open_session, ort_errors
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses
from tcfuse.ort.timing import bind, interleave
from tcfuse.result import Result
from tcfuse.tuning.tuned import KNOWN, Tuned

log = logging.getLogger(__name__)

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Expected:
    """Microseconds of a call of the model as it is optimized now, and with what was found."""

    before_us: float
    after_us: float

    @property
    def gain(self) -> float:
        """Times the speed."""
        return self.before_us / max(self.after_us, 1e-3)


def expected(
    result: Result | None, wishes: Wishes, kernels: Iterable[Tuned]
) -> Expected | None:
    """The model's time less what its kernels save; ``None`` where it does not run.

    What an earlier run found is in the model already.
    """
    if result is None or result.library is None:
        return None
    kept = {region.name for region in result.report.kept}
    saved = sum(
        tuned.saved_us
        for tuned in kernels
        if tuned.ended != KNOWN and kept.intersection(tuned.task.names)
    )
    before = model_us(result, wishes)
    return None if before is None else Expected(before, max(before - saved, 0.0))


def model_us(result: Result, wishes: Wishes) -> float | None:
    """Microseconds of a call of an optimized model on one thread."""
    for shapes in shape_guesses(result.model, wishes):
        inputs = model_feeds(result.model, shapes)
        try:
            call = bind(open_session(result.model, result.library), inputs)
        except ort_errors() as error:
            log.debug("the model does not run on %s: %s", shapes, error)
            continue
        return median(interleave({"": call}, ROUNDS)[""]) * 1e6
    return None
