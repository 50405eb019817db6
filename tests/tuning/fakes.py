"""An evaluator of which tests decide what comes of a candidate, by its knobs."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tcfuse.errors import UnsupportedError
from tcfuse.interface import Interface, Port
from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.types import DType, TensorType

KILLS = 512  # ``unroll`` of a candidate that kills its worker
KILLS_ONCE = 256
IMPOSSIBLE = 128
HANGS = 64

VECTOR = TensorType(DType.FLOAT32, ("N",))
SUBJECT = Subject(
    "f",
    "def f(float(N) X) -> (float(N) Y) {\n  Y(i) = X(i) + 1 where i in 0:N\n}\n",
    Interface((Port("X", VECTOR),), (Port("Y", VECTOR),), ("N",)),
    {"N": 1000},
)


def candidates(*unroll: int) -> list[Candidate]:
    return [Candidate(MappingOptions(unroll=n)) for n in unroll]


@dataclass
class Fake:
    """Takes ``seconds``, and says where it was in ``detail``."""

    folder: Path
    seconds: float = 0.0

    def evaluate(
        self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
    ) -> Iterator[tuple[Candidate, Outcome]]:
        assert subject == SUBJECT
        assert incumbent == Candidate()
        for candidate in candidates:
            unroll = candidate.mapping.unroll
            time.sleep(3600 if unroll == HANGS else self.seconds)
            if unroll == IMPOSSIBLE:
                raise UnsupportedError("nobody can try this")
            if unroll == KILLS or (unroll == KILLS_ONCE and self._first()):
                os.kill(os.getpid(), signal.SIGKILL)
            yield (
                candidate,
                Outcome(
                    "ok", micros=float(unroll), detail=self._where(), source=f"text {unroll}"
                ),
            )

    def confirm(
        self, subject: Subject, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[Candidate, Outcome]]:
        for candidate, outcome in self.evaluate(subject, candidates, Candidate()):
            yield candidate, replace(outcome, speedup=2.0)

    def learn(self, subject: Subject, outcomes: Sequence[Outcome]) -> None:
        assert subject == SUBJECT
        with (self.folder / "learned").open("a", encoding="utf-8") as file:
            file.writelines(f"{outcome.source}\n" for outcome in outcomes)

    def made(self, subject: Subject, candidate: Candidate) -> Outcome:
        assert subject == SUBJECT
        return Outcome("made", source=f"text {candidate.mapping.unroll}")

    def _first(self) -> bool:
        flag = self.folder / "killed"
        first = not flag.exists()
        flag.touch()
        return first

    def _where(self) -> str:
        return f"{os.getpid()} {sorted(os.sched_getaffinity(0))}"

    def close(self) -> None:
        (self.folder / f"closed-{os.getpid()}").touch()
