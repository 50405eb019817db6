"""The proof every kernel comes with; without it none is emitted.

Four claims, checked with isl for all sizes at once: every access that is not checked at run
time lies inside its tensor; every element of every returned tensor is written; the final
schedule respects every dependence (the order of a reduction's updates excepted, where lanes run
them); no dependence is carried by a loop whose iterations run in parallel or as lanes.

Source: "The Next 700 Accelerated Layers", section 4.2 (validity); Verdoolaege, "isl: An Integer
Set Library for the Polyhedral Model", ICMS 2010.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcfuse.errors import UnsupportedError
from tcfuse.poly import isl
from tcfuse.poly.bounds import check_bounds
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.scop import Scop
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree
from tcfuse.poly.tree_isl import to_isl


@dataclass(frozen=True, slots=True)
class Proof:
    """What was shown of a kernel.

    Attributes:
        accesses: Accesses shown to stay inside their tensors.
        checked_at_run_time: Accesses that depend on data or on a guard.
        outputs: Returned tensors shown to be written whole.
        dependences: Pairs of statements whose order was shown to be kept.
        parallel_loops: Loops shown to carry no dependence.
        notes: Simplifications that were made on the way.
    """

    accesses: int
    checked_at_run_time: int
    outputs: tuple[str, ...]
    dependences: int
    parallel_loops: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        notes = "".join(f"; {note}" for note in self.notes)
        return (
            f"{self.accesses} accesses inside their tensors, "
            f"{self.checked_at_run_time} checked at run time; "
            f"{', '.join(self.outputs)} written whole; {self.dependences} dependences kept; "
            f"{self.parallel_loops} parallel loops carry none{notes}"
        )


def prove(scop: Scop, dependences: Dependences, tree: Domain) -> Proof:
    """The proof for ``tree``, a mapped schedule of ``scop``.

    Raises:
        UnsupportedError: A claim does not hold; the sentence names it.
    """
    proved, at_run_time = check_bounds(scop)
    _check_coverage(scop)
    kept = _check_order(scop, dependences, tree)
    loops = _check_marked(dependences, tree)
    outputs = scop.checked.outputs
    return Proof(proved, at_run_time, outputs, kept, loops)


def _check_coverage(scop: Scop) -> None:
    written = scop.writes.intersect_domain(scop.domain).range()
    head = f"[{', '.join(scop.checked.sizes)}] -> "
    for name in scop.checked.outputs:
        shape = scop.checked.tensors[name].shape
        names = [f"i{k}" for k in range(len(shape))]
        inside = " and ".join(f"0 <= {n} < {s}" for n, s in zip(names, shape, strict=True))
        element = f"T_{name}[{', '.join(names)}]"
        text = f"{head}{{ {element} : {inside or '1 = 1'} }}"
        missing = isl.union_set(scop.context, text).subtract(written)
        missing = missing.intersect_params(scop.parameters)
        if not missing.is_empty():
            raise UnsupportedError(f"not every element of {name} is written")


def _check_order(scop: Scop, dependences: Dependences, tree: Domain) -> int:
    """Every dependence goes forward in the schedule; how many pairs of statements there are."""
    schedule = to_isl(tree).get_map().intersect_domain(scop.domain)
    ordered = dependences.all
    steps = ordered.apply_domain(schedule).apply_range(schedule)
    for step in isl.maps_of(steps):
        space = step.get_space().domain()
        if not step.subtract(isl.Map.lex_lt(space)).is_empty():
            raise UnsupportedError("the schedule would reverse a dependence")
    return len(isl.maps_of(ordered))


def _check_marked(dependences: Dependences, tree: Domain) -> int:
    """No marked loop carries what it must not; how many there are."""

    def visit(node: Tree, inside: isl.UnionMap, ordered: isl.UnionMap, marks: set[str]) -> int:
        match node:
            case Mark(name, child):
                return visit(child, inside, ordered, marks | {name})
            case Band(schedule, _, _, child):
                left = inside.eq_at_multi_union_pw_aff(schedule)
                left_ordered = ordered.eq_at_multi_union_pw_aff(schedule)
                if "parallel" in marks and not inside.subtract(left).is_empty():
                    raise UnsupportedError("a parallel loop carries a dependence")
                blocked = any(mark.startswith("block=") for mark in marks)
                if blocked and not inside.subtract(left).is_empty():
                    raise UnsupportedError("a register block carries a dependence")
                if "lanes" in marks and not ordered.subtract(left_ordered).is_empty():
                    raise UnsupportedError("a lanes loop carries a dependence")
                return bool(marks) + visit(child, left, left_ordered, set())
            case Sequence(filters):
                return sum(visit(f, inside, ordered, set()) for f in filters)
            case Filter(statements, child):
                return visit(
                    child, _among(inside, statements), _among(ordered, statements), set()
                )
            case Domain(_, child):
                return visit(child, inside, ordered, set())
            case Leaf():
                return 0

    return visit(tree, dependences.all, dependences.ordered, set())


def _among(relation: isl.UnionMap, statements: tuple[str, ...]) -> isl.UnionMap:
    """The pairs between ``statements``."""
    total = isl.union_map(relation.get_ctx(), "{ }")
    for pair in isl.maps_of(relation):
        source = pair.get_tuple_name(isl.dim_type.in_)
        sink = pair.get_tuple_name(isl.dim_type.out)
        if source in statements and sink in statements:
            total = total.union(isl.UnionMap.from_map(pair))
    return total
