"""What a search asked for and was told: every genome, and what came of it.

Searches draw all their randomness from the seed and the number of the generation, and look at
outcomes by genome, so equal outcomes give equal candidates, in whatever order they were told.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from random import Random

from tcfuse.errors import OptionError
from tcfuse.tuning.candidate import Candidate, Outcome
from tcfuse.tuning.space import Genome, Space

NOISE = 0.01  # a gain of less may be the clock's
DRAWS = 100  # without anything new before a space counts as exhausted


class History:
    """The state of a search.

    Args:
        space: Where the genomes are from.
        seeds: Candidates to start from, beside the default; their values join the space.

    Attributes:
        seeds: The genomes of the default and the seeds.
        asked: In which generation each genome was asked for.
        outcomes: What is known.
        generation: Number of the next generation.
        exhausted: Nothing new was found for the last one.
    """

    def __init__(self, space: Space, seeds: Sequence[Candidate] = ()) -> None:
        self.space = space.including(seeds)
        genomes = (self.space.default, *map(self.space.encode, seeds))
        self.seeds = list(dict.fromkeys(genomes))
        self.asked: dict[Genome, int] = {}
        self.outcomes: dict[Genome, Outcome] = {}
        self.generation = 0
        self.exhausted = False

    def random(self, seed: int) -> Random:
        """The random numbers of the next generation."""
        return Random(f"{seed}/{self.generation}")

    def next_generation(self, genomes: Iterable[Genome]) -> Sequence[Candidate]:
        """Note what is asked for now."""
        chosen = dict.fromkeys(genomes, self.generation)
        assert not chosen.keys() & self.asked.keys(), "a candidate is asked for once"
        self.asked |= chosen
        self.generation += 1
        return [self.space.decode(genome) for genome in chosen]

    def tell(self, outcomes: Iterable[tuple[Candidate, Outcome]]) -> None:
        """Note what came of candidates; those that are not of this space are left out."""
        for candidate, outcome in outcomes:
            try:
                genome = self.space.encode(candidate)
            except OptionError:
                continue
            self.outcomes[genome] = outcome

    def drawn(self, random: Random, chosen: Container[Genome]) -> Genome | None:
        """A genome drawn from all that are new; ``None`` if there seems to be none."""
        for _ in range(DRAWS):
            genome = self.space.draw(random)
            if genome not in chosen and genome not in self.asked:
                return genome
        self.exhausted = True
        return None

    def fitness(self, genome: Genome) -> float:
        """How good a genome is; 0 while nobody knows."""
        outcome = self.outcomes.get(genome)
        return outcome.fitness if outcome else 0.0

    def ranked(self, genomes: Iterable[Genome] | None = None) -> list[Genome]:
        """Genomes that work, all of them if none are given, the best first."""
        some = self.outcomes if genomes is None else genomes
        working = [genome for genome in some if self.fitness(genome)]
        return sorted(working, key=lambda genome: (-self.fitness(genome), genome))

    def sources(self) -> dict[Genome, str]:
        """The text of each kernel that there was one of."""
        return {g: told.source for g, told in self.outcomes.items() if told.source}

    def distinct(self, genomes: Iterable[Genome]) -> list[Genome]:
        """Of genomes with the same kernel only the first."""
        kept: dict[str, Genome] = {}
        for genome in genomes:
            kept.setdefault(self.outcomes[genome].source or str(genome), genome)
        return list(kept.values())

    def idle(self) -> int:
        """Generations since the last one that brought a gain."""
        found = [0.0] * self.generation
        for genome, generation in self.asked.items():
            found[generation] = max(found[generation], self.fitness(genome))
        best, last = 0.0, 0
        for generation, fitness in enumerate(found):
            if fitness > best * (1 + NOISE):
                best, last = fitness, generation
        return self.generation - 1 - last
