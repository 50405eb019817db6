"""Paired measurements: which of several sessions is faster, on a machine that is not quiet.

The contenders run in turn, forwards and backwards (A B, B A, ...), and a speedup is the median
of the ratios within a round, so slow drift of the machine cancels.  With one thread the clock
is the CPU time of the process; with more it is wall time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from tcfuse.ort.arrays import run, to_value
from tcfuse.ort.inference import Session, ort_errors

BLOCK_SECONDS = 0.02
MOST_CALLS = 200
BATCHES = 5  # of consecutive rounds in a run
LONG_SECONDS = 0.05  # a call that long fills the caches in a small part of it


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times faster than the baseline.

    Units:
        ``before_us`` and ``after_us``: microseconds a call, medians over rounds.
    """

    value: float
    spread: float  # interquartile range of the per-round ratios, relative to ``value``
    before_us: float
    after_us: float

    @classmethod
    def paired(cls, baseline: Sequence[float], other: Sequence[float]) -> Ratio:
        """The median of ``baseline / other`` over rounds; times in seconds."""
        ratios = paired_ratios(baseline, other)
        low, middle, high = (float(x) for x in np.percentile(ratios, [25, 50, 75]))
        spread = (high - low) / middle
        return cls(middle, spread, median(baseline) * 1e6, median(other) * 1e6)


def paired_ratios(baseline: Sequence[float], other: Sequence[float]) -> np.ndarray:
    """``baseline / other``, round by round; times in seconds."""
    ratios: np.ndarray = np.array(baseline) / np.maximum(np.array(other), 1e-12)
    return ratios


def standard_error(ratios: Sequence[Sequence[float] | np.ndarray]) -> float:
    """Standard error of the median of paired ratios, relative to it.

    What disturbs a machine lasts longer than a round, so neighbours are no independent samples:
    the error is that of the medians of consecutive batches, or of whole runs where these differ
    more, as memory lies elsewhere in each.

    Args:
        ratios: Of each run, by round.

    Source: Flegal and Jones, "Batch Means and Spectral Variance Estimators in Markov Chain
    Monte Carlo", Annals of Statistics 38 (2010).
    """
    batches = [batch for run in ratios for batch in np.array_split(np.array(run), BATCHES)]
    middles = [float(np.median(batch)) for batch in batches if batch.size]
    errors = [
        float(np.std(each, ddof=1)) / len(each) ** 0.5
        for each in (middles, [float(np.median(run)) for run in ratios if len(run)])
        if len(each) > 1
    ]
    return max(errors, default=0.0) / median(middles)


def bind(session: Session, inputs: Mapping[str, np.ndarray]) -> Callable[[], Any]:
    """A call that runs ``session`` on ``inputs``, with inputs and outputs bound once."""
    wanted = {value.name for value in session.get_inputs()}
    given = {name: array for name, array in inputs.items() if name in wanted}
    outputs = run(session, given)
    binding = session.io_binding()
    kept = []
    for name, array in given.items():
        kept.append(to_value(array))
        binding.bind_ortvalue_input(name, kept[-1])
    for value, output in zip(session.get_outputs(), outputs, strict=True):
        if isinstance(output, np.ndarray) and output.dtype.kind != "O" and output.size:
            kept.append(to_value(np.empty_like(output)))
            binding.bind_ortvalue_output(value.name, kept[-1])
        else:
            binding.bind_output(value.name, "cpu")

    def call(kept: Any = kept) -> None:  # ``kept`` lives as long as the binding
        session.run_with_iobinding(binding)

    try:
        call()
    except ort_errors():  # an output whose shape changes from run to run
        return lambda: run(session, given)
    return call


def interleave(
    calls: Mapping[str, Callable[[], Any]], rounds: int, threads: int = 1
) -> dict[str, list[float]]:
    """Seconds a call of each contender, one median for each round.

    Args:
        calls: The contenders, warmed up.
        rounds: Number of turns.
        threads: Threads the contenders use; chooses the clock.
    """
    names = list(calls)
    clock = time.process_time if threads == 1 else time.perf_counter
    seconds = {name: _seconds(call) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else names[::-1]:
            call, samples = calls[name], []
            if seconds[name] < LONG_SECONDS:
                call()  # brings its memory back into the caches
            for _ in range(_calls_in_block(seconds[name])):
                start = clock()
                call()
                samples.append(clock() - start)
            times[name].append(median(samples))
    return times


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _calls_in_block(seconds: float) -> int:
    return max(1, min(MOST_CALLS, int(BLOCK_SECONDS / max(seconds, 1e-6))))
