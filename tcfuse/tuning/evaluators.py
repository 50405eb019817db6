"""Which evaluator measures a kernel: by its target, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.measure import LocalEvaluator
from tcfuse.tuning.predicted import PredictedEvaluator
from tcfuse.tuning.protocols import Evaluator


@dataclass(slots=True)
class Evaluators:
    """An ``Evaluator`` for kernels of every target; each is made when it is needed.

    Attributes:
        workers: Candidates that are measured at the same time.
        scheduler: Address of a scheduler whose workers measure; empty: this machine does.
    """

    workers: int = 1
    scheduler: str = ""
    _made: dict[str, Evaluator] = field(default_factory=dict)

    def evaluate(
        self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """See ``protocols.Evaluator``."""
        return self._of(subject.target).evaluate(subject, candidates, incumbent)

    def confirm(
        self, subject: Subject, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """See ``protocols.Evaluator``."""
        return self._of(subject.target).confirm(subject, candidates)

    def close(self) -> None:
        """End every process."""
        for evaluator in self._made.values():
            evaluator.close()
        self._made.clear()

    def _of(self, target: str) -> Evaluator:
        if target not in self._made:
            self._made[target] = self._make(target)
        return self._made[target]

    def _make(self, target: str) -> Evaluator:
        """Workers of a cluster, or of this machine; kernels for GPUs are priced by a model.

        Raises:
            WorkerError: They cannot be had.
        """
        make = PredictedEvaluator if target == "cuda" else LocalEvaluator
        if self.scheduler:
            from tcfuse.tuning.cluster import evaluator

            return evaluator(self.scheduler, make, target)
        if self.workers > 1:
            from tcfuse.tuning.workers import WorkersEvaluator

            return WorkersEvaluator(self.workers, make)
        return make()
