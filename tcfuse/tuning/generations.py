"""What every search does alike: generations of candidates that are new, from one seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from random import Random

from tcfuse.tuning.candidate import Candidate, Outcome
from tcfuse.tuning.history import History
from tcfuse.tuning.space import Genome, Space


class GenerationSampler(ABC):
    """A ``protocols.Sampler`` that says which genomes come next.

    Args:
        space: What is searched.
        seed: Of the random numbers.
        population: Candidates of a generation.
        generations: How many there are at most.
        elites: How many of the best stay, for searches that keep some.
        seeds: Candidates that are tried first, beside the default.
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
        self._elites = elites

    @property
    def converged(self) -> bool:
        """Whether all generations were asked for, or nothing new is left."""
        return self._history.exhausted or self._history.generation >= self._generations

    def ask(self) -> Sequence[Candidate]:
        """The next generation; nothing once the space is exhausted."""
        history, chosen = self._history, dict[Genome, None]()
        if not history.generation:
            chosen |= dict.fromkeys(history.seeds[: self._population])
        fresh = self._fresh(history.random(self._seed), chosen)
        while len(chosen) < self._population and (genome := next(fresh, None)) is not None:
            chosen[genome] = None
        return history.next_generation(chosen)

    def tell(self, outcomes: Sequence[tuple[Candidate, Outcome]]) -> None:
        """What came of candidates that were asked for."""
        self._history.tell(outcomes)

    @abstractmethod
    def _fresh(self, random: Random, chosen: Container[Genome]) -> Iterator[Genome]:
        """Genomes that are new, until there seems to be none.

        Args:
            random: The random numbers of the generation.
            chosen: What it has already; it grows by what is taken.
        """
