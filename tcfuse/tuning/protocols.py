"""What samplers and evaluators offer each other; ``tuning.tune`` brings them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tcfuse.tuning.candidate import Candidate, Outcome, Subject


class Sampler(Protocol):
    """Proposes candidates, generation by generation.

    Everything it does follows from its seed and from what it is told: equal outcomes give equal
    candidates, so that a run which was killed resumes by being told again what was recorded.
    """

    @property
    def converged(self) -> bool:
        """Whether more candidates are not expected to help."""
        ...

    def ask(self) -> Sequence[Candidate]:
        """The next generation."""
        ...

    def tell(self, outcomes: Sequence[tuple[Candidate, Outcome]]) -> None:
        """What came of the candidates that were asked for; some may be missing."""
        ...


class Evaluator(Protocol):
    """Measures candidates, each in a process of its own."""

    def evaluate(
        self, subject: Subject, candidates: Sequence[Candidate], incumbent: Candidate
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """The outcome of each candidate as soon as there is one, in any order.

        Args:
            subject: What is tuned.
            candidates: What is tried.
            incumbent: The best so far, which runs beside them.
        """
        ...

    def confirm(
        self, subject: Subject, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[Candidate, Outcome]]:
        """Measure a few once more, beside each other and the default, for longer."""
        ...

    def close(self) -> None:
        """End every process."""
        ...
