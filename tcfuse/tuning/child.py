"""What runs in the process that a candidate has for itself: outputs checked, then timed.

Nothing here survives the candidate, and the candidate survives nothing here: the process is
forked for it and ends with it.
"""

from __future__ import annotations

import ctypes
import gc
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from tcfuse.ort.direct import DirectKernel, Plan
from tcfuse.ort.running import Bound
from tcfuse.tuning.cases import Case, staggered
from tcfuse.tuning.guarded import Guarded
from tcfuse.tuning.messages import Contender, Job, Limits, Report
from tcfuse.tuning.racing import is_slow, race

NEARLY = 64.0  # times the allowed error that the reference may have
FAR_BEHIND = 3.0  # times the reference's first run; such a first run is the last
ENDED = 4.0  # times the reference's first run; such a first run is ended
FAR_S = 0.02  # a run of less is no measurement
SMALL_S = 0.5  # for a run at other sizes, which are small
FILLS = (0xFF, 0x5A)  # of outputs before a run: what is not written is not right twice


class RefusedError(Exception):
    """The candidate cannot be used, or need not be looked at any longer.

    Args:
        status: How that is called.
        detail: Why.
        times: Seconds of the reference and of the candidate.
    """

    def __init__(self, status: str, detail: str, times: tuple[float, ...] = ()) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.times = tuple((seconds,) for seconds in times)


Areas = list[Guarded]


def run_job(
    job: Job,
    cases: Sequence[Case],
    threads: int,
    watched: Callable[[Areas], object],
    stage: Callable[[str], object],
) -> Report:
    """Check the last contender, then time all of them.

    Args:
        job: What to do.
        cases: What to run on; the first is timed.
        threads: How many may work on a call.
        watched: Told what memory is guarded.
        stage: Told what is being done.
    """
    begin = time.perf_counter()
    try:
        kernels = [load(contender) for contender in job.contenders]
        outputs, run_s = [], 0.0
        for kernel in kernels[-job.checked :]:
            checking = Checking(job, kernel, threads, watched)
            outputs, run_s = checking.outputs(cases), checking.run_s
        check_s = time.perf_counter() - begin
        if job.race is None:
            note = _adopt(cases, outputs)
            return Report("ok", check_s=check_s, run_s=run_s, note=note)
        stage("timing")
        times = _race(job, kernels, cases[0], threads)
    except RefusedError as refused:
        return Report(refused.status, refused.detail, refused.times)
    except MemoryError:
        return Report("memory", f"more than {job.limits.memory >> 20} MiB")
    status = "slow" if is_slow(times, job.race) else "ok"
    return Report(status, times=tuple(map(tuple, times)), check_s=check_s)


def load(contender: Contender) -> DirectKernel:
    """The kernel of a library, in this process."""
    return DirectKernel.of(contender.kernel, ctypes.CDLL(str(contender.library)))


