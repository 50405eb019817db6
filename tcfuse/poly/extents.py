"""How often a loop runs, at most, whatever the sizes and the iteration around it."""

from __future__ import annotations

from collections.abc import Sequence

from tcfuse.poly import isl


def most_iterations(
    instances: isl.UnionSet, outer: Sequence[isl.MultiUnionPwAff], row: isl.MultiUnionPwAff
) -> int | None:
    """The largest number of iterations of ``row`` inside one of ``outer``; ``None``: no bound.

    Args:
        instances: The statement instances that the loop runs.
        outer: The loops around it, outermost first.
        row: The loop, a schedule of one member; values that no instance takes between two
            others (a stride) are not counted.
    """
    total = row
    for schedule in reversed(outer):
        total = schedule.flat_range_product(total)
    depth = total.dim(isl.dim_type.out) - 1
    points = isl.UnionMap.from_multi_union_pw_aff(total).intersect_domain(instances).range()
    if points.is_empty():
        return 0
    (values,) = isl.sets_of(points)
    inside = isl.Map.from_range(values)
    inside = inside.move_dims(isl.dim_type.in_, 0, isl.dim_type.out, 0, depth)
    steps = inside.reverse().apply_range(inside).deltas()
    most = steps.dim_max_val(0)
    if not most.is_int():
        return None
    stride = int(steps.get_stride(0).to_python()) if most.is_pos() else 1
    return int(most.to_python()) // max(stride, 1) + 1
