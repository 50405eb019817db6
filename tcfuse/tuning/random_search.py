"""Random search: the control that every other search has to beat."""

from __future__ import annotations

from collections.abc import Container, Iterator
from random import Random

from tcfuse.tuning.generations import GenerationSampler
from tcfuse.tuning.space import Genome


class RandomSampler(GenerationSampler):
    """Candidates drawn from all of a space, none of them twice.

    The seeds come first, so that the control starts where the others do.
    """

    def _fresh(self, random: Random, chosen: Container[Genome]) -> Iterator[Genome]:
        while (genome := self._history.drawn(random, chosen)) is not None:
            yield genome