@dataclass(slots=True)
class Checking:
    """Runs of a kernel between guard pages.

    Attributes:
        job: What it is a part of.
        kernel: The one in question.
        threads: How many may work on a call.
        watched: Told what memory is guarded.
        run_s: Seconds of processors for the first run of the case that is timed.
    """

    job: Job
    kernel: DirectKernel
    threads: int
    watched: Callable[[Areas], object]
    run_s: float = 0.0

    def outputs(self, cases: Sequence[Case]) -> list[list[np.ndarray] | None]:
        """The bytes of the outputs of each case, which are right.

        A case with other sizes than the timed one's is left out (``None``) where the kernel
        does not take them.  The outputs of the reference are not judged here.

        Raises:
            RefusedError: They are wrong, the kernel writes where it may not, or is far behind.
        """
        found = [self._case(case, is_timed=case is cases[0]) for case in reversed(cases)]
        return found[::-1]

    def _case(self, case: Case, *, is_timed: bool) -> list[np.ndarray] | None:
        plan = self.kernel.plan(case.dims)
        if plan is None:
            if is_timed:
                raise RefusedError("wrong", self.kernel.complaint(case.dims))
            return None
        check_scratch(plan, self.threads, self.job.limits)
        begin = time.process_time()
        with processor_time(self._most_s(is_timed=is_timed)):
            runs = [self._run(plan, case, 0)]
        if is_timed:
            self.run_s = time.process_time() - begin
            self._give_up_far_behind()
        runs += [self._run(plan, case, side) for side in range(1, len(case.inputs))]
        if self.job.race is not None:
            _judge(case, runs)
        return runs[0]

    def _most_s(self, *, is_timed: bool) -> float:
        """Seconds of processors that a first run may take; 0 is any number."""
        if not is_timed:
            return SMALL_S * self.threads
        usual = self.job.usual_s
        return max(ENDED * usual, SMALL_S) if usual else 0.0

    def _give_up_far_behind(self) -> None:
        usual = self.job.usual_s
        if usual > 0 and self.run_s > max(FAR_BEHIND * usual, FAR_S):
            raise RefusedError("slow", "far behind in its first run", (usual, self.run_s))

    def _run(self, plan: Plan, case: Case, side: int) -> list[np.ndarray]:
        """The bytes of the outputs of a run between guard pages."""
        at_end = side == 0
        names = [f"output {port.name}" for port in case.ports]
        outputs = [
            Guarded.of(name, n_bytes, at_end=at_end)
            for name, n_bytes in zip(names, case.output_bytes(), strict=True)
        ]
        written = list(outputs)
        for area in outputs:
            area.data[:] = FILLS[side]

        def scratch(n_bytes: int) -> np.ndarray:
            written.append(Guarded.of("scratch", n_bytes, at_end=at_end))
            return written[-1].data

        tensors = [area.data for area in (*case.inputs[side], *outputs)]
        call = Bound.of(self.kernel, plan, case.dims, tensors, self.threads, scratch)
        self.watched([*case.inputs[side], *written])
        if not call():
            raise RefusedError("wrong", f"{case.feed.label}: an index is out of range")
        for area in written:
            if not area.intact:
                raise RefusedError("wrong", f"writes out of bounds, next to {area.name}")
        return [area.data for area in outputs]


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """The process ends by SIGPROF when it takes more inside; 0 is no limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0.0)


def _judge(case: Case, runs: Sequence[list[np.ndarray]]) -> None:
    """Refuse what is wrong in a run; equal outputs are looked at once."""
    first, *others = runs
    if problem := case.judge(first):
        raise RefusedError("wrong", problem)
    for other in others:
        same = all(map(np.array_equal, first, other))
        if not same and (problem := case.judge(other)):
            raise RefusedError("wrong", f"in a second run, {problem}")


def check_scratch(plan: Plan, threads: int, limits: Limits) -> None:
    """Refuse a call that asks for more scratch than there may be."""
    most = max(plan.parts_of(threads), default=1)
    n_bytes = plan.shared_bytes + most * plan.local_bytes
    if n_bytes > limits.memory:
        raise RefusedError(
            "memory", f"{n_bytes / 2**30:.1f} GiB of scratch, of {limits.memory / 2**30:.1f}"
        )


def _adopt(cases: Sequence[Case], outputs: Sequence[list[np.ndarray] | None]) -> str:
    """Keep what others are held against; how, for each case.

    Raises:
        RefusedError: The reference itself is wrong.
    """
    notes = []
    for case, raw in zip(cases, outputs, strict=True):
        if raw is None:
            notes.append("dropped")
            continue
        typed = case.typed(raw)
        if not case.known:
            answers, note = typed, "default"
        elif not case.judge(raw):
            answers, note = case.original, "float64"
        else:
            _check_reference(case, raw)
            answers, note = typed, "near"
        case.adopt(answers)
        notes.append(note)
    return " ".join(notes)


def _check_reference(case: Case, raw: list[np.ndarray]) -> None:
    """Refuse a reference that is further from float64 than rounding explains."""
    for k, found in enumerate(case.compared(raw, case.typed(raw))):
        port = case.ports[k]
        allowed = NEARLY * found.allowed if port.type.dtype.is_float else 1.0
        if found.problem or not found.error <= allowed:
            worst = found.problem or f"error {found.error:.2g}; {found.place}"
            raise RefusedError("wrong", f"{port.name} of {case.feed.label}: {worst}")


def _race(
    job: Job, kernels: Sequence[DirectKernel], case: Case, threads: int
) -> list[list[float]]:
    """Times of all contenders, on the same memory."""
    assert job.race is not None
    inputs = case.moved(job.turn)
    outputs = [
        staggered(n, len(inputs) + k, job.turn) for k, n in enumerate(case.output_bytes())
    ]
    calls = []
    for kernel in kernels:
        plan = kernel.plan(case.dims)
        if plan is None:
            raise RefusedError("wrong", kernel.complaint(case.dims))
        calls.append(Bound.of(kernel, plan, case.dims, [*inputs, *outputs], threads))
    # The clock of the process goes by ticks where its processor time is limited.
    clock = time.thread_time if threads == 1 else time.perf_counter
    gc.disable()
    times = race(calls, job.race, clock)
    if threads > 1:
        calls[-1]()
        if problem := case.judge(outputs):
            raise RefusedError("wrong", f"on {threads} threads, {problem}")
    return times
