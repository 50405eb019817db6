"""The tuner's end of the process that measures (``tuning.zygote``)."""

from __future__ import annotations

import contextlib
import subprocess
import time
from dataclasses import dataclass, field

from tcfuse.debug import environment
from tcfuse.isolation import begin, end, receive, send
from tcfuse.tuning.messages import Job, Report, Setup

SETUP_S = 180.0  # for the inputs, and float64's answers to them
SLACK_S = 180.0  # beside the limits of a job; it keeps to them itself
_SERVE = "from tcfuse.tuning.zygote import serve; serve()"
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(slots=True)
class Measuring:
    """A process with the cases of one subject; started anew when it is lost."""

    setup: Setup
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _ready: bool = False
    _reference: Job | None = None

    def start(self) -> None:
        """Have it make the cases while there are other things to do."""
        self._process = begin(_SERVE, environment(_ONE_THREAD))
        self._send(self.setup, SETUP_S)
        self._ready = False

    def run(self, job: Job) -> Report:
        """What came of a job."""
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self.start()
        if not self._ready:
            found = self._answer(SETUP_S)
            if found.status != "ok":
                self.stop()
                return found
            self._ready = True
            if self._reference is not None and job.race is not None:
                self.run(self._reference)
        seconds = job.limits.check_s + job.limits.race_s + SLACK_S
        self._send(job, seconds)
        report = self._answer(seconds)
        if job.race is None and report.status == "ok":
            self._reference = job
        return report

    def _send(self, message: Setup | Job, seconds: float) -> None:
        """Tell it something; that it is lost is found when it should answer."""
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, TimeoutError):
            send(self._process.stdin, message, time.monotonic() + seconds)

    def _answer(self, seconds: float) -> Report:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            return Report(**receive(self._process.stdout, time.monotonic() + seconds))
        except (TimeoutError, EOFError):
            self.stop()
            return Report("crashed", "the process that measures was lost")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            end(self._process)
            self._process = None
