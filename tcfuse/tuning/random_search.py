"""Random search: the control that every other search has to beat."""

from __future__ import annotations

from collections.abc import Sequence

from tcfuse.tuning.candidate import Candidate, Outcome
from tcfuse.tuning.history import History
from tcfuse.tuning.space import Genome, Space


class RandomSampler:
    """Candidates drawn from all of a space, none of them twice.

    The seeds come first, so that the control starts where the others do.

    Args:
        space: What is drawn from.
        seed: Of the random numbers.
        population: Candidates of a generation.
        generations: How many there are at most.
        elites: Not used.
        seeds: Candidates that are tried first.
    """

    def __init__(
        self,
        space: Space,
        seed: int,
        *,
        population: int,
        generations: int,
        elites: int,
        seeds: Sequence[Candidate] = (),
    ) -> None:
        self._history = History(space, seeds)
        self._seed, self._population, self._generations = seed, population, generations

    @property
    def converged(self) -> bool:
        """Whether all generations were asked for, or nothing new is left."""
        history = self._history
        return history.exhausted or history.generation >= self._generations

    def ask(self) -> Sequence[Candidate]:
        """The next generation; nothing once the space is exhausted."""
        history, chosen = self._history, dict[Genome, None]()
        random = history.random(self._seed)
        if not history.generation:
            chosen |= dict.fromkeys(history.seeds[: self._population])
        while len(chosen) < self._population:
            genome = history.drawn(random, chosen)
            if genome is None:
                break
            chosen[genome] = None
        return history.next_generation(chosen)

    def tell(self, outcomes: Sequence[tuple[Candidate, Outcome]]) -> None:
        """What came of candidates, which changes nothing about the next ones."""
        self._history.tell(outcomes)
