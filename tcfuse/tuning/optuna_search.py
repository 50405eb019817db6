"""Optuna's tree-structured Parzen estimator as another search.

A study lives for one generation and is told all that is known, so that its suggestions follow
from the outcomes alone.

Source: Akiba et al., "Optuna: A Next-generation Hyperparameter Optimization Framework", KDD
2019.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from random import Random
from typing import Any

from tcfuse.errors import OptionError
from tcfuse.tuning.generations import GenerationSampler
from tcfuse.tuning.space import Gene, Genome, Space

KNOWN = 100  # suggestions that are known already before one is drawn at random
STARTUP = 10  # random candidates before anything is estimated


class OptunaSampler(GenerationSampler):
    """Optuna's suggestions; those that are known already are answered without being measured.

    Args:
        space: What is searched.
        seed: Of the random numbers.
        options: As for every search.

    Raises:
        OptionError: Optuna is not installed.
    """

    def __init__(self, space: Space, seed: int, **options: Any) -> None:
        self._optuna = _optuna()
        super().__init__(space, seed, **options)
        genes = self._history.space.genes
        self._distributions = {str(gene): self._distribution(gene) for gene in genes}

    def _fresh(self, random: Random, chosen: Container[Genome]) -> Iterator[Genome]:
        study = self._study(random.getrandbits(32))
        while True:
            genome = self._suggested(study, chosen) or self._history.drawn(random, chosen)
            if genome is None:
                return
            yield genome

    def _suggested(self, study: Any, chosen: Container[Genome]) -> Genome | None:
        """A suggestion that is new; ``None`` if there seems to be none."""
        history = self._history
        for _ in range(KNOWN):
            trial = study.ask(self._distributions)
            suggested = tuple(trial.params[str(gene)] for gene in history.space.genes)
            genome = history.space.normal(suggested)
            if genome not in chosen and genome not in history.asked:
                return genome  # its trial stays open, which keeps the next ones away from it
            if genome in history.outcomes:
                study.tell(trial, history.fitness(genome))
        return None

    def _study(self, seed: int) -> Any:
        """A study that knows all outcomes, told in an order of their own."""
        optuna = self._optuna
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP, constant_liar=True
        )
        study = optuna.create_study(direction="maximize", sampler=sampler)
        genes = list(self._distributions)
        for genome in sorted(self._history.outcomes):
            params = dict(zip(genes, genome, strict=True))
            study.add_trial(
                optuna.trial.create_trial(
                    params=params,
                    distributions=self._distributions,
                    value=self._history.fitness(genome),
                )
            )
        return study

    def _distribution(self, gene: Gene) -> Any:
        """Indices, near ones of which are alike where values are in order."""
        distributions = self._optuna.distributions
        if gene.ordered:
            return distributions.IntDistribution(0, len(gene.values) - 1)
        return distributions.CategoricalDistribution(range(len(gene.values)))


def _optuna() -> Any:
    """The module, silent."""
    try:
        import optuna
    except ImportError:
        raise OptionError(
            "the search optuna needs Optuna: pip install 'tcfuse[optuna]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
