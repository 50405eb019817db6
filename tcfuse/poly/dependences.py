"""Dependences between statement instances, memory based, with reductions marked.

Tensors of a composed TC are written once an element (or by one chain of updates), so memory
based dependences say the same as value based ones and cost no flow analysis.  The updates of
one element by one statement may run in any order, since the reduction operators are associative
and commutative; these self dependences are kept apart, because that order may be changed when
the numerics allow it.

Source: "Polyhedral AST Generation Is More Than Scanning Polyhedra", TOPLAS 37(4), 2015; the
treatment of reductions follows "The Next 700 Accelerated Layers", section 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcfuse.poly import isl
from tcfuse.poly.scop import Scop
from tcfuse.profile import timed


@dataclass(frozen=True, slots=True, eq=False)
class Dependences:
    """Union maps from source instance to sink instance.

    Attributes:
        flow: A value is written, then read.
        false: Anti and output dependences between different statements.
        reduction: Updates of one element by one statement, in textual order.
    """

    flow: isl.UnionMap
    false: isl.UnionMap
    reduction: isl.UnionMap

    @property
    def ordered(self) -> isl.UnionMap:
        """Everything that must keep its order whatever the numerics."""
        return self.flow.union(self.false)

    @property
    def all(self) -> isl.UnionMap:
        """Every dependence."""
        return self.ordered.union(self.reduction)

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The statements, source and sink, between which there is a dependence."""
        return frozenset(
            (m.get_tuple_name(isl.dim_type.in_), m.get_tuple_name(isl.dim_type.out))
            for m in isl.maps_of(self.all)
        )

    @property
    def self_dependent(self) -> frozenset[str]:
        """Statements that read what they wrote before, updates of reductions aside."""
        return frozenset(
            pair.get_tuple_name(isl.dim_type.in_)
            for pair in isl.maps_of(self.ordered)
            if pair.get_tuple_name(isl.dim_type.in_) == pair.get_tuple_name(isl.dim_type.out)
        )

    def restricted(self, rule: Callable[[isl.UnionMap], isl.UnionMap]) -> Dependences:
        """The dependences of each kind that ``rule`` leaves."""
        return Dependences(rule(self.flow), rule(self.false), rule(self.reduction))

    def __str__(self) -> str:
        return f"flow: {self.flow}\nfalse: {self.false}\nreduction: {self.reduction}\n"


@timed("dependences")
def compute_dependences(scop: Scop) -> Dependences:
    """The dependences of ``scop`` under its textual order."""
    reads = _by_tensor(scop.reads)
    writes = _by_tensor(scop.writes)
    order = {s.name: k for k, s in enumerate(scop.statements)}
    updates = {s.name for s in scop.statements if s.is_update}
    empty = isl.union_map(scop.context, "{ }")
    flow, false, reduction = empty, empty, empty
    for tensor, writers in writes.items():
        readers = reads.get(tensor, {})
        for source, write in writers.items():
            for sink, read in readers.items():
                pair = write.apply_range(read.reverse())
                if source == sink:
                    later = pair.intersect(isl.Map.lex_lt(pair.get_space().domain()))
                    if source in updates:
                        reduction = reduction.union(isl.UnionMap.from_map(later))
                    else:
                        flow = flow.union(isl.UnionMap.from_map(later))
                elif order[source] < order[sink]:
                    flow = flow.union(isl.UnionMap.from_map(pair))
                else:
                    false = false.union(isl.UnionMap.from_map(pair.reverse()))
            for sink, write_after in writers.items():
                if order[source] < order[sink]:
                    pair = write.apply_range(write_after.reverse())
                    false = false.union(isl.UnionMap.from_map(pair))
    return Dependences(flow, false.coalesce(), reduction)


def _by_tensor(union: isl.UnionMap) -> dict[str, dict[str, isl.Map]]:
    """Access maps by tensor, then by statement."""
    found: dict[str, dict[str, isl.Map]] = {}
    for access in isl.maps_of(union):
        statement = access.get_tuple_name(isl.dim_type.in_)
        tensor = access.get_tuple_name(isl.dim_type.out)
        found.setdefault(tensor, {})[statement] = access
    return found
