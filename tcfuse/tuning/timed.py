"""From the times of contenders to what came of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tcfuse.ort.timing import Ratio, paired_ratios, standard_error
from tcfuse.tuning.candidate import Outcome
from tcfuse.tuning.messages import Report

TIMED = ("ok", "slow")
"""Statuses of reports that have times."""


def outcome_of(reports: Sequence[Report], position: int, source: str) -> Outcome:
    """What came of the contender at that position beside the first.

    Args:
        reports: Of one process, or of several that ran the same.
        position: Its place among the contenders.
        source: The digest of its kernel.
    """
    first = reports[0]
    if first.status not in TIMED:
        return Outcome(first.status, detail=first.detail, source=source)
    usual = [report.times[0] for report in reports]
    own = [report.times[position] for report in reports]
    ratio = Ratio.paired(list(chain(*usual)), list(chain(*own)))
    return Outcome(
        first.status,
        detail=first.detail,
        micros=ratio.after_us,
        speedup=ratio.value,
        spread=ratio.spread,
        error=standard_error([paired_ratios(*times) for times in zip(usual, own, strict=True)]),
        source=source,
    )
