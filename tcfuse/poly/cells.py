"""Whether a temporary's storage is large enough for the values that live at one time.

A contracted temporary keeps only some of its dimensions and is used again by every iteration of
the loops around it.  It is right when, for the loops across which no value travels, the kept
indices of an iteration determine the element: then two elements that share a cell belong to
different iterations, and no value is needed after its iteration.

Source: Darte and Huard, "New Complexity Results on Array Contraction", 2005 (legal mappings).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcfuse.errors import UnsupportedError
from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.scop import Scop
from tcfuse.poly.sharing import in_one_phase, shared_loops, touched_elements
from tcfuse.poly.transforms import joined
from tcfuse.poly.tree import Domain


@dataclass(frozen=True, slots=True)
class Cells:
    """What a temporary that each thread has for itself is stored in.

    Attributes:
        kept: The dimensions of the tensor that remain; none is a register.
        lanes: Whether each lane has its own.
    """

    kept: tuple[int, ...]
    lanes: bool


def check_cells(
    scop: Scop, dependences: Dependences, tree: Domain, cells: Mapping[str, Cells]
) -> int:
    """How many temporaries' storage was shown to be large enough.

    Args:
        scop: Whose temporaries they are.
        dependences: Which values travel where.
        tree: The mapped tree.
        cells: The storage of those temporaries that are not stored whole.

    Raises:
        UnsupportedError: Two live values could share a cell, or threads a value.
    """
    elements = touched_elements(scop)
    for tensor, storage in cells.items():
        _check(elements[tensor], dependences, tree, tensor, storage)
    return len(cells)


def _check(
    elements: isl.UnionMap,
    dependences: Dependences,
    tree: Domain,
    tensor: str,
    storage: Cells,
) -> None:
    users = {m.get_tuple_name(isl.dim_type.in_) for m in isl.maps_of(elements)}
    # false dependences too: whoever overwrites an element must find it in the same place
    pairs = dependences.all.intersect(elements.apply_range(elements.reverse()))
    if not in_one_phase(tree.child, users):
        raise UnsupportedError(f"{tensor} is needed by another part of the kernel")
    place: list[isl.MultiUnionPwAff] = []  # the loops whose iterations use the cells again
    for loop in shared_loops(tree.child, users):
        inside = pairs.eq_at_multi_union_pw_aff(loop.row)
        travels = not pairs.subtract(inside).is_empty()
        if travels and "parallel" in loop.marks:
            raise UnsupportedError(f"{tensor} is needed by another thread")
        shared = "lanes" in loop.marks and not storage.lanes
        if travels or shared or ("block" in loop.marks and storage.kept):
            break
        place.append(loop.row)
    if not _in_cells(elements, place, storage.kept).is_single_valued():
        raise UnsupportedError(f"two values of {tensor} would share a cell")


def _in_cells(
    elements: isl.UnionMap, place: list[isl.MultiUnionPwAff], kept: tuple[int, ...]
) -> isl.UnionMap:
    """From each iteration of ``place`` with each cell to the elements that are in it."""
    total = isl.union_map(elements.get_ctx(), "{ }")
    for access in isl.maps_of(elements):
        used = isl.UnionMap.from_map(access)
        cell_of = _cell_of(access, kept)
        if not place:
            total = total.union(cell_of.intersect_domain(used.range()).reverse())
            continue
        used = used.apply_domain(isl.UnionMap.from_multi_union_pw_aff(joined(place)))
        element = used.range_map()  # an instance may touch several, each in its own cell
        key = used.domain_map().range_product(element.apply_range(cell_of))
        total = total.union(key.reverse().apply_range(element))
    return total


def _cell_of(access: isl.Map, kept: tuple[int, ...]) -> isl.UnionMap:
    """From each element of the tensor that ``access`` touches to the cell it is kept in."""
    cell = isl.Map.identity(access.get_space().range().map_from_set())
    for dimension in reversed(range(access.dim(isl.dim_type.out))):
        if dimension not in kept:
            cell = cell.project_out(isl.dim_type.out, dimension, 1)
    return isl.UnionMap.from_map(cell.set_tuple_name(isl.dim_type.out, "cell"))
