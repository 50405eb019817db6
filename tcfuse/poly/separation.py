"""Full and partial tiles: code of their own for the tiles that lie inside every domain.

A loop that counts tiles follows ``floor(e / T)``.  The iterations of the loops around a band
are full when each tile they are in holds all its points, for every statement; isl's ``isolate``
option then generates the band twice, once knowing that.

Source: Grosser, Verdoolaege, Cohen, "Polyhedral AST Generation Is More Than Scanning
Polyhedra", TOPLAS 37(4), 2015, section 6 (isolation).
"""

from __future__ import annotations

from dataclasses import dataclass

from tcfuse.poly import isl


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """What a loop follows: ``value``, or the number of the tile of ``width`` that it is in."""

    value: isl.UnionPwAff
    width: int = 0


def tile_width(row: isl.UnionPwAff) -> int | None:
    """The size of the tiles that ``row`` counts; ``None`` when it does not count tiles."""
    found = _row(row).width
    return found or None


def _row(row: isl.UnionPwAff) -> _Row:
    """``row`` with the expression under its floor, where that is all there is to it."""
    value: isl.UnionPwAff | None = None
    widths: set[int] = set()
    for piece in isl.pieces_of(row):
        for _, aff in piece.get_pieces():
            counted = _counted(aff)
            if counted is None:
                return _Row(row)
            expression, width = counted
            widths.add(width)
            plain = isl.PwAff.from_aff(expression).intersect_domain(piece.domain())
            part = isl.UnionPwAff.from_pw_aff(plain)
            value = part if value is None else value.union_add(part)
    if value is None or len(widths) != 1:
        return _Row(row)
    return _Row(value, widths.pop())


def _counted(aff: isl.Aff) -> tuple[isl.Aff, int] | None:
    """``e`` and ``T`` of an expression that is ``floor(e / T)``."""
    if aff.dim(isl.dim_type.div) != 1:
        return None
    inner = aff.get_div(0)
    width = inner.get_denominator_val()
    if not aff.sub(inner.floor()).plain_is_zero():
        return None
    return inner.scale_val(width), int(width.to_python())


def counts_tiles(schedule: isl.MultiUnionPwAff) -> bool:
    """Whether a member of ``schedule`` counts tiles."""
    members = schedule.dim(isl.dim_type.out)
    return any(tile_width(schedule.get_union_pw_aff(k)) for k in range(members))


def isolated(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """The band ``node`` with its iterations in full tiles generated apart."""
    prefix = node.get_prefix_schedule_multi_union_pw_aff()
    full = full_tiles(node.get_domain(), prefix)
    if full is None:
        return node
    schedule = node.band_get_partial_schedule()
    members = schedule.dim(isl.dim_type.out)
    anything = isl.Set.universe(full.get_space().params().add_unnamed_tuple_ui(members))
    chosen = isl.Map.from_domain_and_range(full, anything).wrap().set_tuple_name("isolate")
    known = node.band_get_ast_build_options()  # which loops are unrolled
    return node.band_set_ast_build_options(known.union(isl.UnionSet.from_set(chosen)))


def full_tiles(instances: isl.UnionSet, prefix: isl.MultiUnionPwAff) -> isl.Set | None:
    """The iterations of ``prefix`` all of whose tiles are full.

    ``None`` when there are none, when no loop counts tiles, or when isl would have to cut the
    rest into pieces because the full ones are not one convex set.
    """
    rows = [_row(prefix.get_union_pw_aff(k)) for k in range(prefix.dim(isl.dim_type.out))]
    if not any(row.width for row in rows):
        return None
    reached = isl.UnionMap.from_multi_union_pw_aff(prefix).intersect_domain(instances).range()
    full = _one(reached)
    holds = _points_of_tiles(full, rows)
    for statement in isl.sets_of(instances):
        points: isl.UnionMap | None = None
        for row in rows:
            values = isl.UnionMap.from_union_pw_aff(row.value)
            values = values.intersect_domain(isl.UnionSet.from_set(statement))
            points = values if points is None else points.flat_range_product(values)
        assert points is not None
        inside = holds.intersect_range(_one(points.range()))
        partly = holds.subtract(inside).domain().intersect(inside.domain())
        full = full.subtract(partly)
    full = full.coalesce()
    return full if full.n_basic_set() == 1 and not full.is_empty() else None


def _one(union: isl.UnionSet) -> isl.Set:
    (found,) = isl.sets_of(union)
    return found


def _points_of_tiles(prefix: isl.Set, rows: list[_Row]) -> isl.Map:
    """From each iteration of the prefix to the values of a tile's points."""
    names = [f"p{k}" for k in range(len(rows))]
    points = [f"x{k}" for k in range(len(rows))]
    conditions = [
        f"{row.width}*{p} <= {x} < {row.width}*{p} + {row.width}" if row.width else f"{x} = {p}"
        for row, p, x in zip(rows, names, points, strict=True)
    ]
    text = f"{{ [{', '.join(names)}] -> [{', '.join(points)}] : {' and '.join(conditions)} }}"
    return isl.Map.read_from_str(prefix.get_ctx(), text).intersect_domain(prefix)
