"""Candidates for GPUs where there is none: checked in the emulator, priced by a model.

Everything that comes of this says that it is predicted.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tcfuse.errors import TcfuseError, UnsupportedError
from tcfuse.isolation import begin, end, receive, send
from tcfuse.targets.base import CudaSource
from tcfuse.tuning.building import Compile, Compiling, digest_of
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.messages import Setup

FEW_POINTS = 1 << 17  # instances of statements that are emulated
LAUNCH_S = 20.0  # of the emulator, for a launch
CANDIDATE_S = 90.0  # for compiling and all launches
_SERVE = "from tcfuse.tuning.emulating import serve; serve({})"


@dataclass(slots=True)
class PredictedEvaluator:
    """``protocols.Evaluator`` for GPUs that are not there; one candidate at a time.

    Attributes:
        most_points: Instances of statements that are emulated.
        compile: Makes the text of a candidate.
    """

    most_points: int = FEW_POINTS
    compile: Compile = field(default_factory=Compiling)
    _subject: Subject | None = None
    _process: subprocess.Popen[bytes] | None = None
    _default_us: float = 0.0
    _outcomes: dict[str, Outcome] = field(default_factory=dict)
    _texts: dict[Candidate, CudaSource] = field(default_factory=dict)

    def evaluate(
        self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """The outcome of each candidate, in order; nothing runs beside it.

        Raises:
            UnsupportedError: The kernel with default knobs cannot be priced.
        """
        del incumbent
        self._begin(subject)
        for candidate in candidates:
            yield candidate, self._outcome(subject, candidate)

    def confirm(
        self, subject: Subject, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """The same again: a model gives the same price every time."""
        return self.evaluate(subject, candidates, Candidate())

    def learn(self, subject: Subject, outcomes: Sequence[Outcome]) -> None:
        """Do not price texts again that others have priced.

        Raises:
            UnsupportedError: The kernel with default knobs cannot be priced.
        """
        self._begin(subject)
        for outcome in outcomes:
            self._outcomes.setdefault(outcome.source, outcome)

    def made(self, subject: Subject, candidate: Candidate) -> Outcome:
        """Whether there is such a kernel, and its text; the outcome where that is known.

        Raises:
            UnsupportedError: The kernel with default knobs cannot be priced.
        """
        self._begin(subject)
        made = self._made(subject, candidate)
        if isinstance(made, Outcome):
            return made
        self._texts[candidate] = made
        source = digest_of(made)
        return self._outcomes.get(source) or Outcome("made", predicted=True, source=source)

    def close(self) -> None:
        """End every process."""
        self._stop()
        self._subject = None
        if isinstance(self.compile, Compiling):
            self.compile.stop()

    def _begin(self, subject: Subject) -> None:
        if self._subject == subject:
            return
        self._stop()
        self._subject, self._default_us = subject, 0.0
        self._outcomes.clear()
        self._texts.clear()
        usual = self._outcome(subject, Candidate())
        if usual.micros is None:
            self._subject = None
            sentence = f"{usual.status}: {usual.detail}"
            raise UnsupportedError(f"the kernel with default knobs cannot be used: {sentence}")

    def _outcome(self, subject: Subject, candidate: Candidate) -> Outcome:
        begin = time.perf_counter()
        kernel = self._texts.pop(candidate, None) or self._made(subject, candidate)
        if isinstance(kernel, Outcome):
            return kernel
        source = digest_of(kernel)
        if source not in self._outcomes:
            found = self._priced(subject, kernel)
            price = found.get("micros")
            if price is not None and not self._default_us:
                self._default_us = price
            self._outcomes[source] = Outcome(
                str(found["status"]),
                micros=price,
                speedup=None if price is None else self._default_us / price,
                spread=None if price is None else 0.0,
                error=None if price is None else 0.0,
                detail=str(found.get("detail", "")),
                predicted=True,
                source=source,
            )
        return replace(self._outcomes[source], seconds=round(time.perf_counter() - begin, 4))

    def _made(self, subject: Subject, candidate: Candidate) -> CudaSource | Outcome:
        """The kernel, or why there is none."""
        try:
            kernel = self.compile(subject, candidate)
        except TcfuseError as error:
            return Outcome("refused", detail=" ".join(str(error).split())[:300], predicted=True)
        assert isinstance(kernel, CudaSource), "only kernels for GPUs are priced"
        return kernel

    def _priced(self, subject: Subject, kernel: CudaSource) -> dict[str, Any]:
        if self._process is None and (found := self._start(subject))["status"] != "ok":
            self._stop()
            return found
        return self._ask(kernel)

    def _start(self, subject: Subject) -> dict[str, Any]:
        self._process = begin(_SERVE.format(LAUNCH_S))
        sizes = dict(subject.sizes)
        setup = Setup(
            subject.definition, subject.interface, sizes, subject.threads, self.most_points
        )
        return self._ask(setup)

    def _ask(self, message: object) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            deadline = time.monotonic() + CANDIDATE_S
            send(process.stdin, message, deadline)
            found = receive(process.stdout, deadline, decode=json.loads)
        except TimeoutError:
            self._stop()
            detail = f"not done after {CANDIDATE_S:g} s in the emulator"
            return {"status": "timeout", "detail": detail}
        except (EOFError, BrokenPipeError, ValueError):
            self._stop()
            return {"status": "crashed", "detail": "the emulator was lost"}
        assert isinstance(found, dict)
        return found

    def _stop(self) -> None:
        if self._process is not None:
            end(self._process)
            self._process = None
