"""What holds of every search."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random

import pytest

from tcfuse.errors import OptionError
from tcfuse.mapping_options import MappingOptions
from tcfuse.tuning.candidate import Candidate, Outcome
from tcfuse.tuning.protocols import Sampler
from tcfuse.tuning.samplers import samplers
from tcfuse.tuning.space import Space
from tests.tuning.subjects import SCALE, hilly, outcome, search, subject

SPACE = Space.of(subject())
SEED = Candidate(MappingOptions(tile=(7,), unroll=3))


@pytest.fixture(params=samplers)
def name(request: pytest.FixtureRequest) -> str:
    """Of a search that can be used here."""
    if request.param == "optuna":
        pytest.importorskip("optuna")
    return str(request.param)


def made(name: str, seed: int = 1, generations: int = 100, space: Space = SPACE) -> Sampler:
    return samplers[name](
        space, seed, population=8, generations=generations, elites=2, seeds=[SEED]
    )


def shuffled(sampler: Sampler, generations: int, order: int) -> Iterator[list[Candidate]]:
    """Generations of a search that is told outcomes in another order, and not all of them."""
    random = Random(order)
    for _ in range(generations):
        asked = list(sampler.ask())
        yield asked
        told = [(c, outcome(hilly(c))) for c in asked[:-1]]
        random.shuffle(told)
        half = len(told) // 2
        sampler.tell(told[:half])
        sampler.tell(told[half:])


def test_equal_outcomes_give_equal_candidates(name: str):
    first = list(shuffled(made(name), 4, order=1))
    assert first == list(shuffled(made(name), 4, order=2))
    assert first != list(shuffled(made(name, seed=2), 4, order=1))


def test_the_default_and_the_seeds_come_first_and_nothing_comes_twice(name: str):
    tried = [c for c, _ in search(made(name), hilly, 40)]
    assert tried[:2] == [Candidate(), SEED]
    assert len(tried) == len(set(map(str, tried))) == 40


def test_a_search_ends_after_its_generations(name: str):
    sampler = made(name, generations=3)
    assert len(search(sampler, hilly, 1000)) == 24
    assert sampler.converged


def test_a_small_space_is_tried_whole(name: str):
    forced = {
        known: getattr(MappingOptions(), known)
        for known in MappingOptions.__slots__
        if known not in ("unroll", "skewing")
    }
    space = Space.of(subject(SCALE, {"N": 100}), forced)
    sampler = samplers[name](space, 1, population=8, generations=99, elites=2)
    tried = search(sampler, lambda c: 1 + 0.1 * c.mapping.unroll, 1000)
    assert len(tried) == space.size == 12
    assert sampler.converged


def test_a_space_of_one_candidate_is_exhausted(name: str):
    space = Space.of(subject(), {known: getattr(MappingOptions(), known) for known in KNOBS})
    sampler = samplers[name](space, 1, population=8, generations=99, elites=2)
    assert [c for c, _ in search(sampler, hilly, 100)] == [Candidate()]
    assert sampler.converged


KNOBS = tuple(MappingOptions.__slots__)


def test_a_search_goes_on_where_everything_fails(name: str):
    sampler = made(name)
    for _ in range(4):
        asked = sampler.ask()
        assert len(asked) == 8
        sampler.tell([(candidate, Outcome("crashed")) for candidate in asked])


def test_what_is_not_of_the_space_is_not_looked_at(name: str):
    sampler, other = made(name), made(name)
    for each in (sampler, other):
        each.tell([(c, outcome(1.0)) for c in each.ask()])
    other.tell([(Candidate(MappingOptions(tile=(999,))), outcome(9.0))])
    assert sampler.ask() == other.ask()


def test_optuna_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(OptionError, match=r"pip install 'tcfuse\[optuna\]'"):
        made("optuna")
