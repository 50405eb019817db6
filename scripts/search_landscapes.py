"""Compare the searches of the tuner without measuring anything, on landscapes drawn by chance.

``python -m scripts.search_landscapes [--landscapes N] [--evaluations N] [--only NAME]``

A landscape is a speedup for each candidate, made like those of kernels: most knobs change
nothing, large tiles are no tiles, most tiles and some choices cost much, some others gain, and
some pairs gain only together.  Every search sees it through the same noise.  A candidate whose
kernel is known already costs a fourth of an evaluation, as its library need not be built.  The
few that seem best are timed again in the end, so the best of them counts.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean, quantiles

from tcfuse.commands.progress import print_table
from tcfuse.errors import OptionError
from tcfuse.interface import Interface
from tcfuse.tuning.candidate import Outcome, Subject
from tcfuse.tuning.samplers import ELITES, POPULATION, samplers
from tcfuse.tuning.space import Gene, Genome, Space

PRODUCT = "def product(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
SIZES = {"M": 64, "K": 512, "N": 768}
NOISE = 0.025
KNOWN_COST = 0.25
CONFIRMED = 4  # kernels that are timed again
ALONE = 0.1  # the most that one choice gains by itself, as a logarithm
Pair = tuple[int, int]


@dataclass
class Landscape:
    """A speedup for each genome of a space.

    Attributes:
        alone: For each gene that matters, the logarithm that each value adds.
        together: For pairs of genes, what pairs of values add.
        whole: For each gene of a tile, the first value that is as good as none.
    """

    space: Space
    alone: dict[int, list[float]] = field(default_factory=dict)
    together: dict[Pair, dict[Pair, float]] = field(default_factory=dict)
    whole: dict[int, int] = field(default_factory=dict)

    @classmethod
    def drawn(cls, space: Space, random: Random) -> Landscape:
        """A landscape by chance."""
        made, genes = cls(space), space.genes
        tiles = [place for place, gene in enumerate(genes) if gene.loop is not None]
        others = [place for place, gene in enumerate(genes) if gene.loop is None]
        active = random.sample(tiles, random.choice((1, 2, 2, 3)))
        active += random.sample(others, random.randint(3, 6))
        made.whole = {place: random.randint(3, len(genes[place].values)) for place in tiles}
        for place in sorted(active):
            made.alone[place] = _alone(genes[place], random)
        for _ in range(random.randint(3, 6)):
            first, second = sorted(random.sample(active, 2))
            made.together[first, second] = _together(genes[first], genes[second], random)
        return made

    def kernel(self, genome: Genome) -> Genome:
        """What of a genome changes the kernel."""
        return tuple(
            self.space.genes[place].default
            if genome[place] >= self.whole.get(place, len(self.space.genes[place].values))
            else genome[place]
            for place in self.alone
        )

    def speedup(self, genome: Genome) -> float:
        """How many times faster than the default."""
        chosen = dict(zip(self.alone, self.kernel(genome), strict=True))
        gain = sum(self.alone[place][value] for place, value in chosen.items())
        for (first, second), gains in self.together.items():
            gain += gains.get((chosen[first], chosen[second]), 0.0)
        return math.exp(gain)


def _alone(gene: Gene, random: Random) -> list[float]:
    """What each value of a gene adds."""
    count = len(gene.values)
    if gene.ordered and count > 3:
        best, slope = random.randrange(count), random.uniform(0.01, 0.06)
        top = random.uniform(-0.1, 0.1) if gene.loop is None else random.uniform(-0.4, 0.05)
        gains = [top - slope * abs(i - best) * random.uniform(0.5, 1.5) for i in range(count)]
    else:
        gains = [
            random.gauss(-0.03, 0.08) - 1.2 * (random.random() < 0.2) for _ in range(count)
        ]
    return [min(g, ALONE) if i != gene.default else 0.0 for i, g in enumerate(gains)]


def _together(first: Gene, second: Gene, random: Random) -> dict[Pair, float]:
    """What pairs of values other than the defaults add: a hill, and a loss elsewhere."""
    tops = random.randrange(len(first.values)), random.randrange(len(second.values))
    height, width = random.uniform(0.02, 0.25), random.uniform(0.7, 2.0)

    def apart(gene: Gene, index: int, top: int) -> int:
        return abs(index - top) if gene.ordered else 2 * (index != top)

    return {
        (a, b): height
        * math.exp(
            -(apart(first, a, tops[0]) ** 2 + apart(second, b, tops[1]) ** 2) / (2 * width**2)
        )
        - 0.02
        for a in range(len(first.values))
        for b in range(len(second.values))
        if a != first.default and b != second.default
    }


def found(name: str, landscape: Landscape, seed: int, evaluations: float) -> float:
    """The true speedup of the best of those that a search takes for the best."""
    sampler = samplers[name](
        landscape.space, seed, population=POPULATION, generations=10_000, elites=ELITES
    )
    noise, known, spent = Random(f"noise {seed}"), dict[Genome, Outcome](), 0.0
    true: dict[Genome, float] = {}
    while spent < evaluations and not sampler.converged:
        told = []
        for candidate in sampler.ask():
            genome = landscape.space.encode(candidate)
            kernel = landscape.kernel(genome)
            spent += KNOWN_COST if kernel in known else 1.0
            if kernel not in known:
                timed = landscape.speedup(genome) * math.exp(noise.gauss(0, NOISE))
                known[kernel] = Outcome("ok", 100 / timed, timed, source=str(kernel))
                true[kernel] = landscape.speedup(genome)
            told.append((candidate, known[kernel]))
            if spent >= evaluations:
                break
        sampler.tell(told)
    best = sorted(known, key=lambda kernel: -known[kernel].fitness)[:CONFIRMED]
    return max(true[kernel] for kernel in best)


def subject() -> Subject:
    """A product of matrices, whose knobs a landscape gives other meanings."""
    return Subject("product", PRODUCT, Interface((), (), tuple(SIZES)), SIZES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--landscapes", type=int, default=50)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--only", choices=samplers, action="append")
    chosen = parser.parse_args(arguments)
    space, rows = Space.of(subject()), []
    landscapes = [Landscape.drawn(space, Random(n)) for n in range(chosen.landscapes)]
    for name in chosen.only or samplers:
        try:
            best = [
                found(name, each, n, chosen.evaluations) for n, each in enumerate(landscapes)
            ]
        except OptionError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        low, middle, high = quantiles(best, n=4) if len(best) > 1 else best * 3
        mean = math.exp(fmean(map(math.log, best)))
        rows.append((name, *(f"{value:.3f}" for value in (mean, low, middle, high))))
    print_table(("search", "geometric mean", "quartile", "median", "quartile"), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
