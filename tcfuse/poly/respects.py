"""Whether a mapped tree runs every instance once and respects the dependences.

The tree is walked from the root.  At a node, ``pairs`` are the dependences between instances
that no loop and no sequence above has put in order; a node must not reverse any of them, and at
a leaf none may be left.  A loop whose iterations run side by side must leave them all to the
nodes below it.

Source: Verdoolaege, "isl: An Integer Set Library for the Polyhedral Model", ICMS 2010; "The
Next 700 Accelerated Layers", section 4.2 (validity).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tcfuse.errors import UnsupportedError
from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.rows import iterator_of
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import UNROLL, between, leads_back, reversed_by
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree, below

SILENT = (UNROLL, "separate")  # marks that change the code and not the order
SIDE_BY_SIDE = {
    "parallel": "a parallel loop",
    "block": "a register block",
    "lanes": "a lanes loop",
    "spread": "a loop spread over lanes",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Dependences that nothing above has put in order.

    Attributes:
        all: Every one.
        kept: Those that lanes may not carry either.
    """

    all: isl.UnionMap
    kept: isl.UnionMap

    def equal(self, schedule: isl.MultiUnionPwAff) -> _Pairs:
        """Those inside one iteration."""
        return _Pairs(
            self.all.eq_at_multi_union_pw_aff(schedule),
            self.kept.eq_at_multi_union_pw_aff(schedule),
        )

    def between(self, source: Filter, sink: Filter) -> _Pairs:
        """Those from one part of a sequence to another."""
        return _Pairs(between(self.all, source, sink), between(self.kept, source, sink))


def check_order(
    scop: Scop, dependences: Dependences, tree: Domain, *, reassociate: bool = True
) -> int:
    """How many loops run their iterations side by side.

    Args:
        scop: What the tree schedules.
        dependences: What must be respected.
        tree: The tree with its marks.
        reassociate: Whether lanes may carry the updates of a reduction.

    Raises:
        UnsupportedError: An instance is missing or runs twice, or a dependence is reversed.
    """
    if not tree.instances.is_equal(scop.domain):
        raise UnsupportedError("the schedule does not run every instance once")
    kept = dependences.ordered if reassociate else dependences.all
    names = tuple(s.name for s in scop.statements)
    return _Walk(scop).visit(tree.child, names, _Pairs(dependences.all, kept), frozenset())


class _Walk:
    def __init__(self, scop: Scop) -> None:
        self.scop = scop

    def visit(
        self, node: Tree, names: tuple[str, ...], pairs: _Pairs, marks: frozenset[str]
    ) -> int:
        """Check ``node``, which runs the statements ``names``; its loops side by side."""
        match node:
            case Mark(name, child):
                if node.kind in SILENT:
                    return self.visit(child, names, pairs, marks)
                if node.kind not in SIDE_BY_SIDE:
                    raise UnsupportedError(f"nothing is known of a loop marked {name!r}")
                return self.visit(child, names, pairs, marks | {node.kind})
            case Band():
                return self._band(node, names, pairs, marks)
            case Sequence(filters):
                return self._sequence(filters, names, pairs)
            case Leaf():
                if not pairs.all.is_empty():
                    raise UnsupportedError("dependent instances run at one point in time")
                return 0
            case Domain() | Filter():
                raise AssertionError(f"{type(node).__name__} inside a schedule")

    def _band(
        self, band: Band, names: tuple[str, ...], pairs: _Pairs, marks: frozenset[str]
    ) -> int:
        instances = isl.part_of(self.scop.domain, names)
        if not instances.is_subset(band.schedule.domain()):
            raise UnsupportedError("a loop does not say when some instance runs")
        if not reversed_by(pairs.all, band.schedule).is_empty():
            raise UnsupportedError("the schedule would reverse a dependence")
        inside = pairs.equal(band.schedule)
        for mark in marks:
            carries = pairs.all.subtract(inside.all)
            if mark in ("lanes", "spread"):
                carries = pairs.kept.subtract(inside.kept)
            if mark == "spread" and not self._add_up_together(band, names):
                raise UnsupportedError("a loop spread over lanes adds up apart from them")
            if not carries.is_empty():
                raise UnsupportedError(f"{SIDE_BY_SIDE[mark]} carries a dependence")
        return bool(marks) + self.visit(band.child, names, inside, frozenset())

    def _add_up_together(self, spread: Band, names: tuple[str, ...]) -> bool:
        """Whether updates go to one element along a spread loop just where lanes' do."""
        marks = (node for node in below(spread.child) if isinstance(node, Mark))
        lanes = next((mark.child for mark in marks if mark.kind == "lanes"), None)
        if not isinstance(lanes, Band):
            return False
        loops = [(lanes, 0), *((spread, k) for k in range(spread.depth))]
        for statement in map(self.scop.statement, names):
            adds_up = {iterator_of(*loop, statement) in statement.reduction for loop in loops}
            if statement.is_update and len(adds_up) > 1:
                return False
        return True

    def _sequence(
        self, filters: tuple[Filter, ...], names: tuple[str, ...], pairs: _Pairs
    ) -> int:
        times = Counter(name for f in filters for name in f.statements)
        for name in names:
            if times[name] != 1:
                often = "never" if not times[name] else f"{times[name]} times"
                raise UnsupportedError(f"the schedule runs {name} {often}")
        if leads_back(pairs.all, filters):
            raise UnsupportedError("the schedule would reverse a dependence")
        return sum(
            self.visit(f.child, f.statements, pairs.between(f, f), frozenset()) for f in filters
        )
