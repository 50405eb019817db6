"""The fewest barriers, against every way to place them."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.mapping.barriers import Level, place_barriers

NONE, WARP, BLOCK = Level
ITERATIONS = 3


def is_covered(needs: list[list[Level]], levels: tuple[Level, ...], *, wraps: bool) -> bool:
    """Whether what runs in ``ITERATIONS`` iterations is in order, pair by pair."""
    count = len(needs)
    turns = ITERATIONS if wraps else 1
    steps = [(turn, item) for turn in range(turns) for item in range(count)]
    for a, (turn, i) in enumerate(steps):
        for b in range(a + 1, len(steps)):
            later, j = steps[b]
            same = later == turn
            if not same and (later > turn + 1 or i < j):
                continue
            between = [levels[steps[k][1]] for k in range(a, b)]
            if max(between) < needs[i][j]:
                return False
    return True


def cost(levels: tuple[Level, ...]) -> tuple[int, int]:
    return levels.count(BLOCK), levels.count(WARP)


def oracle(needs: list[list[Level]], *, wraps: bool) -> tuple[int, int]:
    """The least cost of all ways."""
    ways = product(Level, repeat=len(needs))
    return min(cost(way) for way in ways if is_covered(needs, way, wraps=wraps))


@st.composite
def all_needs(draw: st.DrawFn, most: int = 4) -> list[list[Level]]:
    count = draw(st.integers(1, most))
    row = st.lists(st.sampled_from(Level), min_size=count, max_size=count)
    return draw(st.lists(row, min_size=count, max_size=count))


@settings(max_examples=150, deadline=None)
@given(needs=all_needs(), wraps=st.booleans())
def test_no_way_has_fewer(needs: list[list[Level]], wraps: bool) -> None:
    found = place_barriers(needs, wraps=wraps)
    assert len(found) == len(needs)
    assert is_covered(needs, found, wraps=wraps)
    assert cost(found) == oracle(needs, wraps=wraps)


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_way_has_fewer_whatever_is_needed(count: int, wraps: bool) -> None:
    """All of one and two items, and many of three."""
    cells = [(i, j) for i in range(count) for j in range(count) if wraps or i < j]
    cases = list(product(Level, repeat=len(cells)))
    if len(cases) > 700:
        cases = random.Random(0).sample(cases, 700)
    for case in cases:
        needs = [[NONE] * count for _ in range(count)]
        for (i, j), level in zip(cells, case, strict=True):
            needs[i][j] = level
        found = place_barriers(needs, wraps=wraps)
        assert is_covered(needs, found, wraps=wraps), needs
        assert cost(found) == oracle(needs, wraps=wraps), needs


def test_one_barrier_serves_all_that_overlap() -> None:
    needs = [[NONE] * 4 for _ in range(4)]
    needs[0][2] = needs[1][3] = BLOCK
    assert place_barriers(needs, wraps=False) == (NONE, BLOCK, NONE, NONE)


def test_a_barrier_of_the_block_moves_to_where_it_saves_one_of_a_warp() -> None:
    needs = [[NONE] * 4 for _ in range(4)]
    needs[0][3], needs[0][1] = BLOCK, WARP
    assert cost(place_barriers(needs, wraps=False)) == (1, 0)


def test_what_the_next_iteration_needs_is_covered_at_its_start_or_end() -> None:
    needs = [[NONE, NONE], [BLOCK, NONE]]
    assert place_barriers(needs, wraps=True) == (NONE, BLOCK)
    assert place_barriers(needs, wraps=False) == (NONE, NONE)


def test_nothing_needed_is_nothing_placed() -> None:
    assert place_barriers([], wraps=True) == ()
    assert place_barriers([[NONE] * 30] * 30, wraps=True) == (NONE,) * 30


def test_many_items_take_little_time() -> None:
    rng = random.Random(1)
    count = 24
    needs = [
        [rng.choice((NONE, NONE, NONE, WARP, BLOCK)) for _ in range(count)]
        for _ in range(count)
    ]
    found = place_barriers(needs, wraps=True)
    assert is_covered(needs, found, wraps=True)
