"""The searches by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tcfuse.tuning.candidate import Candidate
from tcfuse.tuning.genetic import GeneticSampler
from tcfuse.tuning.optuna_search import OptunaSampler
from tcfuse.tuning.protocols import Sampler
from tcfuse.tuning.random_search import RandomSampler
from tcfuse.tuning.space import Space

POPULATION = 16
ELITES = 3


class SamplerFactory(Protocol):
    """How every search is made."""

    def __call__(
        self,
        space: Space,
        seed: int,
        *,
        population: int,
        generations: int,
        elites: int,
        seeds: Sequence[Candidate] = (),
    ) -> Sampler:
        """A search.

        Args:
            space: What is searched.
            seed: Of its random numbers: equal ones and equal outcomes give equal candidates.
            population: Candidates of a generation.
            generations: How many there are at most.
            elites: How many of the best are kept from one generation to the next.
            seeds: Candidates to start from, beside the default.

        Raises:
            OptionError: It needs a package that is not installed, or a seed has values that
                knobs do not take.
        """
        ...


samplers: Mapping[str, SamplerFactory] = {
    "genetic": GeneticSampler,
    "random": RandomSampler,
    "optuna": OptunaSampler,
}
