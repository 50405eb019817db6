from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.poly import isl
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree, below
from tcfuse.poly.tree_isl import from_isl, statement_order, to_isl, to_yaml
from tests.poly.definitions import ALL, model


def round_trip(tree: Domain) -> str:
    again = from_isl(to_isl(tree).get_root())
    return to_yaml(again)


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_schedule_survives(name: str) -> None:
    scop, dependences = model(ALL[name])
    for fusion in ("preserve", "min"):
        tree = compute_schedule(scop, dependences, fusion=fusion).tree
        assert round_trip(tree) == to_yaml(tree)


@st.composite
def statement_sets(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Names of statements with their number of iterators."""
    count = draw(st.integers(1, 4))
    return [(f"S{k}", draw(st.integers(0, 3))) for k in range(count)]


def tree_of(draw: st.DrawFn, statements: list[tuple[str, int]], depth: int) -> Tree:
    """A tree over ``statements`` that follows their iterators from ``depth`` on."""
    if len(statements) > 1 and draw(st.booleans()):
        cut = draw(st.integers(1, len(statements) - 1))
        filters = tuple(
            Filter(tuple(name for name, _ in part), tree_of(draw, part, depth))
            for part in (statements[:cut], statements[cut:])
        )
        return Sequence(filters)
    left = max(rank for _, rank in statements) - depth
    if left <= 0:
        return Leaf()
    members = draw(st.integers(1, left))
    rows = []
    for member in range(depth, depth + members):
        pieces = []
        for name, rank in statements:
            names = ", ".join(f"i{k}" for k in range(rank))
            shift = draw(st.integers(0, 3))
            value = f"i{member} + {shift}" if member < rank else "0"
            pieces.append(f"{name}[{names}] -> [({value})]")
        rows.append("{ " + "; ".join(pieces) + " }")
    schedule = isl.MultiUnionPwAff.read_from_str(CONTEXT, f"[{', '.join(rows)}]")
    coincident = tuple(draw(st.booleans()) for _ in range(members))
    band = Band(
        schedule, draw(st.booleans()), coincident, tree_of(draw, statements, depth + members)
    )
    return Mark(draw(st.sampled_from(("parallel", "lanes"))), band) if depth else band


CONTEXT = isl.new_context()


@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.data(), statement_sets())
def test_any_tree_survives(data: st.DataObject, statements: list[tuple[str, int]]) -> None:
    pieces = []
    for name, rank in statements:
        names = [f"i{k}" for k in range(rank)]
        bounds = " and ".join(f"0 <= {n} < {k + 3}" for k, n in enumerate(names)) or "1 = 1"
        pieces.append(f"{name}[{', '.join(names)}] : {bounds}")
    domain = isl.union_set(CONTEXT, "{ " + "; ".join(pieces) + " }")
    tree = Domain(domain, tree_of(data.draw, statements, 0))
    once = from_isl(to_isl(tree).get_root())
    assert isinstance(once, Domain)
    assert to_yaml(from_isl(to_isl(once).get_root())) == to_yaml(once)
    assert [type(n) for n in below(once)] == [type(n) for n in below(tree)]
    assert to_isl(once).get_map().is_equal(to_isl(tree).get_map())


def test_the_children_of_a_set_follow_the_text() -> None:
    text = """{ domain: "{ S2[i] : 0 <= i < 4; S0[i] : 0 <= i < 4; S1_init[] }",
      child: { set: [ { filter: "{ S2[i] }" }, { filter: "{ S1_init[] }" },
                      { filter: "{ S0[i] }" } ] } }"""
    tree = from_isl(isl.Schedule.read_from_str(isl.new_context(), text).get_root())
    assert isinstance(tree, Domain)
    assert isinstance(tree.child, Sequence)
    assert [f.statements for f in tree.child.filters] == [("S0",), ("S1_init",), ("S2",)]


def test_an_initialisation_comes_right_before_its_reduction() -> None:
    names = ["S10", "S2", "S2_init", "S0", "S10_init"]
    assert statement_order(names) == ("S0", "S2_init", "S2", "S10_init", "S10")
