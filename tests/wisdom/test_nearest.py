"""Which entries are near sizes that nobody tuned."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.wisdom.nearest import PROBES, distance, nearest
from tests.wisdom.entries import entry, problem

SIZES = st.tuples(st.integers(0, 5000), st.integers(1, 5000))


def test_distances_are_powers_of_two() -> None:
    assert distance(problem(64, 8), problem(128, 8)) == 1.0
    assert distance(problem(64, 8), problem(256, 64)) == 13**0.5


def test_the_nearest_come_first_and_equal_knobs_once() -> None:
    family = [
        entry(16, 16, unroll=1),
        entry(64, 64, unroll=2),
        entry(80, 64, unroll=2),
        entry(256, 64, unroll=8),
        entry(4096, 64, unroll=16),
        entry(8192, 64, unroll=4),
    ]
    found = nearest(problem(100, 64), family)
    assert [e.problem.sizes for e in found] == [(80, 64), (256, 64), (16, 16)]


def test_of_each_problem_it_is_the_best() -> None:
    family = [entry(64, 64, unroll=2, speedup=1.1), entry(64, 64, unroll=8, speedup=1.9)]
    assert [e.speedup for e in nearest(problem(65, 64), family)] == [1.9]


@settings(deadline=None)
@given(st.lists(st.builds(lambda s, u: entry(*s, unroll=u), SIZES, st.integers(1, 9))), SIZES)
def test_few_are_found_in_order(family: list, sizes: tuple[int, int]) -> None:
    wanted = problem(*sizes)
    found = nearest(wanted, family)
    assert len(found) == min(PROBES, len({e.knobs_text for e in found}))
    distances = [distance(wanted, e.problem) for e in found]
    assert distances == sorted(distances)
    if family:
        assert distances[0] == min(distance(wanted, e.problem) for e in family)
