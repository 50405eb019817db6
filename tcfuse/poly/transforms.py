"""Transformations of schedule trees; each is legal by its precondition or refuses.

The final tree is proved against the dependences in any case (``proof``).

Source: Verdoolaege et al., "Polyhedral Parallel Code Generation for CUDA", TACO 9(4), 2013.
"""

from __future__ import annotations

from dataclasses import replace

from tcfuse.errors import IllegalTransformError
from tcfuse.poly import isl
from tcfuse.poly.tree import Band


def member(band: Band, position: int) -> isl.MultiUnionPwAff:
    """One member of a band as a schedule of its own."""
    rest = band.depth - position - 1
    schedule = band.schedule.drop_dims(isl.dim_type.out, position + 1, rest)
    return schedule.drop_dims(isl.dim_type.out, 0, position)


def without(band: Band, position: int) -> Band | None:
    """The band without one member; ``None`` when nothing is left."""
    if band.depth == 1:
        return None
    schedule = band.schedule.drop_dims(isl.dim_type.out, position, 1)
    coincident = band.coincident[:position] + band.coincident[position + 1 :]
    return replace(band, schedule=schedule, coincident=coincident)


def joined(rows: list[isl.MultiUnionPwAff]) -> isl.MultiUnionPwAff:
    """Several schedules as one, the first outermost."""
    total = rows[0]
    for row in rows[1:]:
        total = total.flat_range_product(row)
    return total


def tile_member(band: Band, position: int, size: int) -> Band:
    """Count the tiles of one member in front of the band; its points stay where they are.

    Args:
        band: The band.
        position: The member.
        size: Iterations of a tile.

    Rewrite:
        band [i, j]  ->  band [floor(j / 64), i, j]

    Raises:
        IllegalTransformError: ``band`` is not permutable.
    """
    if not band.permutable:
        raise IllegalTransformError("cannot tile a band that is not permutable")
    points = member(band, position)
    context = points.get_ctx()
    tiles = points.scale_down_val(isl.Val.int_from_si(context, size)).floor()
    schedule = joined([tiles, *(member(band, k) for k in range(band.depth))])
    coincident = (band.coincident[position], *band.coincident)
    return replace(band, schedule=schedule, coincident=coincident)
