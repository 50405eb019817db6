"""The genetic search over the knobs of a kernel.

The best so far and the last children are the parents of the next generation.  A child takes
each gene from one of three parents, which are drawn by how fast they are, and then some of its
genes change.  Children replace all but the elites, and every child is new: nothing is measured
twice.  What failed is no parent.

The defaults are good here, so half of the first generation is near them.  Genes that
are seen to change nothing about the kernel change less often (``influence``), and genomes of
one kernel are one parent.

Source: "The Next 700 Accelerated Layers", section 5 (uniform crossover of three parents,
mutation, elites).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tcfuse.tuning.generations import GenerationSampler
from tcfuse.tuning.influence import influence
from tcfuse.tuning.space import Genome, Space

PARENTS = 3
STALE = 2  # generations without a gain after which strangers are let in
CHANGES = 50  # of a genome that is known already before it is drawn anew


@dataclass(frozen=True, slots=True)
class Strategy:
    """The numbers of a genetic search.

    Attributes:
        crossover: Part of the children that have three parents; the others have one.
        mutation: Part of a child's genes that change.
        near: Part of the first generation that is near the defaults or the seeds.
        step: Part of the changes of an ordered gene that go to a near value.
        pressure: Power of the speedup by which parents are drawn.
        immigrants: Part of a generation that is drawn from all of the space, where the last
            ones brought no gain.
        patience: Generations without a gain after which the search ends.
    """

    crossover: float = 0.8
    mutation: float = 0.07
    near: float = 0.5
    step: float = 0.5
    pressure: float = 10.0
    immigrants: float = 0.25
    patience: int = 6


class GeneticSampler(GenerationSampler):
    """A genetic search; see the module.

    Args:
        space: What is searched.
        seed: Of the random numbers.
        strategy: The numbers.
        options: As for every search; the elites stay among the parents without being measured
            again.
    """

    def __init__(
        self, space: Space, seed: int, *, strategy: Strategy | None = None, **options: Any
    ) -> None:
        super().__init__(space, seed, **options)
        self._strategy = strategy or Strategy()
        self._influence = [1.0] * len(self._history.space.genes)

    @property
    def converged(self) -> bool:
        """Whether there was no gain for long, or nothing new is left."""
        return super().converged or self._history.idle() >= self._strategy.patience

    def _fresh(self, random: Random, chosen: Container[Genome]) -> Iterator[Genome]:
        self._influence = influence(self._history.sources(), len(self._influence))
        for proposed in self._proposals(random):
            genome = self._new(proposed, random, chosen)
            if genome is None:
                return
            yield genome

    def parents(self) -> list[Genome]:
        """Those of the next generation, the best first: the elites and the last children."""
        history = self._history
        last = [g for g, asked in history.asked.items() if asked == history.generation - 1]
        elites = history.distinct(history.ranked())[: self._elites]
        return history.distinct(history.ranked({*elites, *last}))

    def _proposals(self, random: Random) -> Iterator[Genome]:
        """Genomes for a generation, without end; they may be known already."""
        space, strategy, parents = self._history.space, self._strategy, self.parents()
        if len(parents) < PARENTS:  # nothing to cross
            near, start = strategy.near, (*parents, *self._history.seeds)
            while True:
                by = random.random() < near
                yield self._mutant(random.choice(start), random) if by else space.draw(random)
        stale = self._history.idle() >= STALE
        while True:
            foreign = stale and random.random() < strategy.immigrants
            yield space.draw(random) if foreign else self._child(parents, random)

    def _child(self, parents: Sequence[Genome], random: Random) -> Genome:
        """A child of parents that are drawn by how fast they are."""
        strategy, fitness = self._strategy, self._history.fitness
        weights = [fitness(genome) ** strategy.pressure for genome in parents]
        count = PARENTS if random.random() < strategy.crossover else 1
        drawn = random.choices(parents, weights, k=count)
        child = [random.choice(genes) for genes in zip(*drawn, strict=True)]
        for place in range(len(child)):
            if random.random() < strategy.mutation * self._influence[place]:
                child[place] = self._changed(place, child[place], random)
        return self._history.space.normal(tuple(child))

    def _new(self, genome: Genome, random: Random, chosen: Container[Genome]) -> Genome | None:
        """The genome, changed until it is a new one; ``None`` if there seems to be none."""
        for _ in range(CHANGES):
            if genome not in chosen and genome not in self._history.asked:
                return genome
            genome = self._mutant(genome, random)
        return self._history.drawn(random, chosen)

    def _mutant(self, genome: Genome, random: Random) -> Genome:
        """The genome with one gene changed."""
        if not genome:
            return genome
        (place,) = random.choices(range(len(genome)), self._influence)
        index = self._changed(place, genome[place], random)
        return self._history.space.normal((*genome[:place], index, *genome[place + 1 :]))

    def _changed(self, place: int, index: int, random: Random) -> int:
        """Another value of a gene."""
        gene = self._history.space.genes[place]
        count = len(gene.values)
        if gene.ordered and random.random() < self._strategy.step:
            near = [i for i in (index - 1, index + 1) if 0 <= i < count]
            return random.choice(near)
        return (index + random.randrange(1, count)) % count
