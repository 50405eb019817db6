"""The genetic search crosses, keeps the best, ends, and finds more than chance does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.candidate import Candidate, Outcome
from tcfuse.tuning.genetic import GeneticSampler, Strategy
from tcfuse.tuning.influence import influence
from tcfuse.tuning.random_search import RandomSampler
from tcfuse.tuning.space import Space
from tests.tuning.subjects import hilly, outcome, search, subject

SPACE = Space.of(subject())
STILL = Strategy(mutation=0, patience=99)


def genetic(seed: int = 1, strategy: Strategy | None = None) -> GeneticSampler:
    return GeneticSampler(
        SPACE, seed, population=16, generations=99, elites=3, strategy=strategy
    )


def tell(sampler: GeneticSampler, landscape: Callable[[Candidate], float]) -> list[Candidate]:
    asked = list(sampler.ask())
    sampler.tell([(c, outcome(landscape(c))) for c in asked])
    return asked


def test_children_take_genes_of_several_parents_though_all_parents_are_valid():
    sampler = genetic(strategy=STILL)
    tell(sampler, hilly)
    parents = sampler.parents()
    children = [SPACE.encode(c) for c in sampler.ask()]
    crossed = 0
    for child in children:
        places = range(len(child))
        whole = any(sum(child[i] != p[i] for i in places) <= 1 for p in parents)
        crossed += not whole and all(child[i] in {p[i] for p in parents} for i in places)
    assert crossed >= 3
    assert not set(children) & set(parents)


def test_children_replace_all_but_the_elites():
    sampler = genetic()
    first = [SPACE.encode(c) for c in tell(sampler, hilly)]
    second = [SPACE.encode(c) for c in tell(sampler, hilly)]
    best = sorted((*first, *second), key=lambda g: (-hilly(SPACE.decode(g)), g))[:3]
    assert set(sampler.parents()) == {*best, *second}


def test_what_failed_is_no_parent():
    sampler = genetic()
    asked = sampler.ask()
    sampler.tell([(c, outcome(hilly(c) if i % 3 else 0)) for i, c in enumerate(asked)])
    failed = {SPACE.encode(c) for i, c in enumerate(asked) if not i % 3}
    assert not failed & set(sampler.parents())
    assert len(sampler.parents()) == 10


def test_with_too_few_parents_the_next_are_near_the_default_and_the_best():
    sampler = genetic(strategy=Strategy(near=1.0))
    asked = sampler.ask()
    best = next(c for c in asked if c != Candidate())
    sampler.tell([(c, outcome(2.0 if c == best else 0)) for c in asked])
    start = (SPACE.default, SPACE.encode(best))
    for genome in map(SPACE.encode, sampler.ask()):
        assert min(sum(a != b for a, b in zip(genome, s, strict=True)) for s in start) <= 3


def test_genomes_of_one_kernel_are_one_parent():
    sampler = genetic()
    asked = sampler.ask()
    sampler.tell([(c, replace(outcome(1.0), source="same")) for c in asked])
    assert len(sampler.parents()) == 1


def test_the_search_ends_where_there_is_no_gain():
    sampler = genetic(strategy=Strategy(patience=4))
    tried = search(sampler, lambda _: 1.0, 1000, noise=0.0)
    assert sampler.converged
    assert len(tried) == 16 * 5
    climbing = genetic(strategy=Strategy(patience=4))
    speeds = iter(range(1, 1000))
    search(climbing, lambda _: 1.1 ** next(speeds), 160, noise=0.0)
    assert not climbing.converged


def test_strangers_are_let_in_where_there_is_no_gain():
    def strangers(immigrants: float) -> int:
        sampler = genetic(strategy=Strategy(mutation=0, immigrants=immigrants, patience=99))
        for _ in range(3):
            known = set(map(SPACE.encode, tell(sampler, lambda _: 1.0))) | set(
                sampler.parents()
            )
        values = [set(genes) for genes in zip(*known, strict=True)]
        return sum(
            sum(g not in v for g, v in zip(SPACE.encode(c), values, strict=True)) >= 3
            for c in sampler.ask()
        )

    assert strangers(1.0) > strangers(0.0) + 4


def test_it_finds_more_than_chance_does_at_as_many_evaluations():
    found: list[float] = []
    chance: list[float] = []
    for seed in range(9):
        control = RandomSampler(SPACE, seed, population=16, generations=99, elites=3)
        for sampler, best in (
            (genetic(seed, Strategy(patience=99)), found),
            (control, chance),
        ):
            tried = search(sampler, hilly, 112, seed=seed)
            best.append(hilly(max(tried, key=lambda t: t[1])[0]))
    assert median(found) > 1.03 * median(chance)


def test_a_knob_that_changes_no_text_has_little_influence():
    sources = {(0, 0): "a", (0, 1): "a", (0, 2): "a", (1, 0): "b", (2, 0): "c"}
    first, second = influence(sources, 2)
    assert first > 1.4 > 0.6 > second
    assert influence({}, 3) == [1.0, 1.0, 1.0]


@given(st.dictionaries(st.tuples(*[st.integers(0, 2)] * 3), st.sampled_from("abc")))
@settings(max_examples=50)
def test_influence_is_relative_and_does_not_depend_on_order(
    sources: dict[tuple[int, ...], str],
):
    found = influence(sources, 3)
    assert sum(found) == pytest.approx(3)
    assert min(found) > 0
    assert influence(dict(reversed(sources.items())), 3) == found


def test_seeds_are_where_it_starts():
    seed = Candidate(MappingOptions(tile=(5, 0, 7), unroll=4, separate_tiles=True))
    sampler = GeneticSampler(
        SPACE,
        1,
        population=16,
        generations=9,
        elites=3,
        seeds=[seed],
        strategy=Strategy(near=1.0),
    )
    near = [
        c for c in sampler.ask() if c.mapping.tile[:1] == (5,) or c.mapping.tile[2:] == (7,)
    ]
    assert len(near) >= 4


def test_outcomes_that_are_missing_do_not_stop_it():
    sampler = genetic()
    for _ in range(3):
        asked = sampler.ask()
        assert len(asked) == 16
        sampler.tell([(asked[0], Outcome("timeout"))])
