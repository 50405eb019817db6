"""Where temporaries live: a register, a row buffer, or, if it must be, a whole tensor.

A temporary all of whose accesses lie inside the same iterations of some loops needs only the
part that one iteration touches.  The dimensions those iterations determine are dropped; when
none is left the temporary is a scalar (one for each lane, inside a lanes loop).

Source: array contraction, as in Darte and Huard, "New Complexity Results on Array Contraction",
2005; "The Next 700 Accelerated Layers", section 4.5 (private promotion).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile

from tcfuse.mapping.lanes import LANES, PARALLEL
from tcfuse.mapping.legality import among, carries_nothing, inside
from tcfuse.options import DEEP
from tcfuse.poly import isl
from tcfuse.poly.cells import Cells
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.scop import Scop
from tcfuse.poly.transforms import joined, member
from tcfuse.poly.tree import Band, Domain, Filter, Mark, Sequence, Tree


class Memory(Enum):
    """A place for a temporary."""

    REGISTER = "register"
    ROW = "row buffer"
    SHARED = "whole tensor"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A temporary's storage.

    Attributes:
        kept: Dimensions of the tensor that the buffer still has.
        lanes: Whether each lane has its own.
    """

    tensor: str
    memory: Memory
    kept: tuple[int, ...]
    lanes: bool = False

    @property
    def cells(self) -> Cells:
        """What the proof has to know."""
        return Cells(self.kept, self.lanes)

    def __str__(self) -> str:
        each = " per lane" if self.lanes else ""
        return f"{self.tensor}: {self.memory.value}{each}, dimensions {list(self.kept)}"


@dataclass(frozen=True, slots=True, eq=False)
class _Loop:
    schedule: isl.MultiUnionPwAff
    lanes: bool
    parallel: bool
    blocked: bool


def place_temporaries(
    scop: Scop, dependences: Dependences, tree: Domain, depth: int = DEEP
) -> Mapping[str, Buffer]:
    """The storage of every tensor that is neither a parameter nor returned.

    Args:
        scop: Whose temporaries they are.
        dependences: Which values travel where.
        tree: The mapped tree.
        depth: The most common loops each of whose iterations has storage of its own.
    """
    given = {*scop.checked.inputs, *scop.checked.outputs}
    users: dict[str, list[str]] = {}
    for union in (scop.reads, scop.writes):
        for access in isl.maps_of(union):
            tensor = access.get_tuple_name(isl.dim_type.out)[2:]
            if tensor not in given:
                users.setdefault(tensor, []).append(access.get_tuple_name(isl.dim_type.in_))
    return {
        tensor: _place(scop, dependences, tree, tensor, tuple(dict.fromkeys(names)), depth)
        for tensor, names in users.items()
    }


def _place(
    scop: Scop,
    dependences: Dependences,
    tree: Domain,
    tensor: str,
    users: Seq[str],
    depth: int,
) -> Buffer:
    loops = _common_loops(tree.child, set(users))
    pairs = among(dependences.all, isl.part_of(scop.domain, users))
    pairs = _through(scop, pairs, tensor)
    prefix: list[_Loop] = []
    for loop in loops[:depth]:
        if not carries_nothing(inside(pairs, [p.schedule for p in prefix]), loop.schedule):
            break
        prefix.append(loop)
    rank = scop.checked.tensors[tensor].rank
    private = any(loop.parallel for loop in prefix) or not any(loop.parallel for loop in loops)
    if not private or not _same_nest(tree.child, set(users)):
        return Buffer(tensor, Memory.SHARED, tuple(range(rank)))
    kept = _kept(scop, prefix, tensor)
    if kept and any(loop.blocked for loop in prefix):  # only registers are had for each row
        prefix = list(takewhile(lambda loop: not loop.blocked, prefix))
        kept = _kept(scop, prefix, tensor)
    memory = Memory.ROW if kept else Memory.REGISTER
    return Buffer(tensor, memory, kept, any(loop.lanes for loop in prefix))


def _through(scop: Scop, pairs: isl.UnionMap, tensor: str) -> isl.UnionMap:
    """The pairs that meet in an element of ``tensor``."""
    touched = _accesses(scop, tensor)
    return pairs.intersect(touched.apply_range(touched.reverse()))


def _accesses(scop: Scop, tensor: str) -> isl.UnionMap:
    total = isl.union_map(scop.context, "{ }")
    for union in (scop.reads, scop.writes):
        for access in isl.maps_of(union):
            if access.get_tuple_name(isl.dim_type.out) == f"T_{tensor}":
                total = total.union(isl.UnionMap.from_map(access))
    return total


def _kept(scop: Scop, prefix: Seq[_Loop], tensor: str) -> tuple[int, ...]:
    """The dimensions of ``tensor`` that an iteration of ``prefix`` does not determine."""
    rank = scop.checked.tensors[tensor].rank
    return tuple(d for d in range(rank) if not _determined(scop, prefix, tensor, d))


def _determined(scop: Scop, prefix: Seq[_Loop], tensor: str, dimension: int) -> bool:
    """Whether an iteration of ``prefix`` touches one index only along ``dimension``."""
    touched = _accesses(scop, tensor)
    combined: isl.UnionMap | None = None
    for access in isl.maps_of(touched):
        rank = access.dim(isl.dim_type.out)
        narrow = access.project_out(isl.dim_type.out, dimension + 1, rank - dimension - 1)
        narrow = narrow.project_out(isl.dim_type.out, 0, dimension)
        narrow = narrow.set_tuple_name(isl.dim_type.out, "index")
        piece = isl.UnionMap.from_map(narrow)
        combined = piece if combined is None else combined.union(piece)
    assert combined is not None, f"{tensor} is never touched"
    if not prefix:
        return all(m.range().is_singleton() for m in isl.maps_of(combined))
    loops = joined([loop.schedule for loop in prefix])
    position = isl.UnionMap.from_multi_union_pw_aff(loops)
    return bool(combined.apply_domain(position).is_single_valued())


def _common_loops(
    tree: Tree, users: set[str], flags: frozenset[str] = frozenset()
) -> list[_Loop]:
    """The loops around every statement of ``users``, outermost first."""
    match tree:
        case Mark(name, child):
            return _common_loops(child, users, flags | {name})
        case Band():
            blocked = any(flag.startswith("block=") for flag in flags)
            loops = [
                _Loop(member(tree, k), LANES in flags, PARALLEL in flags, blocked)
                for k in range(tree.depth)
            ]
            return [*loops, *_common_loops(tree.child, users)]
        case Sequence(filters):
            for f in filters:
                if users <= set(f.statements):
                    return _common_loops(f.child, users)
            return []
        case _:
            return []


def _same_nest(tree: Tree, users: set[str]) -> bool:
    """Whether all users run in one phase of the kernel."""
    if isinstance(tree, Sequence):
        return any(
            _same_nest(f.child, users) for f in tree.filters if users <= set(f.statements)
        )
    return not isinstance(tree, Filter)
