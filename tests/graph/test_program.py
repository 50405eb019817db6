"""The integer program over regions: optimal against brute force, and never in a circle."""

from __future__ import annotations

import functools
import itertools
import math
import random
from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.graph.program import Choice, Program, Solution, best, solve
from tcfuse.graph.quotient import circles

CHAIN = ((0, 1), (1, 2), (2, 3))


def native(*prices: float) -> tuple[Choice, ...]:
    return tuple(Choice(frozenset([k]), price, False) for k, price in enumerate(prices))


def region(price: float, *nodes: int) -> Choice:
    return Choice(frozenset(nodes), price)


def chosen(program: Program, found: Solution | None) -> set[frozenset[int]]:
    assert found is not None
    return {program.choices[k].nodes for k in found.regions}


def is_acyclic(edges, regions) -> bool:
    """By NetworkX's own check, on the contracted graph."""
    home = {node: (k,) for k, nodes in enumerate(regions) for node in nodes}
    ends = {(home.get(a, a), home.get(b, b)) for a, b in edges}
    return nx.is_directed_acyclic_graph(nx.DiGraph((a, b) for a, b in ends if a != b))


def convex(n: int, edges) -> list[frozenset[int]]:
    """Every connected set of at least two nodes that no path leaves and comes back to."""
    near, after, before = [0] * n, [0] * n, [0] * n  # bit sets
    for a, b in edges:
        near[a] |= 1 << b
        near[b] |= 1 << a
    for b in range(n):
        for a in (a for a, end in edges if end == b):
            before[b] |= before[a] | 1 << a
    for b in range(n):
        for a in range(n):
            after[a] |= (before[b] >> a & 1) << b
    found = []
    for mask in range(1, 1 << n):
        nodes = [k for k in range(n) if mask >> k & 1]
        reached = mask & -mask
        for _ in nodes:
            for k in nodes:
                reached |= near[k] & mask if reached >> k & 1 else 0
        below, above = (
            functools.reduce(int.__or__, map(w.__getitem__, nodes)) for w in (after, before)
        )
        if len(nodes) > 1 and reached == mask and not below & above & ~mask:
            found.append(frozenset(nodes))
    return found


def by_brute_force(program: Program) -> float:
    """The least price of all partitions into choices whose regions are jointly acyclic."""
    least = {
        node: min(c.price / len(c.nodes) for c in program.choices if node in c.nodes)
        for node in program.nodes
    }
    lowest = math.inf
    of = {n: [c for c in program.choices if n == min(c.nodes)] for n in program.nodes}

    def extend(left: frozenset[int], price: float, taken: list[frozenset[int]]) -> None:
        nonlocal lowest
        if price + sum(least[node] for node in left) >= lowest:
            return
        if not left:
            lowest = price
            return
        first = min(left)
        for choice in of[first]:
            if choice.nodes <= left:
                regions = [*taken, choice.nodes] if choice.is_region else taken
                if not choice.is_region or is_acyclic(program.edges, regions):
                    extend(left - choice.nodes, price + choice.price, regions)

    extend(frozenset(program.nodes), 0.0, [])
    return lowest


def random_program(seed: int) -> Program:
    """A random graph, and a random price for nine in ten of its convex connected sets."""
    rng = random.Random(seed)
    n = rng.randint(1, 12)
    density = rng.choice((0.1, 0.15, 0.2) if n > 8 else (0.2, 0.4))
    edges = tuple(p for p in itertools.combinations(range(n), 2) if rng.random() < density)
    alone = native(*(rng.randint(1, 20) for _ in range(n)))
    some = [
        region(len(nodes) * rng.randint(2, 20) ** rng.random(), *nodes)
        for nodes in convex(n, edges)
        if rng.random() < 0.9
    ]
    return Program((*alone, *some), edges)


SEEDS = st.integers(0, 10**9)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_it_is_as_good_as_brute_force(seed: int):
    program = random_program(seed)
    found = solve(program)
    assert found is not None
    regions = chosen(program, found)
    assert is_acyclic(program.edges, regions)
    assert len(set().union(*regions)) == sum(map(len, regions))
    assert found.price == pytest.approx(by_brute_force(program))


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_the_next_best_have_other_regions_and_cost_no_less(seed: int):
    program = random_program(seed)
    found = list(best(program, 4))
    assert [s.price for s in found] == sorted(s.price for s in found)
    assert len({s.regions for s in found}) == len(found)


def test_the_cheapest_cover_is_found_and_then_the_next():
    parts = region(4, 0, 1), region(3, 1, 2), region(8, 0, 1, 2)
    program = Program((*native(3, 3, 3), *parts), CHAIN[:2])
    first, second, third = best(program, 3)
    assert chosen(program, first) == {frozenset({1, 2})}
    assert (first.price, second.price, third.price) == (6, 7, 8)


def test_a_kernel_of_several_nodes_is_taken_whole_or_not_at_all():
    both = Choice(frozenset({0, 1}), 3.5, False)
    for price, expected in ((1.0, 3.5), (0.25, 3.25)):
        found = solve(Program((*native(3, 3), both, region(price, 0)), CHAIN[:1]))
        assert found is not None
        assert found.price == expected


def test_regions_that_wait_for_each_other_are_not_both_taken():
    program = Program((*native(3, 3, 3, 3), region(1, 0, 3), region(1, 1, 2)), ((0, 1), (2, 3)))
    found = solve(program)
    assert found is not None
    assert found.price == 7


def test_neither_are_three_that_wait_in_a_circle_through_others():
    # a -> 6 -> b, b -> c, c -> a: no two of the three clash
    edges = ((0, 6), (6, 3), (2, 5), (4, 1))
    parts = region(1, 0, 1), region(1, 2, 3), region(1, 4, 5)
    program = Program((*native(*[3] * 7), *parts), edges)
    assert not is_acyclic(edges, [part.nodes for part in parts])
    (circle,) = circles(edges, [part.nodes for part in parts])
    assert set(circle) == {part.nodes for part in parts}
    found = solve(program)
    assert found is not None
    assert (len(found.regions), found.price) == (2, 11)


def test_a_region_that_waits_for_itself_is_not_taken():
    found = solve(Program((*native(3, 3, 3), region(1, 0, 2)), CHAIN[:2]))
    assert found == Solution(frozenset(), 9.0)


def test_what_belongs_together_is_inside_one_region():
    parts = region(9, 0, 1), region(20, 0, 1, 2)
    program = Program((*native(3, 3, 3), *parts), CHAIN[:2])
    assert chosen(program, solve(program)) == set()
    joined = replace(program, together=(frozenset({0, 1}),))
    assert chosen(joined, solve(joined)) == {frozenset({0, 1})}
    joined = replace(program, together=(frozenset({0, 2}),))
    assert chosen(joined, solve(joined)) == {frozenset({0, 1, 2})}
    assert solve(replace(program, together=(frozenset({0, 3}),))) is None


def test_nothing_to_choose_costs_nothing_and_no_time_finds_nothing():
    assert solve(Program(())) == Solution(frozenset(), 0.0)
    assert solve(Program(native(1.0)), seconds=0.0) is None
