"""Where temporaries live: a register, a row buffer, or, if it must be, a whole tensor.

A temporary all of whose accesses lie inside the same iterations of some loops needs only the
part that one iteration touches.  The dimensions those iterations determine are dropped; when
none is left the temporary is a scalar (one for each lane, inside a lanes loop).

Source: array contraction, as in Darte and Huard, "New Complexity Results on Array Contraction",
2005; "The Next 700 Accelerated Layers", section 4.5 (private promotion).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile

from tcfuse.mapping.lanes import LANES, PARALLEL
from tcfuse.mapping.legality import among, carries_nothing, inside
from tcfuse.mapping_options import DEEP
from tcfuse.poly import isl
from tcfuse.poly.cells import Cells
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.scop import Scop
from tcfuse.poly.sharing import SharedLoop, in_one_phase, shared_loops, touched_elements
from tcfuse.poly.transforms import joined
from tcfuse.poly.tree import Domain

BLOCKED = "block"  # the kind of the marks that mapping.blocking makes


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


def place_temporaries(
    scop: Scop,
    dependences: Dependences,
    tree: Domain,
    depth: int = DEEP,
    whole: Collection[str] = (),
    only: Collection[str] | None = None,
) -> Mapping[str, Buffer]:
    """The storage of every tensor that is neither a parameter nor returned.

    Args:
        scop: Whose temporaries they are.
        dependences: Which values travel where.
        tree: The mapped tree.
        depth: The most common loops each of whose iterations has storage of its own.
        whole: Tensors that must be kept whole.
        only: Tensors that are asked for; all where there are none.
    """
    given = {*scop.checked.inputs, *scop.checked.outputs}
    users: dict[str, list[str]] = {}
    for union in (scop.reads, scop.writes):
        for access in isl.maps_of(union):
            tensor = access.get_tuple_name(isl.dim_type.out)[2:]
            if tensor not in given and (only is None or tensor in only):
                users.setdefault(tensor, []).append(access.get_tuple_name(isl.dim_type.in_))
    elements = touched_elements(scop)
    return {
        tensor: _whole(scop, tensor)
        if tensor in whole
        else _place(
            *(scop, dependences, tree, tensor, elements[tensor]),
            tuple(dict.fromkeys(names)),
            depth,
        )
        for tensor, names in users.items()
    }


def _whole(scop: Scop, tensor: str) -> Buffer:
    return Buffer(tensor, Memory.SHARED, tuple(range(scop.checked.tensors[tensor].rank)))


def _place(
    scop: Scop,
    dependences: Dependences,
    tree: Domain,
    tensor: str,
    elements: isl.UnionMap,
    users: Sequence[str],
    depth: int,
) -> Buffer:
    rank = scop.checked.tensors[tensor].rank
    loops = shared_loops(tree.child, users)
    pairs = among(dependences.all, isl.part_of(scop.domain, users))
    pairs = _through(pairs, elements)
    prefix: list[SharedLoop] = []
    for loop in loops[:depth]:
        if not carries_nothing(inside(pairs, [p.row for p in prefix]), loop.row):
            break
        prefix.append(loop)
    threads = [PARALLEL in loop.marks for loop in loops]
    private = any(threads[: len(prefix)]) or not any(threads)
    if not private or not in_one_phase(tree.child, users):
        return _whole(scop, tensor)
    kept = _kept(prefix, elements, rank)
    if kept and any(
        BLOCKED in loop.marks for loop in prefix
    ):  # only registers are had for each row
        prefix = list(takewhile(lambda loop: BLOCKED not in loop.marks, prefix))
        kept = _kept(prefix, elements, rank)
    memory = Memory.ROW if kept else Memory.REGISTER
    return Buffer(tensor, memory, kept, any(LANES in loop.marks for loop in prefix))


def _through(pairs: isl.UnionMap, elements: isl.UnionMap) -> isl.UnionMap:
    """The pairs that meet in one of the elements that instances touch."""
    return pairs.intersect(elements.apply_range(elements.reverse()))


def _kept(prefix: Sequence[SharedLoop], elements: isl.UnionMap, rank: int) -> tuple[int, ...]:
    """The dimensions of a tensor that an iteration of ``prefix`` does not determine.

    Args:
        prefix: Loops.
        elements: Which instance touches which elements of the tensor.
        rank: Its number of dimensions.
    """
    return tuple(d for d in range(rank) if not _determined(prefix, elements, d))


def _determined(prefix: Sequence[SharedLoop], elements: isl.UnionMap, dimension: int) -> bool:
    """Whether an iteration of ``prefix`` touches one index only along ``dimension``."""
    combined: isl.UnionMap | None = None
    for access in isl.maps_of(elements):
        rank = access.dim(isl.dim_type.out)
        narrow = access.project_out(isl.dim_type.out, dimension + 1, rank - dimension - 1)
        narrow = narrow.project_out(isl.dim_type.out, 0, dimension)
        narrow = narrow.set_tuple_name(isl.dim_type.out, "index")
        piece = isl.UnionMap.from_map(narrow)
        combined = piece if combined is None else combined.union(piece)
    assert combined is not None, "the tensor is never touched"
    if not prefix:
        return all(m.range().is_singleton() for m in isl.maps_of(combined))
    loops = joined([loop.row for loop in prefix])
    position = isl.UnionMap.from_multi_union_pw_aff(loops)
    return bool(combined.apply_domain(position).is_single_valued())
