"""Transformations of schedule trees; each is legal by its precondition or refuses.

A transformation is a function from nodes to a node.  Those that only look at a band need it to
be permutable; those that move a band across a sequence take the dependences among the instances
below it that no outer loop separates, and ask isl.  The final tree is proved against all
dependences in any case (``proof``).

Source: Verdoolaege et al., "Polyhedral Parallel Code Generation for CUDA", TACO 9(4), 2013;
Verdoolaege, Guelton, Grosser, Cohen, "Schedule Trees", IMPACT 2014.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Sequence as Seq
from dataclasses import replace

from tcfuse.errors import IllegalTransformError
from tcfuse.poly import isl
from tcfuse.poly.tree import Band, Filter, Leaf, Mark, Sequence, Tree

UNROLL = "unroll"


def member(band: Band, position: int) -> isl.MultiUnionPwAff:
    """One member of a band as a schedule of its own."""
    return _members(band, position, position + 1)


def _members(band: Band, first: int, last: int) -> isl.MultiUnionPwAff:
    schedule = band.schedule.drop_dims(isl.dim_type.out, last, band.depth - last)
    return schedule.drop_dims(isl.dim_type.out, 0, first)


def without(band: Band, position: int) -> Band | None:
    """The band without one member; ``None`` when nothing is left."""
    if band.depth == 1:
        return None
    schedule = band.schedule.drop_dims(isl.dim_type.out, position, 1)
    coincident = band.coincident[:position] + band.coincident[position + 1 :]
    return replace(band, schedule=schedule, coincident=coincident)


def joined(rows: Seq[isl.MultiUnionPwAff]) -> isl.MultiUnionPwAff:
    """Several schedules as one, the first outermost."""
    total = rows[0]
    for row in rows[1:]:
        total = total.flat_range_product(row)
    return total


# ---------------------------------------------------------------------- tiles


def tile(band: Band, sizes: Seq[int], *, scale: bool = False, shift: bool = False) -> Band:
    """Split ``band`` into a band over tiles and, below it, a band over the points of a tile.

    Args:
        band: The band to tile.
        sizes: Iterations per tile of each member; 0 leaves a member to the point band, whole;
            missing sizes are 0, surplus ones are ignored.
        scale: Tile loops step by the tile size instead of counting tiles.
        shift: Point loops start at zero instead of at the tile's first iteration.

    Rewrite:
        band [i, j]  ->  band [floor(i / 32), floor(j / 32)] / band [i, j]

    Raises:
        IllegalTransformError: ``band`` is not permutable, or no member is tiled.

    Source:
        Verdoolaege et al., "Polyhedral Parallel Code Generation for CUDA", TACO 9(4), 2013.
    """
    if not band.permutable:
        raise IllegalTransformError("cannot tile a band that is not permutable")
    widths = [*sizes[: band.depth], *[0] * (band.depth - len(sizes))]
    tiled = [k for k, width in enumerate(widths) if width]
    if not tiled:
        raise IllegalTransformError("cannot tile a band by no sizes")
    counts, points = [], [member(band, k) for k in range(band.depth)]
    for k in tiled:
        width = isl.Val.int_from_si(band.schedule.get_ctx(), widths[k])
        count = points[k].scale_down_val(width).floor()
        origin = count.scale_val(width)
        counts.append(origin if scale else count)
        points[k] = points[k].sub(origin) if shift else points[k]
    inner = replace(band, schedule=joined(points))
    flags = tuple(band.coincident[k] for k in tiled)
    return Band(joined(counts), True, flags, inner)


def strip_mine(band: Band, position: int, size: int) -> Band:
    """Count the tiles of one member right before it; the order of instances stays.

    Rewrite:
        band [i, j]  ->  band [i, floor(j / 64), j]

    Raises:
        IllegalTransformError: ``size`` is not positive.
    """
    if size < 1:
        raise IllegalTransformError(f"cannot strip-mine by {size}")
    width = isl.Val.int_from_si(band.schedule.get_ctx(), size)
    count = member(band, position).scale_down_val(width).floor()
    rows = [member(band, k) for k in range(band.depth)]
    rows.insert(position, count)
    flags = list(band.coincident)
    flags.insert(position, band.coincident[position])
    return replace(band, schedule=joined(rows), coincident=tuple(flags))


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
    mined = strip_mine(band, position, size)
    return interchange(mined, [position, *(k for k in range(mined.depth) if k != position)])


# ---------------------------------------------------------------------- members of a band


def split(band: Band, position: int) -> Band:
    """The first members of a band as one band, the others as a band below it.

    Rewrite:
        band [i, j, k]  ->  band [i] / band [j, k]

    Raises:
        IllegalTransformError: One of the bands would have no member.
    """
    if not 0 < position < band.depth:
        raise IllegalTransformError(f"cannot split {band.depth} loops after {position}")
    inner = _members(band, position, band.depth)
    below = replace(band, schedule=inner, coincident=band.coincident[position:])
    outer = _members(band, 0, position)
    return replace(band, schedule=outer, coincident=band.coincident[:position], child=below)


def join(band: Band, pairs: isl.UnionMap) -> Band:
    """A band and the band right below it as one; permutable where every dependence allows.

    Args:
        band: The outer band.
        pairs: Dependences among the instances below it that no outer loop separates.

    Rewrite:
        band [i] / band [j]  ->  band [i, j]

    Raises:
        IllegalTransformError: What is below is not a band.
    """
    if not isinstance(band.child, Band):
        raise IllegalTransformError("cannot join a band with what is not a band")
    schedule = joined([band.schedule, band.child.schedule])
    return judged(schedule, pairs, band.child.child)


def interchange(band: Band, order: Seq[int]) -> Band:
    """``band`` with its members in another order.

    Rewrite:
        band [i, j]  ->  band [j, i]

    Raises:
        IllegalTransformError: ``band`` is not permutable, or ``order`` is no order of it.
    """
    if sorted(order) != list(range(band.depth)):
        raise IllegalTransformError(f"{list(order)} is no order of {band.depth} loops")
    if not band.permutable:
        raise IllegalTransformError("cannot interchange a band that is not permutable")
    schedule = joined([member(band, k) for k in order])
    return replace(band, schedule=schedule, coincident=tuple(band.coincident[k] for k in order))


def unroll(band: Band) -> Mark:
    """``band`` with its loops replaced by their iterations when code is generated.

    Rewrite:
        band [i]  ->  mark unroll / band [i]
    """
    return Mark(UNROLL, band)


# ---------------------------------------------------------------------- bands and sequences


def distribute(band: Band, pairs: isl.UnionMap) -> Sequence:
    """A band above a sequence as a band of its own above each part (loop fission).

    Args:
        band: A band whose child is a sequence.
        pairs: Dependences among the instances below it that no outer loop separates.

    Rewrite:
        band [i] / sequence (A, B)  ->  sequence (A / band [i], B / band [i])

    Raises:
        IllegalTransformError: The child is no sequence, or a later part would have to run
            before an earlier one.
    """
    if not isinstance(band.child, Sequence):
        raise IllegalTransformError("cannot distribute a band over what is not a sequence")
    parts = band.child.filters
    if leads_back(pairs, parts):
        raise IllegalTransformError("the loop carries a dependence to an earlier part")
    return Sequence(tuple(replace(f, child=_restricted(band, f)) for f in parts))


def sink(band: Band, pairs: isl.UnionMap) -> Tree:
    """A band moved below everything under it, down to the leaves.

    Args:
        band: The band to sink.
        pairs: Dependences among the instances below it that no outer loop separates.

    Rewrite:
        band [i] / sequence (A, B / band [j])
          ->  sequence (A / band [i], B / band [j] / band [i])

    Raises:
        IllegalTransformError: A dependence would be reversed.
    """
    match band.child:
        case Leaf():
            return band
        case Sequence():
            parts = distribute(band, pairs).filters
            return Sequence(tuple(replace(f, child=_sunk(f, pairs)) for f in parts))
        case Band() as inner:
            if not reversed_by(pairs, inner.schedule).is_empty():
                raise IllegalTransformError("the band cannot go below one that runs backwards")
            left = pairs.eq_at_multi_union_pw_aff(inner.schedule)
            if not reversed_by(left, band.schedule).is_empty():
                raise IllegalTransformError("the band reverses a dependence")
            return replace(inner, child=sink(replace(band, child=inner.child), left))
        case _:
            raise IllegalTransformError(f"cannot sink below a {type(band.child).__name__}")


def _sunk(part: Filter, pairs: isl.UnionMap) -> Tree:
    assert isinstance(part.child, Band)
    return sink(part.child, between(pairs, part, part))


def fuse(first: Filter, second: Filter, pairs: isl.UnionMap) -> Filter:
    """Two neighbours of a sequence, each a band, under one band (loop fusion).

    Args:
        first: A part whose child is a band.
        second: The part after it, whose child is a band of as many loops.
        pairs: Dependences among their instances that no outer loop separates.

    Rewrite:
        sequence (A / band [i], B / band [j])  ->  band [i, j for B] / sequence (A, B)

    Raises:
        IllegalTransformError: A part is no band, the depths differ, or ``second`` would run
            before what it needs.
    """
    a, b = first.child, second.child
    if not (isinstance(a, Band) and isinstance(b, Band) and a.depth == b.depth):
        raise IllegalTransformError("cannot fuse what are not two bands of equal depth")
    schedule = _restricted(a, first).schedule.union_add(_restricted(b, second).schedule)
    both = Filter((*first.statements, *second.statements), Leaf())
    inside = between(pairs, both, both)
    if not reversed_by(inside, schedule).is_empty():
        raise IllegalTransformError("the second part needs later iterations of the first")
    parts = (replace(first, child=a.child), replace(second, child=b.child))
    return replace(both, child=judged(schedule, inside, Sequence(parts)))


def between(pairs: isl.UnionMap, source: Filter, sink: Filter) -> isl.UnionMap:
    """The pairs from a statement of one part to a statement of another."""
    total = isl.union_map(pairs.get_ctx(), "{ }")
    for pair in isl.maps_of(pairs):
        a = pair.get_tuple_name(isl.dim_type.in_)
        b = pair.get_tuple_name(isl.dim_type.out)
        if a in source.statements and b in sink.statements:
            total = total.union(isl.UnionMap.from_map(pair))
    return total


def leads_back(pairs: isl.UnionMap, parts: Collection[Filter]) -> bool:
    """Whether some pair leads from a part of a sequence to an earlier one."""
    place = {name: k for k, part in enumerate(parts) for name in part.statements}
    for pair in isl.maps_of(pairs):
        start = place.get(pair.get_tuple_name(isl.dim_type.in_), -1)
        end = place.get(pair.get_tuple_name(isl.dim_type.out), start)
        if start > end and not pair.is_empty():
            return True
    return False


def reversed_by(pairs: isl.UnionMap, schedule: isl.MultiUnionPwAff) -> isl.UnionMap:
    """The pairs whose sink gets an earlier iteration than its source."""
    kept = pairs.eq_at_multi_union_pw_aff(schedule)
    return pairs.subtract(kept).subtract(pairs.lex_lt_at_multi_union_pw_aff(schedule))


def _restricted(band: Band, part: Filter) -> Band:
    """``band`` for the statements of one part, above that part's child."""
    domain = band.schedule.domain()
    schedule = band.schedule.intersect_domain(isl.part_of(domain, part.statements))
    return replace(band, schedule=schedule, child=part.child)


def judged(schedule: isl.MultiUnionPwAff, pairs: isl.UnionMap, child: Tree) -> Band:
    """A band over ``child`` with the flags that the dependences ``pairs`` below it allow."""
    depth = schedule.dim(isl.dim_type.out)
    domain = schedule.domain()
    pairs = pairs.intersect_domain(domain).intersect_range(domain)
    raw = Band(schedule, False, (False,) * depth, child)
    rows = [member(raw, k) for k in range(depth)]
    permutable = all(reversed_by(pairs, row).is_empty() for row in rows)
    coincident = tuple(
        bool(pairs.subtract(pairs.eq_at_multi_union_pw_aff(row)).is_empty()) for row in rows
    )
    return replace(raw, permutable=permutable, coincident=coincident)
