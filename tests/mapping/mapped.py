"""Definitions mapped as the CPU target maps them, and what their trees say."""

from __future__ import annotations

from tcfuse.mapping.accumulators import with_accumulators
from tcfuse.mapping.lanes import LANES, PARALLEL, choose_lanes, mark_parallel
from tcfuse.mapping.order import order_members
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.scop import Scop
from tcfuse.poly.tree import Band, Domain, Filter, Mark, Sequence, Tree
from tests.poly.definitions import checked_of, model


def mapped(
    text: str, *, fusion: str = "preserve", reassociate: bool = True, vectors: bool = True
) -> tuple[Scop, Dependences, Domain]:
    """The model of a definition and its mapped tree, for lanes of vectors or for threads."""
    scop, dependences = model(with_accumulators(checked_of(text)))
    tree = order_members(scop, compute_schedule(scop, dependences, fusion=fusion).tree)
    lanes = choose_lanes(scop, dependences, tree, reassociate=reassociate, vectors=vectors)
    return scop, dependences, mark_parallel(lanes)


def iterators(tree: Domain, name: str) -> dict[str, str]:
    """For each statement, its iterators that loops marked ``name`` follow."""
    found: dict[str, str] = {}

    def visit(node: Tree, statements: set[str], marks: frozenset[str]) -> None:
        match node:
            case Mark(mark, child):
                visit(child, statements, marks | {mark})
            case Band(schedule, _, _, child):
                if name in marks:
                    for piece in str(schedule).replace("[{", "{").strip("{} []").split("; "):
                        statement, _, row = piece.split("{ ")[-1].partition("[")
                        if statement in statements:
                            row = row.partition("[(")[2].partition(")")[0]
                            found[statement] = found.get(statement, "") + row
                visit(child, statements, frozenset())
            case Sequence(filters):
                for f in filters:
                    visit(f.child, statements & set(f.statements), frozenset())
            case Domain(instances, child):
                names: list[str] = []
                instances.foreach_set(lambda s: names.append(s.get_tuple_name()))
                visit(child, set(names), frozenset())
            case Filter():
                raise AssertionError("a filter outside a sequence")
            case _:
                pass

    visit(tree, set(), frozenset())
    return found


def lanes(tree: Domain) -> dict[str, str]:
    """For each statement with lanes, the iterator they run along."""
    return iterators(tree, LANES)


def parallel(tree: Domain) -> dict[str, str]:
    """For each statement in parallel loops, the iterators these follow."""
    return iterators(tree, PARALLEL)
